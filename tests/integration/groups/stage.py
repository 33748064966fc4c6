"""What the tools find on a broker: two topics with records of known times, groups with offsets alone, and groups whose members live."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

THREE = "three"  # a topic of three partitions with ten records each
ONE = "one"  # a topic of one partition with five
RECORDS = {THREE: (10, 10, 10), ONE: (5,)}
START_MS = 1_700_000_000_000  # of the first record of a partition; one a second

EMPTY = "empty"  # classic, with offsets alone
EMPTY_CONSUMER = "empty-consumer"  # of KIP-848, its member gone
LIVE = "live"  # classic, with a member
STATIC = "static"  # classic, with a static member
BUSY = "busy"  # of KIP-848, with a member

WAIT_S = 30


@contextmanager
def staged(bootstrap: str) -> Generator[None, None, None]:
    """All of it, with members that live as long as the block runs."""
    make_topics(bootstrap)
    with with_groups(bootstrap):
        yield


@contextmanager
def with_groups(bootstrap: str) -> Generator[None, None, None]:
    """The groups alone, on a broker that has the topics."""
    commit(bootstrap, EMPTY, {(THREE, 0): 3, (THREE, 1): 5, (THREE, 2): 10, (ONE, 0): 1})
    _member(bootstrap, EMPTY_CONSUMER, {"group.protocol": "consumer"}).close()
    with ExitStack() as members:
        for group, config in _LIVING.items():
            members.callback(_member(bootstrap, group, config).close)
        yield


_LIVING: dict[str, dict[str, str]] = {
    LIVE: {"partition.assignment.strategy": "range"},
    STATIC: {"partition.assignment.strategy": "cooperative-sticky", "group.instance.id": "instance-1"},
    BUSY: {"group.protocol": "consumer"},
}


_NOT_YET = (
    confluent_kafka.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    confluent_kafka.KafkaError.COORDINATOR_NOT_AVAILABLE,
    confluent_kafka.KafkaError.NOT_COORDINATOR,
)


def make_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, len(counts), 1, config={"retention.ms": "-1"}) for name, counts in RECORDS.items()]
    for made in admin.create_topics(topics).values():
        made.result(WAIT_S)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for topic, counts in RECORDS.items():
        for partition, count in enumerate(counts):
            for number in range(count):
                producer.produce(topic, f"{partition}-{number}".encode(), partition=partition, timestamp=START_MS + number * 1000)
    assert producer.flush(WAIT_S) == 0


def commit(bootstrap: str, group: str, offsets: dict[tuple[str, int], int]) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    partitions = [confluent_kafka.TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
    deadline = time.monotonic() + WAIT_S
    while not _committed(consumer, partitions):
        assert time.monotonic() < deadline, f"{group} on {bootstrap} has no coordinator"
    consumer.close()


def _committed(consumer: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> bool:
    """Whether it was done; the first group of a broker has to wait for its coordinator, and this client does not."""
    try:
        consumer.commit(offsets=partitions, asynchronous=False)
    except confluent_kafka.KafkaException as problem:
        if problem.args[0].code() not in _NOT_YET:
            raise
        return False
    return True


def _member(bootstrap: str, group: str, config: dict[str, str]) -> confluent_kafka.Consumer:
    """A member that has read and committed its first topic, and that keeps its session by itself from there on."""
    common = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": f"client-of-{group}", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**common, **config, "enable.auto.commit": "false"})
    consumer.subscribe([THREE])
    left, deadline = sum(RECORDS[THREE]), time.monotonic() + WAIT_S
    while left and time.monotonic() < deadline:
        left -= sum(1 for message in consumer.consume(left, 0.2) if not message.error())
    assert not left, f"{group} on {bootstrap} did not get {left} records"
    consumer.commit(asynchronous=False)
    return consumer
