"""Polls that give Arrow batches, with Apache Kafka and with our broker."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer as TransactionalProducer

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetching.arrow_fetch import ARROW_SCHEMA
from tests.broker import TopicMaker
from tests.integration.client.records import DEADLINE_S, numbered, partitions, poll_until, produce


def reader(bootstrap: str, **settings: Any) -> Consumer[bytes, bytes]:
    return Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}, **settings)


def table_of(consumer: Consumer[Any, Any], rows: int, **options: Any) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    deadline = time.monotonic() + DEADLINE_S
    while sum(batch.num_rows for batch in batches) < rows:
        assert time.monotonic() < deadline
        batches += consumer.poll_arrow(1, **options)
    return pa.Table.from_batches(batches, ARROW_SCHEMA)


def test_columns_hold_what_records_hold(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("arrow", partitions=2)
    produce(
        bootstrap, topic, [{"key": b"k", "value": b"v", "timestamp": 1000, "headers": [("h", b"x")]}, {"value": None, "timestamp": 2000}]
    )
    produce(bootstrap, topic, numbered(3000), partition=1)
    with reader(bootstrap) as consumer:
        consumer.assign(partitions(topic, 2))
        table = table_of(consumer, 3002)
        assert consumer.position(partitions(topic, 2)[1]) == 3000
    first = table.filter(pa.compute.equal(table["partition"], 0)).to_pylist()
    assert [(row["topic"], row["offset"], row["key"], row["value"], row["leader_epoch"]) for row in first] == [
        (topic, 0, b"k", b"v", 0),
        (topic, 1, None, None, 0),
    ]
    assert [row["headers"] for row in first] == [[{"key": "h", "value": b"x"}], None]
    assert [row["timestamp"].timestamp() for row in first] == [1.0, 2.0]
    second = table.filter(pa.compute.equal(table["partition"], 1))
    assert second["value"].to_pylist() == numbered(3000)
    assert second["offset"].to_pylist() == list(range(3000))


def test_polls_of_both_kinds_take_turns(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("turns")
    produce(bootstrap, topic, numbered(1000), compression_type="lz4", linger_ms=20)
    with reader(bootstrap, max_poll_records=7) as consumer:
        consumer.assign(partitions(topic, 1))
        offsets: list[int] = []
        while len(offsets) < 1000:
            offsets += [record.offset for record in poll_until(consumer, 1)]
            if len(offsets) < 1000:
                offsets += table_of(consumer, 1, max_records=11)["offset"].to_pylist()
    assert offsets == list(range(1000))


def test_aborted_records_do_not_show_in_read_committed(bootstrap: str, new_topic: TopicMaker) -> None:
    topic = new_topic("arrow-committed")
    producer = TransactionalProducer({"bootstrap.servers": bootstrap, "transactional.id": f"arrow-{topic}"})
    producer.init_transactions(30)
    for value, commit in ((b"no", False), (b"yes", True)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(30)
        (producer.commit_transaction if commit else producer.abort_transaction)(30)
    with reader(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign(partitions(topic, 1))
        assert table_of(consumer, 1)["value"].to_pylist() == [b"yes"]
