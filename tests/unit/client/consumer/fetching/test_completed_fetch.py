"""What a consumer makes of the bytes of a fetch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer.fetching.completed_fetch import AS_UTF8, BY_CALL, CompletedFetch, Decoding
from barnabas.client.consumer.record import TimestampType
from barnabas.client.errors import RecordDeserializationError
from barnabas.errors import KafkaError
from barnabas.protocol.slices import Records
from barnabas.records.builder import build
from barnabas.records.codecs.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from barnabas.records.control import end_txn_marker

BYTES = Decoding()


def fetched(data: bytes, offset: int = 0, aborted: list[tuple[int, int]] | None = None) -> CompletedFetch:
    return CompletedFetch("t", 3, offset, Records(b"before" + data + b"after", 6, 6 + len(data)), aborted or [])


def three(**options: Any) -> bytes:
    return build([(1000 + n, b"k%d" % n, b"v%d" % n, ()) for n in range(3)], **options)


def test_a_record_has_all_fields_of_kafka() -> None:
    data = build([(1234, b"key", b"value", [("a", b"1"), ("b", None), ("a", b"2")])], base_offset=7, leader_epoch=5)
    (record,) = fetched(data, 7).take(500, BYTES)
    assert (record.topic, record.partition, record.offset, record.timestamp) == ("t", 3, 7, 1234)
    assert record.timestamp_type is TimestampType.CREATE_TIME
    assert (record.serialized_key_size, record.serialized_value_size) == (3, 5)
    assert (record.key, record.value) == (b"key", b"value")
    assert record.headers == (("a", b"1"), ("b", None), ("a", b"2"))
    assert record.last_header("a") == b"2"
    assert record.leader_epoch == 5
    assert record.delivery_count is None


def test_null_key_and_value_have_the_size_minus_one() -> None:
    (record,) = fetched(build([(1, None, None, ())])).take(1, BYTES)
    assert (record.key, record.value) == (None, None)
    assert (record.serialized_key_size, record.serialized_value_size) == (-1, -1)


def test_an_empty_value_is_not_null() -> None:
    (record,) = fetched(build([(1, b"", b"", ())])).take(1, BYTES)
    assert (record.key, record.value, record.serialized_value_size) == (b"", b"", 0)


def test_log_append_time_is_that_of_the_batch() -> None:
    data = build([(1, None, b"x", ()), (2, None, b"y", ())], timestamp_type=1, log_append_time=99)
    assert [(record.timestamp, str(record.timestamp_type)) for record in fetched(data).take(9, BYTES)] == [(99, "LogAppendTime")] * 2


@pytest.mark.parametrize(
    ("codec", "magic"), [(codec, magic) for magic in (0, 1, 2) for codec in (NONE, GZIP, SNAPPY, LZ4, *([ZSTD] if magic == 2 else []))]
)
def test_every_codec_of_every_format_is_read(codec: int, magic: int) -> None:
    fetch = fetched(three(codec=codec, magic=magic) + three(codec=codec, magic=magic, base_offset=3))
    assert [(record.offset, record.key, record.value) for record in fetch.take(100, BYTES)] == [
        (n, b"k%d" % (n % 3), b"v%d" % (n % 3)) for n in range(6)
    ]
    assert fetch.is_consumed
    assert fetch.next_fetch_offset == 6


def test_take_goes_on_where_it_stopped() -> None:
    fetch = fetched(three() + three(base_offset=3))
    assert [record.offset for record in fetch.take(2, BYTES)] == [0, 1]
    assert fetch.next_fetch_offset == 2
    assert [record.offset for record in fetch.take(2, BYTES)] == [2, 3]
    assert not fetch.is_consumed
    assert [record.offset for record in fetch.take(2, BYTES)] == [4, 5]
    assert fetch.is_consumed


@given(st.lists(st.integers(1, 7), min_size=1, max_size=12), st.integers(1, 40), st.integers(0, 30))
def test_no_record_is_lost_or_seen_twice(steps: list[int], batches: int, start: int) -> None:
    data = b"".join(three(base_offset=3 * n) for n in range(batches))
    fetch = fetched(data, min(start, 3 * batches - 1))
    seen: list[int] = []
    while not fetch.is_consumed:
        for most in steps:
            seen += [record.offset for record in fetch.take(most, BYTES)]
    assert seen == list(range(min(start, 3 * batches - 1), 3 * batches))


def test_records_below_the_fetch_offset_are_passed_over() -> None:
    assert [record.offset for record in fetched(three(base_offset=10), 11).take(10, BYTES)] == [11, 12]


def test_the_offset_after_a_batch_whose_end_was_compacted_away_is_next() -> None:
    from barnabas.records.builder import BatchBuilder

    builder = BatchBuilder(base_offset=0)
    builder.append_at(0, 1, b"k", b"v")
    fetch = fetched(builder.build(last_offset=9))
    assert len(fetch.take(10, BYTES)) == 1
    assert fetch.next_fetch_offset == 10
    assert fetch.end_offset == 10 or fetch.is_consumed


def test_a_batch_cut_short_is_left_for_the_next_fetch() -> None:
    fetch = fetched(three() + three(base_offset=3)[:-1])
    assert fetch.end_offset == 3
    assert len(fetch.take(10, BYTES)) == 3
    assert fetch.next_fetch_offset == 3


def test_strings_are_made_without_a_call() -> None:
    (record, *_) = fetched(three()).take(1, Decoding(AS_UTF8, None, AS_UTF8, None))
    assert (record.key, record.value) == ("k0", "v0")


def test_deserializers_get_topic_bytes_and_headers_and_never_null() -> None:
    seen: list[object] = []

    def deserialize(topic: str, data: bytes | None, headers: object) -> int:
        seen.append((topic, data, headers))
        return 42

    data = build([(1, None, b"v", [("h", b"x")])])
    (record,) = fetched(data).take(1, Decoding(BY_CALL, deserialize, BY_CALL, deserialize))
    assert (record.key, record.value) == (None, 42)
    assert seen == [("t", b"v", [("h", b"x")])]


def failing_on(bad: bytes) -> Decoding:
    def deserialize(topic: str, data: bytes | None, headers: object) -> bytes | None:
        if data == bad:
            raise ValueError("no good")
        return data

    return Decoding(BY_CALL, deserialize, BY_CALL, deserialize)


def test_what_cannot_be_deserialized_is_raised_after_the_good_records_and_again_until_passed() -> None:
    fetch = fetched(three())
    assert [record.offset for record in fetch.take(10, failing_on(b"v1"))] == [0]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError) as raised:
            fetch.take(10, failing_on(b"v1"))
    assert (raised.value.offset, raised.value.origin, raised.value.key, raised.value.value) == (1, "VALUE", b"k1", b"v1")
    assert str(raised.value) == (
        "Error deserializing VALUE for partition t-3 at offset 1: ValueError: no good. "
        "If needed, please seek past the record to continue consumption."
    )
    assert fetch.next_fetch_offset == 1
    assert [record.offset for record in fetch.take(10, BYTES)] == [1, 2]  # a retry may succeed


def test_a_wrong_checksum_is_raised_each_time_and_can_be_ignored() -> None:
    damaged = bytearray(three(base_offset=3))
    damaged[-2] ^= 1
    fetch = fetched(three() + bytes(damaged))
    assert len(fetch.take(10, BYTES)) == 3
    for _ in range(2):
        with pytest.raises(KafkaError, match="Received exception when fetching the next record from t-3") as raised:
            fetch.take(10, BYTES)
        assert "Record batch for partition t-3 at offset 3 is invalid, cause: Record is corrupt" in str(raised.value.__cause__)
    assert len(fetch.take(10, Decoding(check_crcs=False))) == 3


def test_bytes_without_a_whole_batch_are_told() -> None:
    assert fetched(three()[:30]).has_no_whole_batch
    assert not fetched(three()).has_no_whole_batch
    assert not fetched(b"").has_no_whole_batch


def transactional(offset: int, producer_id: int) -> bytes:
    return build(
        [(1, None, b"p%d" % producer_id, ())],
        base_offset=offset,
        transactional=True,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    return end_txn_marker(commit, producer_id, 0, coordinator_epoch=0, timestamp=1, base_offset=offset)


# Producer 1 aborts 0, producer 2 commits 1, producer 1 commits 4.
MIXED = (
    transactional(0, 1)
    + transactional(1, 2)
    + marker(2, 1, commit=False)
    + marker(3, 2, commit=True)
    + transactional(4, 1)
    + marker(5, 1, commit=True)
)


def test_read_committed_passes_over_aborted_batches_until_their_marker() -> None:
    fetch = fetched(MIXED, aborted=[(1, 0)])
    assert [record.offset for record in fetch.take(10, Decoding(read_committed=True))] == [1, 4]
    assert fetch.next_fetch_offset == 6


def test_read_uncommitted_sees_all_but_markers() -> None:
    fetch = fetched(MIXED)
    assert [record.offset for record in fetch.take(10, BYTES)] == [0, 1, 4]
    assert fetch.next_fetch_offset == 6


@given(st.binary(max_size=200), st.integers(0, 300))
def test_damaged_bytes_end_in_an_error_of_kafka_or_in_records(noise: bytes, at: int) -> None:
    data = bytearray(three() + three(base_offset=3, codec=NONE))
    data[at % len(data) : at % len(data) + len(noise)] = noise
    fetch = fetched(bytes(data))
    try:
        for _ in range(20):
            fetch.take(3, Decoding(check_crcs=False))
    except KafkaError:
        pass
