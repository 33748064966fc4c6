"""Consume, transform, produce: the offsets of a member of a group are committed with a transaction, and one that was put out is fenced."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import CommitFailed, KafkaError
from barnabas.client.producer.producer import Producer
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker

WAIT_S = 30
PROTOCOLS: dict[str, dict[str, object]] = {
    "classic": {"group.protocol": "classic", "heartbeat.interval.ms": 200},
    "consumer": {"group.protocol": "consumer"},
}
both_protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


class Line:
    """A topic to read from, one to write to, a consumer and a producer between them."""

    def __init__(self, bootstrap: str, source: str, target: str, protocol: str, **settings: Any) -> None:
        self.source, self.target = source, target
        self._bootstrap = bootstrap
        self.consumer: Consumer[bytes, bytes] = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"group-of-{source}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                **PROTOCOLS[protocol],
            },
            **settings,
        )
        self.producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"line-of-{source}"})
        self.producer.init_transactions()
        self.consumer.subscribe([source])

    def feed(self, *values: bytes) -> None:
        feeder = confluent_kafka.Producer({"bootstrap.servers": self._bootstrap})
        for value in values:
            feeder.produce(self.source, value, partition=0)
        assert feeder.flush(WAIT_S) == 0

    def read(self) -> Any:
        deadline = time.monotonic() + WAIT_S
        while not (records := self.consumer.poll(0.1)):
            assert time.monotonic() < deadline, "no records"
        return records

    def close(self) -> None:
        self.consumer.close(5)
        self.producer.close(5)


@contextmanager
def made_line(bootstrap: str, new_topic: TopicMaker, protocol: str, **settings: Any) -> Generator[Line, None, None]:
    made = Line(bootstrap, new_topic("line-source", partitions=1), new_topic("line-target", partitions=1), protocol, **settings)
    yield made
    made.close()


@pytest.fixture
def line(bootstrap: str, new_topic: TopicMaker, protocol: str) -> Generator[Line, None, None]:
    with made_line(bootstrap, new_topic, protocol) as made:
        yield made


@pytest.fixture
def impatient_line(bootstrap: str, new_topic: TopicMaker, protocol: str) -> Generator[Line, None, None]:
    """Its consumer is put out of the group soon after the last poll."""
    with made_line(bootstrap, new_topic, protocol, max_poll_interval_ms=2000) as made:
        yield made


@both_protocols
def test_offsets_are_committed_with_the_transaction(line: Line) -> None:
    line.feed(b"a", b"b")
    records = line.read()
    with line.producer.transaction():
        for record in records:
            line.producer.send(line.target, record.value)
        line.producer.send_offsets_to_transaction(records.next_offsets(), line.consumer.group_metadata())
    committed = line.consumer.committed(TopicPartition(line.source, 0))
    assert committed is not None
    assert committed.offset == records.next_offsets()[TopicPartition(line.source, 0)].offset


@both_protocols
def test_offsets_of_an_aborted_transaction_are_not_committed(line: Line) -> None:
    line.feed(b"a")
    records = line.read()
    with pytest.raises(ZeroDivisionError), line.producer.transaction():
        line.producer.send_offsets_to_transaction(records.next_offsets(), line.consumer.group_metadata())
        raise ZeroDivisionError
    assert line.consumer.committed(TopicPartition(line.source, 0)) is None


@both_protocols
def test_a_member_that_was_put_out_is_fenced(impatient_line: Line, bootstrap: str, protocol: str) -> None:
    line = impatient_line
    line.feed(b"a")
    records = line.read()
    heir: Consumer[bytes, bytes] = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"group-of-{line.source}", "enable.auto.commit": False, **PROTOCOLS[protocol]}
    )
    with heir:
        heir.subscribe([line.source])
        deadline = time.monotonic() + WAIT_S
        while not heir.assignment():
            assert time.monotonic() < deadline, "the partition was not taken over"
            heir.poll(0.1)
        with pytest.raises(KafkaError) as caught, line.producer.transaction():
            line.producer.send_offsets_to_transaction(records.next_offsets(), line.consumer.group_metadata())
        assert isinstance(caught.value, CommitFailed)
        assert heir.committed(TopicPartition(line.source, 0)) is None
