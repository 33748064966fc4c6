"""Row for row the same as Spark's own Kafka connector, in the same session, on the same topics, on both brokers.

All topics are filled once by librdkafka, and read once by each connector with each isolation level; each test looks at one kind of topic.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from tests.broker import TopicMaker
from tests.spark import topic_contents

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FLUSH_S = 30
COMPACTION_S = 60
LARGE_BYTES = 5_000_000
COMMITTED = "read_committed"
UNCOMMITTED = "read_uncommitted"

Rows = list[tuple[Any, ...]]


@dataclass
class World:
    """Topics by what they are for, and what each connector read of them, by isolation level and connector."""

    bootstrap: str
    topics: dict[str, str]
    read: dict[tuple[str, str], dict[str, Rows]]

    def rows(self, kind: str, isolation: str = COMMITTED) -> Rows:
        """Of one topic, having compared them."""
        ours, theirs = (self.read[isolation, source].get(self.topics[kind], []) for source in ("barnabas", "kafka"))
        assert ours == theirs
        return ours


@pytest.fixture(scope="module")
def world(spark: SparkSession, bootstrap: str, new_topic: TopicMaker) -> Generator[World, None, None]:
    topics = {codec: _with_codec(bootstrap, new_topic(f"eq-{codec}", partitions=3), codec) for codec in CODECS}
    topics["headers"] = _with_headers(bootstrap, new_topic("eq-headers"))
    topics["nulls"] = _with_nulls(bootstrap, new_topic("eq-nulls"))
    topics["large"] = _with_large(bootstrap, new_topic("eq-large", max_message_bytes=str(2 * LARGE_BYTES)))
    topics["broker-time"] = _with_codec(bootstrap, new_topic("eq-time", message_timestamp_type="LogAppendTime"), "lz4")
    topics["empty"] = new_topic("eq-empty", partitions=2)
    compacting = {"cleanup_policy": "compact", "segment_ms": "100", "min_cleanable_dirty_ratio": "0.001"}
    topics["compacted"] = _compacted(bootstrap, new_topic("eq-compacted", **compacting))
    topics["transactions"] = new_topic("eq-transactions", partitions=2)
    with _transactions(bootstrap, topics["transactions"]):
        read = {
            (isolation, source): _read(spark, source, bootstrap, topics.values(), isolation)
            for isolation in (COMMITTED, UNCOMMITTED)
            for source in ("barnabas", "kafka")
        }
    yield World(bootstrap, topics, read)


def frame(spark: SparkSession, source: str, bootstrap: str, topics: Any, isolation: str = COMMITTED, **options: str) -> DataFrame:
    return (
        spark.read.format(source)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", ",".join(topics))
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", isolation)
        .options(**options)
        .load()
    )


def _read(spark: SparkSession, source: str, bootstrap: str, topics: Any, isolation: str) -> dict[str, Rows]:
    rows_by_source: dict[str, Rows] = {}
    for row in sorted(map(_plain, frame(spark, source, bootstrap, topics, isolation).collect()), key=lambda row: row[2:5]):
        rows_by_source.setdefault(row[2], []).append(row)
    return rows_by_source


def _plain(row: Any) -> tuple[Any, ...]:
    return tuple(bytes(value) if isinstance(value, bytearray) else _headers(value) if isinstance(value, list) else value for value in row)


def _headers(headers: list[Any]) -> list[tuple[str, bytes | None]]:
    return [(header.key, None if header.value is None else bytes(header.value)) for header in headers]


def _with_codec(bootstrap: str, topic: str, codec: str) -> str:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20, "batch.num.messages": 50})
    for number in range(300):
        producer.produce(topic, b"value %d " % number * 5, b"key %d" % (number % 17), timestamp=1_700_000_000_000 + 37 * number)
    assert producer.flush(FLUSH_S) == 0
    return topic


def _with_headers(bootstrap: str, topic: str) -> str:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"one", headers=[("a", b"1")])
    producer.produce(topic, b"none")
    producer.produce(topic, b"many", headers=[("ä", b""), ("b", None), ("b", b"\x00\xff"), ("", b"x")])
    assert producer.flush(FLUSH_S) == 0
    return topic


def _with_nulls(bootstrap: str, topic: str) -> str:
    producer = Producer({"bootstrap.servers": bootstrap})
    for key in (None, b"", b"k", b"a key that is longer than an Arrow view holds"):
        for value in (None, b"", b"v", b"a value that is longer than an Arrow view holds"):
            producer.produce(topic, value, key)
    assert producer.flush(FLUSH_S) == 0
    return topic


def _with_large(bootstrap: str, topic: str) -> str:
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 2 * LARGE_BYTES})
    for size in (1, LARGE_BYTES, 2, LARGE_BYTES):
        producer.produce(topic, b"x" * size)
    assert producer.flush(FLUSH_S) == 0
    return topic


def _compacted(bootstrap: str, topic: str) -> str:
    """Ten keys of hundred records, a tombstone among them, once the cleaner has been there."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "batch.num.messages": 7})
    for number in range(100):
        producer.produce(topic, None if number == 95 else b"value %d" % number, b"key %d" % (number % 10))
    assert producer.flush(FLUSH_S) == 0
    deadline = time.monotonic() + COMPACTION_S
    while len(topic_contents.read(bootstrap, topic)) > 60:
        assert time.monotonic() < deadline, "the topic was not compacted in time"
        producer.produce(topic, b"another, to end the segment", b"last key")  # what is written last is not compacted
        assert producer.flush(FLUSH_S) == 0
    return topic


