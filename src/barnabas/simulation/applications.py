"""Applications in a simulated cluster, on the real clients: one that writes in transactions, and a group that reads what was committed.

They run on the clocks and the chance of their world. Like `workload` they note what they were told and what they saw; what contradicts
itself at once is told in `wrong`, the rest is compared with the logs at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

from barnabas.client.clock import Clock
from barnabas.client.consumer.async_consumer import AsyncConsumer
from barnabas.client.consumer.config import consumer_config
from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener, call_here
from barnabas.client.errors import InvalidTxnState, KafkaError
from barnabas.client.producer.async_producer import AsyncProducer
from barnabas.client.producer.core import ProducerCore
from barnabas.topic_partition import TopicPartition

POLL_S: Final = 1.0
COMMIT_S: Final = 15.0
CLOSE_S: Final = 3.0
RETRY_S: Final = 0.2
LIFE_S: Final = (5.0, 40.0)  # of a member of the group, before it leaves and comes back as another
ABORTED_EVERY: Final = 4
AT_ONCE: Final = 4  # transactions that follow each other without a pause
REBALANCE_S: Final = 60.0  # at most, for all members of a group to join

# Shorter than real ones, as a history is.
_COMMON: Final[dict[str, object]] = {
    "enable.metrics.push": False,
    "request.timeout.ms": 4_000,
    "socket.connection.setup.timeout.ms": 2_000,
    "socket.connection.setup.timeout.max.ms": 4_000,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 250,
    "metadata.max.age.ms": 10_000,
}
_PRODUCER: Final[dict[str, object]] = {
    **_COMMON,
    "max.block.ms": 20_000,
    "delivery.timeout.ms": 20_000,
    "transaction.timeout.ms": 15_000,
}
_CONSUMER: Final[dict[str, object]] = {
    **_COMMON,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "fetch.max.wait.ms": 1_000,
    "default.api.timeout.ms": 15_000,
    "max.poll.interval.ms": int(REBALANCE_S * 1000),
}
_CLASSIC: Final[dict[str, object]] = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 2_000}


class ApplicationEnvironment:
    """What makes a client one of a simulated world."""

    def __init__(self, servers: str, clock: Clock, random: Random) -> None:
        self.servers = servers
        self.clock = clock
        self.random = random

    def producer(self, transactional_id: str) -> AsyncProducer:
        settings = {**_PRODUCER, "bootstrap.servers": self.servers, "transactional.id": transactional_id}
        return AsyncProducer.of(ProducerCore(settings, {}, self.clock, self.random))

    def consumer(self, group_id: str, protocol: str, client_id: str) -> AsyncConsumer[bytes, bytes]:
        settings = {
            **_CONSUMER,
            "bootstrap.servers": self.servers,
            "group.id": group_id,
            "group.protocol": protocol,
            "client.id": client_id,
        }
        if protocol == "classic":
            settings |= _CLASSIC
        return AsyncConsumer.of(ConsumerCore(consumer_config(settings, {}), call_here, clock=self.clock, random=self.random))


class Ending(Enum):
    """Of a transaction, as far as its producer knows."""

    ABORTED = "aborted"
    COMMITTED = "committed"
    UNKNOWN = "unknown"  # it was to be committed, and nobody has said what became of that


def values_of_transaction(number: int, partitions: int) -> list[bytes]:
    return [b"x%d-%d" % (number, partition) for partition in range(partitions)]


class TransactionalWriter:
    """Transaction after transaction, each with a record for every partition of a topic; one in four is taken back. It begins some of them
    at once when the last is ended, while markers may still be on their way. `wrong` are errors that no fault is a reason for."""

    def __init__(self, environment: ApplicationEnvironment, topic: str, partitions: int) -> None:
        self.endings: dict[int, Ending] = {}
        self.wrong: list[str] = []
        self._environment = environment
        self._topic = topic
        self._partitions = partitions
        self._producer: AsyncProducer | None = None

    async def write(self, count: int, pause_s: float) -> None:
        for number in range(count):
            self.endings[number] = Ending.ABORTED  # unless it comes to more
            try:
                await self._transact(number)
            except KafkaError:
                await self._give_up()
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(AT_ONCE * pause_s)
        await self._give_up()

    async def settle(self) -> None:
        """Ends what the last producer may have left open. By itself it times out, but by the clock of the broker that began it: one that
        was ahead then has to come to that time again."""
        while True:
            try:
                self._producer = self._environment.producer("writer")
                await self._producer.init_transactions()
                return
            except KafkaError:
                await asyncio.sleep(RETRY_S)
            finally:
                await self._give_up()

    async def _transact(self, number: int) -> None:
        producer = self._producer
        if producer is None:
            producer = self._producer = self._environment.producer("writer")
            await producer.init_transactions()  # what an earlier one has left open is settled
        producer.begin_transaction()
        sent = [
            await producer.send(self._topic, value, partition=partition)
            for partition, value in enumerate(values_of_transaction(number, self._partitions))
        ]
        try:
            for each in sent:
                await each
        except InvalidTxnState as error:  # a transaction that was aborted meanwhile, because it took too long, has another epoch
            self.wrong.append(f"a record of transaction {number} was refused as one that is not open: {error}")
            raise
        if number % ABORTED_EVERY == ABORTED_EVERY - 1:
            await producer.abort_transaction()
            return
        self.endings[number] = Ending.UNKNOWN
        await producer.commit_transaction()
        self.endings[number] = Ending.COMMITTED

    async def _give_up(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            try:
                await producer.close(0)
            except KafkaError:
                pass


@dataclass
class GroupNotes:
    """What the members of a group have seen: records by their offsets, the furthest offsets of which a commit was answered, and who
    owned which partition in which generation."""

    read: dict[TopicPartition, dict[int, bytes]] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    owners: dict[tuple[int, TopicPartition], str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def owns(self, member: str, generation: int, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            owner = self.owners.setdefault((generation, partition), member)
            if owner != member:
                self.wrong.append(f"{partition} belongs to {owner} and to {member} in generation {generation}")

    def saw(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        known = self.read.setdefault(partition, {}).setdefault(offset, value)
        if known != value:
            self.wrong.append(f"{known!r} was read at {offset} of {partition}, and later {value!r}")

    def found(self, partition: TopicPartition, offset: int | None, at_least: int | None) -> None:
        """An offset that was asked for, or committed, when others had been answered before."""
        if at_least is not None and (offset is None or offset < at_least):
            self.wrong.append(f"the offset of {partition} was committed as {at_least}, and later is {offset}")


class Member(ConsumerRebalanceListener):
    """Reads as one of a group and commits what it has read. From time to time it leaves, or is gone without a word, and comes back."""

    def __init__(
        self, environment: ApplicationEnvironment, group_id: str, protocol: str, name: str, topics: Sequence[str], notes: GroupNotes
    ) -> None:
        self._environment = environment
        self._group_id = group_id
        self._protocol = protocol
        self._name = name
        self._topics = list(topics)
        self._notes = notes
        self._lives = 0
        self._consumer: AsyncConsumer[bytes, bytes] | None = None

    async def live(self) -> None:
        while True:
            self._lives += 1
            consumer = self._consumer = self._environment.consumer(self._group_id, self._protocol, f"{self._name}-{self._lives}")
            consumer.subscribe(self._topics, self)
            await self._read(consumer, self._environment.random.uniform(*LIFE_S))
            try:
                await consumer.close(CLOSE_S)
            except KafkaError:
                pass

    async def _read(self, consumer: AsyncConsumer[bytes, bytes], life_s: float) -> None:
        until_ms = self._environment.clock.monotonic_ms() + int(life_s * 1000)
        while self._environment.clock.monotonic_ms() < until_ms:
            try:
                records = await consumer.poll(POLL_S)
                for record in records:
                    self._notes.saw(TopicPartition(record.topic, record.partition), record.offset, record.value or b"")
                if records:
                    known = dict(self._notes.committed)
                    offsets = records.next_offsets()
                    await consumer.commit_sync(offsets, COMMIT_S)
                    for partition, each in offsets.items():
                        self._notes.found(partition, each.offset, known.get(partition))
                        self._notes.committed[partition] = max(each.offset, self._notes.committed.get(partition, 0))
            except KafkaError:
                await asyncio.sleep(RETRY_S)

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        consumer = self._consumer
        if consumer is None or not partitions:
            return
        self._notes.owns(f"{self._name}-{self._lives}", consumer.group_metadata().generation_id, partitions)
        known = dict(self._notes.committed)
        try:
            found = await consumer.committed(sorted(partitions))
        except KafkaError:
            return
        for partition in partitions:
            offset = found.get(partition)
            self._notes.found(partition, None if offset is None else offset.offset, known.get(partition))
