"""Groups and transactions of a cluster: their coordinators are wherever their partitions are led, and go where these go."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.cluster import Cluster
from tests.integration.cluster.describing import Description, until

TIMEOUT_S = 90


@pytest.fixture
def described(three: Cluster) -> Description:
    return Description(three.bootstrap)


def read(consumer: Consumer, count: int) -> list[bytes]:
    values: list[bytes] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(values) < count:
        assert time.monotonic() < deadline, f"{len(values)} of {count} records after {TIMEOUT_S} s"
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value() or b"")
    return values


def write(three: Cluster, topic: str, values: Iterator[int], count: int) -> None:
    producer = Producer({"bootstrap.servers": three.bootstrap, "acks": "all", "enable.idempotence": "true"})
    failures: list[str] = []
    for _, number in zip(range(count), values, strict=False):
        producer.produce(topic, str(number).encode(), on_delivery=lambda error, _: failures.append(str(error)) if error else None)
    producer.flush(TIMEOUT_S)
    assert failures == []


def test_a_group_goes_on_where_it_was_when_its_coordinator_dies(three: Cluster, described: Description) -> None:
    described.create("t", partitions=2)
    write(three, "t", iter(range(20)), 20)
    settings = {
        "bootstrap.servers": three.bootstrap,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "session.timeout.ms": 10_000,
    }
    consumer = Consumer(settings)
    consumer.subscribe(["t"])
    assert len(read(consumer, 20)) == 20
    consumer.commit(asynchronous=False)
    coordinator = described.coordinator("g")
    three.brokers[coordinator].kill()
    until(lambda: described.coordinator("g") not in (coordinator, -1), "another coordinator")
    until(lambda: all(described.leader("t", number) not in (coordinator, -1) for number in range(2)), "other leaders")
    write(three, "t", iter(range(20, 30)), 10)
    assert sorted(int(value) for value in read(consumer, 10)) == list(range(20, 30))
    consumer.commit(asynchronous=False)
    consumer.close()
    again = Consumer(settings)
    committed = again.committed([TopicPartition("t", number) for number in range(2)], timeout=30)
    assert sum(offset.offset for offset in committed) == 30
    again.close()
    assert three.tracebacks() == []


def test_transactions_over_several_brokers_are_whole_before_and_after_their_coordinator_dies(
    three: Cluster, described: Description
) -> None:
    described.create("in", partitions=3)
    described.create("out", partitions=3)
    producer = Producer({"bootstrap.servers": three.bootstrap, "transactional.id": "tx", "transaction.timeout.ms": 60_000})
    producer.init_transactions(TIMEOUT_S)

    def transact(values: range, commit: bool) -> None:
        producer.begin_transaction()
        for number in values:
            producer.produce("out", str(number).encode(), partition=number % 3)
        if commit:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.flush(TIMEOUT_S)
            producer.abort_transaction(TIMEOUT_S)

    transact(range(30), commit=True)
    transact(range(100, 130), commit=False)
    coordinator = described.coordinator("tx", transactions=True)
    three.brokers[coordinator].kill()
    until(lambda: described.coordinator("tx", transactions=True) not in (coordinator, -1), "another coordinator")
    until(lambda: all(described.leader("out", number) not in (coordinator, -1) for number in range(3)), "other leaders")
    transact(range(30, 60), commit=True)
    three.brokers[coordinator].start()
    three.brokers[coordinator].wait_ready()
    transact(range(130, 160), commit=False)
    transact(range(60, 90), commit=True)
    consumer = Consumer(
        {
            "bootstrap.servers": three.bootstrap,
            "group.id": "check",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe(["out"])
    assert sorted(int(value) for value in read(consumer, 90)) == list(range(90))
    consumer.close()
    assert three.tracebacks() == []