@contextmanager
def _transactions(bootstrap: str, topic: str) -> Generator[None, None, None]:
    """Committed and aborted ones of two producers between each other, and one that is open for as long as the block lasts."""
    first, second = (
        Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{number}", "transaction.timeout.ms": 600_000})
        for number in range(2)
    )
    first.init_transactions(FLUSH_S)
    second.init_transactions(FLUSH_S)
    for round_ in range(4):
        first.begin_transaction()
        second.begin_transaction()
        for number in range(10):
            first.produce(topic, b"first %d %d" % (round_, number), partition=number % 2)
            second.produce(topic, b"second %d %d" % (round_, number), partition=number % 2)
            if number % 3 == 0:
                first.flush(FLUSH_S)
                second.flush(FLUSH_S)
        first.abort_transaction(FLUSH_S) if round_ % 2 else first.commit_transaction(FLUSH_S)
        second.commit_transaction(FLUSH_S) if round_ % 2 else second.abort_transaction(FLUSH_S)
    first.begin_transaction()
    first.produce(topic, b"open", partition=0)
    first.flush(FLUSH_S)
    plain = Producer({"bootstrap.servers": bootstrap})
    plain.produce(topic, b"behind the open one", partition=0)
    assert plain.flush(FLUSH_S) == 0
    try:
        yield
    finally:
        first.abort_transaction(FLUSH_S)


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read_the_same(world: World, codec: str) -> None:
    assert len(world.rows(codec)) == 300


def test_headers_are_the_same(world: World) -> None:
    assert [row[7] for row in world.rows("headers")] == [[("a", b"1")], None, [("ä", b""), ("b", None), ("b", b"\x00\xff"), ("", b"x")]]


def test_nulls_and_empty_values_are_the_same(world: World) -> None:
    assert len(world.rows("nulls")) == 16


def test_a_record_larger_than_a_fetch_is_the_same(world: World) -> None:
    assert [len(row[1]) for row in world.rows("large")] == [1, LARGE_BYTES, 2, LARGE_BYTES]


def test_times_given_by_the_broker_are_the_same(world: World) -> None:
    assert {row[6] for row in world.rows("broker-time")} == {1}


def test_a_topic_without_records_has_no_rows(world: World) -> None:
    assert world.rows("empty") == []


def test_a_compacted_topic_is_the_same(world: World) -> None:
    rows = world.rows("compacted")
    assert rows[-1][4] >= len(rows)  # there are gaps between the offsets
    assert world.rows("compacted", UNCOMMITTED) == rows


def test_committed_transactions_are_the_same(world: World) -> None:
    rows = world.rows("transactions")
    assert len(rows) == 40
    assert {(row[1].split()[0], row[1].split()[1]) for row in rows} == {
        (b"first", b"0"),
        (b"first", b"2"),
        (b"second", b"1"),
        (b"second", b"3"),
    }


def test_uncommitted_transactions_are_the_same(world: World) -> None:
    assert len(world.rows("transactions", UNCOMMITTED)) == 82


def test_cut_into_many_tasks_the_rows_are_the_same(spark: SparkSession, world: World) -> None:
    topics = [world.topics[kind] for kind in ("zstd", "transactions", "compacted")]
    rows = frame(spark, "barnabas", world.bootstrap, topics, minPartitions="25")
    assert rows.rdd.getNumPartitions() > 20
    assert sorted(map(_plain, rows.collect()), key=lambda row: row[2:5]) == sorted(
        (row for topic in topics for row in _ended(world, topic)), key=lambda row: row[2:5]
    )


def _ended(world: World, topic: str) -> Rows:
    """What is committed now that the open transaction has been aborted: what stood behind it, too."""
    rows = list(world.read[COMMITTED, "kafka"][topic])
    behind = [row for row in world.read[UNCOMMITTED, "kafka"][topic] if row[1] == b"behind the open one"]
    return rows + behind


def test_the_schema_is_the_same(spark: SparkSession, world: World) -> None:
    schemas = [frame(spark, source, world.bootstrap, [world.topics["none"]]).schema for source in ("barnabas", "kafka")]
    assert [(field.name, field.dataType) for field in schemas[0]] == [(field.name, field.dataType) for field in schemas[1]]
