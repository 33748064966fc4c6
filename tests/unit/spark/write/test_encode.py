"""Rows into batches and partitions: the same places as the producer's, every row once and in order."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.producer.partitioners import murmur2 as murmur2_of_one
from barnabas.client.producer.partitioners import partition_for_key
from barnabas.records.batch import read_batch
from barnabas.records.columns.columns import decode
from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.errors import SchemaError
from pyspark_barnabas.write.encode import Compression, Encoded, Encoder, ProducerFields, gathered
from pyspark_barnabas.write.partitioning import murmur2
from pyspark_barnabas.write.split import split

NOW_MS = 1_700_000_000_000


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_the_hash_of_a_column_is_the_producers(keys: list[bytes]) -> None:
    assert [int(number) for number in murmur2(pa.array(keys, pa.binary()))] == [int(murmur2_of_one(key)) for key in keys]


def test_the_hash_of_a_slice_looks_at_the_slice_only() -> None:
    column = pa.array([b"aaaaa", b"bb", b"cccccccc", b""], pa.binary()).slice(1, 3)
    assert [int(number) for number in murmur2(column)] == [int(murmur2_of_one(key)) for key in (b"bb", b"cccccccc", b"")]


def encoder(partitions: int = 3, batch_size: int = 16384, producer: ProducerFields | None = None) -> Encoder:
    topology = (partitions, list(range(partitions)))
    return Encoder(producer or ProducerFields(), Compression(), batch_size, lambda _: topology, lambda: NOW_MS, lambda _: 0)


def rows(batches: list[Encoded]) -> dict[TopicPartition, list[tuple[bytes | None, bytes | None]]]:
    found: dict[TopicPartition, list[tuple[bytes | None, bytes | None]]] = {}
    for batch in batches:
        records = decode(batch.data).records
        assert records.num_rows == batch.count
        found.setdefault(batch.partition, []).extend(
            zip(records.column("key").to_pylist(), records.column("value").to_pylist(), strict=True)
        )
    return found


@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=30), st.none() | st.integers(0, 4)), max_size=60),
    st.sampled_from([1, 200, 16384]),
)
def test_every_row_is_in_its_partition_once_and_in_order(
    given_rows: list[tuple[bytes | None, bytes | None, int | None]], batch_size: int
) -> None:
    keys, values, partitions = ([row[index] for row in given_rows] for index in range(3))
    batch = pa.RecordBatch.from_pydict(
        {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary()), "partition": pa.array(partitions, pa.int32())}
    )
    encoded = rows(list(encoder(5, batch_size).encode(batch, "t")))
    assert sorted(map(repr, (row for some in encoded.values() for row in some))) == sorted(repr(row[:2]) for row in given_rows)
    for number in range(5):
        expected = [
            (key, value)
            for key, value, partition in given_rows
            if partition == number or (partition is None and key is not None and partition_for_key(key, 5) == number)
        ]
        placed = [row for row in encoded.get(TopicPartition("t", number), []) if row in expected]
        assert [row for row in placed if row[0] is not None] == [row for row in expected if row[0] is not None]


def test_rows_without_a_key_fill_one_batch_after_the_other() -> None:
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"x" * 88] * 30, pa.binary())})
    encoded = rows(list(encoder(3, 1000).encode(batch, "t")))
    assert {partition.partition: len(some) for partition, some in encoded.items()} == {0: 10, 1: 10, 2: 10}


def test_each_row_goes_to_the_topic_it_names() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["b", "a", "b"], "value": pa.array([b"1", b"2", b"3"])})
    encoded = rows(list(encoder(1).encode(batch, None)))
    assert encoded == {TopicPartition("b", 0): [(None, b"1"), (None, b"3")], TopicPartition("a", 0): [(None, b"2")]}


def test_a_row_without_a_topic_is_refused_in_sparks_words() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["b", None], "value": pa.array([b"1", b"2"])})
    with pytest.raises(SchemaError, match="contains a null topic"):
        list(encoder().encode(batch, None))


def test_a_partition_the_topic_does_not_have_is_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"1"]), "partition": pa.array([3], pa.int32())})
    with pytest.raises(SchemaError, match="partition 3 present in the data, but the topic has partitions 0 to 2 only"):
        list(encoder(3).encode(batch, "t"))


def test_sequences_go_on_from_batch_to_batch_of_a_partition() -> None:
    one = encoder(1, 200, ProducerFields(7, 1, True))
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"x" * 50] * 5)})
    headers = [read_batch(made.data, 0, len(made.data)) for _ in range(2) for made in one.encode(batch, "t")]
    assert [(header.producer_id, header.producer_epoch, header.is_transactional) for header in headers] == [(7, 1, True)] * len(headers)
    expected = 0
    for header in headers:
        assert header.base_sequence == expected
        expected += header.count
    assert expected == 10


@given(st.lists(st.binary(max_size=20), min_size=2, max_size=9), st.sampled_from([0, 1, 2, 3, 4]))
def test_a_batch_that_is_split_keeps_its_records_and_sequences(values: list[bytes], codec: int) -> None:
    whole = Encoder(ProducerFields(7, 1, True), Compression(codec), 10**6, lambda _: (1, [0]), lambda: NOW_MS, lambda _: 0)
    headers = pa.array([[{"key": "h", "value": b"v"}]] * len(values), pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    (batch,) = whole.encode(pa.RecordBatch.from_pydict({"value": pa.array(values), "headers": headers}), "t")
    first, second = split(batch)
    assert (
        decode(first.data, headers=True).records.to_pylist()
        + [row | {"offset": row["offset"] + first.count} for row in decode(second.data, headers=True).records.to_pylist()]
        == decode(batch.data, headers=True).records.to_pylist()
    )
    header = read_batch(second.data, 0, len(second.data))
    assert (header.base_sequence, header.producer_id, header.is_transactional, header.codec) == (first.count, 7, True, codec)


def test_small_arrow_batches_are_put_together() -> None:
    batches = [pa.RecordBatch.from_pydict({"value": pa.array([bytes([number])])}) for number in range(5)]
    (joined,) = gathered(iter(batches))
    assert joined.column("value").to_pylist() == [bytes([number]) for number in range(5)]
    assert list(gathered(iter([]))) == []
