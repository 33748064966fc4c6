"""What our consumer says of a topic, line for line as Kafka's own says it of the same."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.record import ConsumerRecord
from barnabas.client.serialization.simple import StringDeserializer
from barnabas.topic_partition import TopicPartition
from tests import kafka
from tests.broker import TopicMaker
from tests.integration.client.records import produce

pytestmark = pytest.mark.java

ORACLE = Path(__file__).parents[1] / "java" / "ConsumerOracle.java"
HOUR_MS = 3600_000


def written(bootstrap: str, new_topic: TopicMaker) -> tuple[str, list[int]]:
    """A topic with transactions of every kind, and times to look for."""
    topic = new_topic("oracle")
    now_ms = int(time.time() * 1000)
    produce(bootstrap, topic, [{"key": b"k", "value": b"old", "timestamp": now_ms - 3 * HOUR_MS, "headers": [("h", b"1"), ("n", None)]}])
    produce(bootstrap, topic, [{"value": None, "timestamp": now_ms - HOUR_MS // 2}])
    produce(bootstrap, topic, [f"{number}".encode() for number in range(5)], compression_type="zstd", linger_ms=20)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for name, commit in (("aborted", False), ("committed", True)):
        producer.begin_transaction()
        for number in range(2):
            producer.produce(topic, f"{name}{number}".encode(), b"key", partition=0, timestamp=now_ms - 60_000 + number)
        producer.flush(30)
        (producer.commit_transaction if commit else producer.abort_transaction)(30)
    return topic, [1, now_ms - 2 * HOUR_MS, now_ms - 60_000, now_ms + HOUR_MS]


def test_our_consumer_says_what_kafkas_says(bootstrap: str, new_topic: TopicMaker) -> None:
    topic, times = written(bootstrap, new_topic)
    command = kafka.source_command(kafka.available(kafka.prepare), ORACLE, bootstrap, topic, *map(str, times))
    theirs = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    assert list(said(bootstrap, TopicPartition(topic, 0), times)) == theirs.stdout.splitlines()


def said(bootstrap: str, partition: TopicPartition, times: list[int]) -> Iterator[str]:
    for isolation in ("read_uncommitted", "read_committed"):
        with text_consumer(bootstrap, isolation_level=isolation) as consumer:
            consumer.assign([partition])
            end = consumer.end_offsets([partition])[partition]
            yield f"{isolation} begins {consumer.beginning_offsets([partition])[partition]} ends {end}"
            for time_ms in times:
                found = consumer.offsets_for_times({partition: time_ms})[partition]
                yield f"{isolation} at {time_ms} " + (
                    "none" if found is None else f"{found.offset} {found.timestamp} {number(found.leader_epoch)}"
                )
            following: dict[TopicPartition, OffsetAndMetadata] = {}
            while consumer.position(partition) < end:
                records = consumer.poll(1)
                yield from (f"{isolation} {shown(record)}" for record in records)
                following |= records.next_offsets()
            lag, after = consumer.current_lag(partition), following[partition]
            yield (
                f"{isolation} stands at {consumer.position(partition)} lag {number(lag)} next {after.offset} {number(after.leader_epoch)}"
            )
    for reset in ("earliest", "latest", "by_duration:PT1H", "by_duration:P10D"):
        with text_consumer(bootstrap, auto_offset_reset=reset) as consumer:
            consumer.assign([partition])
            yield f"{reset} begins at {consumer.position(partition, 5)}"


def shown(record: ConsumerRecord[str, str]) -> str:
    headers = ", ".join(f"{key}={'null' if value is None else value.decode()}" for key, value in record.headers)
    key, value = ("null" if text is None else text for text in (record.key, record.value))
    return (
        f"{record.offset} {record.timestamp_type} {record.timestamp} {record.serialized_key_size} {record.serialized_value_size} "
        f"{key} {value} [{headers}] {number(record.leader_epoch)}"
    )


def number(offset: int | None) -> int:
    return -1 if offset is None else offset


def text_consumer(bootstrap: str, **settings: Any) -> Consumer[str, str]:
    text = StringDeserializer
    return Consumer(
        {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}, key_deserializer=text, value_deserializer=text, **settings
    )
