"""What docs/clients.md promises to those who move from another Python client: keys, offsets and groups stay what they were."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Generator
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import pytest

from barnabas.client import AsyncConsumer, Consumer, OffsetAndMetadata, Producer, TopicPartition
from barnabas.testing import EmbeddedBroker, broker

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of how kafka-python reads its schemas
    import kafka

PARTITIONS = 4
DEADLINE_S = 60
KEYS = [b"key-%d" % number for number in range(200)]
ALL = {TopicPartition("orders", number) for number in range(PARTITIONS)}

Placed = dict[bytes, int]


@pytest.fixture(scope="module")
def running() -> Generator[EmbeddedBroker, None, None]:
    with broker(topics={"orders": PARTITIONS}, group_initial_rebalance_delay_ms=0) as embedded:
        yield embedded


@pytest.fixture(scope="module")
def ours(running: EmbeddedBroker) -> Placed:
    with Producer(bootstrap_servers=running.bootstrap_servers) as producer:
        sent = {key: producer.send("orders", b"", key=key) for key in KEYS}
        return {key: delivery.result(DEADLINE_S).partition for key, delivery in sent.items()}


def _by_kafka_python(bootstrap: str) -> Placed:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    sent = {key: producer.send("orders", b"", key=key) for key in KEYS}
    placed = {key: future.get(DEADLINE_S).partition for key, future in sent.items()}
    producer.close()
    return placed


def _by_aiokafka(bootstrap: str) -> Placed:
    async def send() -> Placed:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            sent = {key: await producer.send("orders", b"", key=key) for key in KEYS}
            return {key: (await future).partition for key, future in sent.items()}

    return asyncio.run(send())


@pytest.mark.parametrize("theirs", [_by_kafka_python, _by_aiokafka])
def test_keys_go_to_the_partitions_they_went_to(theirs: Callable[[str], Placed], running: EmbeddedBroker, ours: Placed) -> None:
    assert theirs(running.bootstrap_servers) == ours


class Theirs(Protocol):
    """A member of a group in another client."""

    def turn(self) -> None: ...

    def assigned(self) -> set[int]: ...

    def commit(self, partition: int, offset: int) -> None: ...

    def close(self) -> None: ...


class KafkaPython:
    def __init__(self, bootstrap: str, group: str) -> None:
        self._consumer = kafka.KafkaConsumer("orders", bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)

    def turn(self) -> None:
        self._consumer.poll(timeout_ms=50)

    def assigned(self) -> set[int]:
        return {assigned.partition for assigned in self._consumer.assignment()}

    def commit(self, partition: int, offset: int) -> None:
        self._consumer.commit({kafka.TopicPartition("orders", partition): kafka.OffsetAndMetadata(offset, "", -1)})

    def close(self) -> None:
        self._consumer.close()


class Confluent:
    def __init__(self, bootstrap: str, group: str) -> None:
        self._consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
        self._consumer.subscribe(["orders"])

    def turn(self) -> None:
        self._consumer.poll(0.05)

    def assigned(self) -> set[int]:
        return {assigned.partition for assigned in self._consumer.assignment()}

    def commit(self, partition: int, offset: int) -> None:
        self._consumer.commit(offsets=[confluent_kafka.TopicPartition("orders", partition, offset)], asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


BLOCKING = pytest.mark.parametrize("kind", [KafkaPython, Confluent], ids=lambda kind: kind.__name__)


@BLOCKING
def test_a_member_that_joins_shares_the_group_and_goes_on_where_it_was(
    kind: type[KafkaPython | Confluent], running: EmbeddedBroker
) -> None:
    group = f"moving-{kind.__name__}"
    theirs: Theirs = kind(running.bootstrap_servers, group)
    try:
        _until(lambda: len(theirs.assigned()) == PARTITIONS, theirs.turn)
        theirs.commit(1, 7)
        with Consumer[bytes, bytes](bootstrap_servers=running.bootstrap_servers, group_id=group) as consumer:
            consumer.subscribe(["orders"])
            assert consumer.committed(TopicPartition("orders", 1)) == OffsetAndMetadata(7)

            def shared() -> bool:
                mine = {assigned.partition for assigned in consumer.assignment()}
                return bool(mine) and bool(theirs.assigned()) and mine ^ theirs.assigned() == set(range(PARTITIONS))

            _until(shared, theirs.turn, lambda: consumer.poll(0.05))
            theirs.close()
            _until(lambda: consumer.assignment() == ALL, lambda: consumer.poll(0.05))
            assert consumer.position(TopicPartition("orders", 1)) >= 7
    finally:
        theirs.close()


def test_a_member_of_aiokafka_shares_the_group_with_round_robin(running: EmbeddedBroker) -> None:
    async def share() -> None:
        settings: dict[str, Any] = {"bootstrap_servers": running.bootstrap_servers, "group_id": "moving-aiokafka"}
        async with aiokafka.AIOKafkaConsumer("orders", enable_auto_commit=False, **settings) as theirs:
            await theirs.getmany(timeout_ms=50)
            await theirs.commit({aiokafka.TopicPartition("orders", 1): 7})
            member = AsyncConsumer[bytes, bytes](partition_assignment_strategy="roundrobin", **settings)
            async with member as consumer, asyncio.timeout(DEADLINE_S):
                consumer.subscribe(["orders"])
                assert await consumer.committed(TopicPartition("orders", 1)) == OffsetAndMetadata(7)
                mine: set[int] = set()
                while not mine or mine ^ {each.partition for each in theirs.assignment()} != set(range(PARTITIONS)):
                    await theirs.getmany(timeout_ms=50)
                    await consumer.poll(0.05)
                    mine = {assigned.partition for assigned in consumer.assignment()}
                await theirs.stop()
                while consumer.assignment() != ALL:
                    await consumer.poll(0.05)

    asyncio.run(share())


def _until(done: Callable[[], bool], *turns: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < deadline, "it did not come about in time"
        for turn in turns:
            turn()
