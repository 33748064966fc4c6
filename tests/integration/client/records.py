"""Records in topics for consumers to read, written by librdkafka, so that our consumer is judged apart from our producer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from confluent_kafka import Producer

from barnabas.client.consumer.consumer import Consumer
from barnabas.topic_partition import TopicPartition

DEADLINE_S = 30
T = TypeVar("T")


def produce(bootstrap: str, topic: str, records: Iterable[Any], *, partition: int = 0, **settings: Any) -> None:
    """Values, or dictionaries of what `Producer.produce` takes."""
    producer = Producer({"bootstrap.servers": bootstrap, **{key.replace("_", "."): value for key, value in settings.items()}})
    failed: list[object] = []
    for record in records:
        given = record if isinstance(record, dict) else {"value": record}
        producer.produce(topic, **({"partition": partition} | given), on_delivery=lambda error, _: failed.append(error) if error else None)
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0
    assert not failed


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def poll_until(consumer: Consumer[Any, Any], count: int) -> list[Any]:
    """At least so many records; fails after a while."""
    received: list[Any] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(received) < count:
        assert time.monotonic() < deadline, f"{len(received)} of {count} records came"
        received += consumer.poll(1)
    return received


def wait_for(consumer: Consumer[Any, Any], condition: Callable[[], T]) -> T:
    """Polls until the condition holds; what polls return is thrown away."""
    deadline = time.monotonic() + DEADLINE_S
    while not (result := condition()):
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    return result


def partitions(topic: str, count: int) -> Sequence[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]
