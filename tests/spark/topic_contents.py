"""Records into topics and out of them, for tests of pipelines: with librdkafka, so that neither side of the test is ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

READ_TIMEOUT_S = 30


@dataclass(frozen=True)
class Sent:
    key: str | None
    value: str | None
    timestamp_ms: int
    partition: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


def send(bootstrap: str, topic: str, records: Iterable[Sent]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for record in records:
        producer.produce(
            topic, record.value, record.key, record.partition, timestamp=record.timestamp_ms, headers=list(record.headers) or None
        )
    assert producer.flush(READ_TIMEOUT_S) == 0


def read(bootstrap: str, topic: str) -> list[Sent]:
    """All committed records of a topic, partition by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "tests", "enable.auto.commit": False, "enable.partition.eof": True})
    try:
        partitions = sorted(consumer.list_topics(topic, READ_TIMEOUT_S).topics[topic].partitions)
        return [record for partition in partitions for record in _read_partition(consumer, topic, partition)]
    finally:
        consumer.close()


def _read_partition(consumer: Consumer, topic: str, partition: int) -> Iterable[Sent]:
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    while True:
        message = consumer.poll(READ_TIMEOUT_S)
        assert message is not None, f"{topic}-{partition} could not be read to its end"
        error = message.error()
        if error is not None:
            assert error.name() == "_PARTITION_EOF", error
            return
        headers: Any = message.headers()  # a list: only the argument of `produce` may be a dict
        yield Sent(_text(message.key()), _text(message.value()), message.timestamp()[1], partition, tuple(headers or ()))


def _text(content: str | bytes | None) -> str | None:
    return content.decode() if isinstance(content, bytes) else content
