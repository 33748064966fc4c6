"""Applications in a simulated cluster, on the real clients: a transactional producer, and a group that reads committed records.

They use the clocks and the random source of their world. Like `workload` they record the responses they received and the records they
read. A contradiction that shows at once goes to `wrong`; the rest is compared with the logs at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
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
LIFE_S: Final = (5.0, 40.0)  # of a member of the group, before it leaves and another one joins
ABORTED_EVERY: Final = 4
TRANSACTIONAL_ID: Final = "writer"
AT_ONCE: Final = 4  # transactions that follow each other without a pause
REBALANCE_S: Final = 60.0  # the upper bound for all members of a group to join

# Shorter than real timeouts, because a history is short.
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
    """Makes clients that use the clock and the random source of a simulated world."""

    def __init__(self, servers: str, clock: Clock, random: Random, security: Mapping[str, object] | None = None) -> None:
        self.servers = servers
        self.security = security or {}
        self.clock = clock
        self.random = random

    def producer(self, transactional_id: str) -> AsyncProducer:
        settings = {**_PRODUCER, **self.security, "bootstrap.servers": self.servers, "transactional.id": transactional_id}
        return AsyncProducer.of(ProducerCore(settings, {}, self.clock, self.random))

    def consumer(self, group_id: str, protocol: str, client_id: str) -> AsyncConsumer[bytes, bytes]:
        settings = {
            **_CONSUMER,
            **self.security,
            "bootstrap.servers": self.servers,
            "group.id": group_id,
            "group.protocol": protocol,
            "client.id": client_id,
        }
        if protocol == "classic":
            settings |= _CLASSIC
        return AsyncConsumer.of(ConsumerCore(consumer_config(settings, {}), call_here, clock=self.clock, random=self.random))


class Ending(Enum):
    """The end of a transaction, as its producer received it."""

    ABORTED = "aborted"
    COMMITTED = "committed"
    UNKNOWN = "unknown"  # the commit was sent, and no response arrived


def values_of_transaction(number: int, partitions: int) -> list[bytes]:
    return [b"x%d-%d" % (number, partition) for partition in range(partitions)]


class TransactionalWriter:
    """Runs one transaction after the other, each with a record for every partition of a topic; one in four is aborted. Some begin
    immediately after the last one ended, while its markers may still be in flight. `wrong` holds errors that no fault explains."""

    def __init__(self, environment: ApplicationEnvironment, topic: str, partitions: int) -> None:
        self.endings: dict[int, Ending] = {}
        self.wrong: list[str] = []
        self._environment = environment
        self._topic = topic
        self._partitions = partitions
        self._producer: AsyncProducer | None = None

    async def write(self, count: int, pause_s: float) -> None:
        for number in range(count):
            self.endings[number] = Ending.ABORTED  # until a commit is sent
            try:
                await self._transact(number)
            except KafkaError:
                await self._give_up()
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(AT_ONCE * pause_s)
        await self._give_up()

    async def settle(self) -> None:
        """Ends the transaction that the last producer may have left open. Its timeout is measured by the clock of the broker where it
        began: if that clock was ahead then, the timeout passes only when the corrected clock reaches that time again."""
        while True:
            try:
                self._producer = self._environment.producer(TRANSACTIONAL_ID)
                await self._producer.init_transactions()
                return
            except KafkaError:
                await asyncio.sleep(RETRY_S)
            finally:
                await self._give_up()

    async def _transact(self, number: int) -> None:
        producer = self._producer
        if producer is None:
            producer = self._producer = self._environment.producer(TRANSACTIONAL_ID)
            await producer.init_transactions()  # ends the transaction that an earlier producer left open
        producer.begin_transaction()
        sent = [
            await producer.send(self._topic, value, partition=partition)
            for partition, value in enumerate(values_of_transaction(number, self._partitions))
        ]
        try:
            for future in sent:
                await future
        except InvalidTxnState as error:  # a transaction aborted by timeout would have another epoch
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
    """What the members of a group have observed: records by offset, the highest offsets whose commit succeeded, and the owner of each
    partition in each generation."""

    read: dict[TopicPartition, dict[int, bytes]] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    owners: dict[tuple[int, TopicPartition], str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def note_owner(self, member: str, generation: int, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            owner = self.owners.setdefault((generation, partition), member)
            if owner != member:
                self.wrong.append(f"{partition} belongs to {owner} and to {member} in generation {generation}")

    def note_read(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        earlier = self.read.setdefault(partition, {}).setdefault(offset, value)
        if earlier != value:
            self.wrong.append(f"{earlier!r} was read at {offset} of {partition}, and later {value!r}")

    def note_committed(self, partition: TopicPartition, offset: int | None, at_least: int | None) -> None:
        """An offset that was fetched or committed, after a commit of `at_least` had succeeded."""
        if at_least is not None and (offset is None or offset < at_least):
            self.wrong.append(f"the offset of {partition} was committed as {at_least}, and later is {offset}")


class Member(ConsumerRebalanceListener):
    """Reads as a member of a group and commits what it has read. From time to time it leaves, or stops without leaving, and joins again."""

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
                    self._notes.note_read(TopicPartition(record.topic, record.partition), record.offset, record.value or b"")
                if records:
                    committed = dict(self._notes.committed)
                    offsets = records.next_offsets()
                    await consumer.commit_sync(offsets, COMMIT_S)
                    for partition, metadata in offsets.items():
                        self._notes.note_committed(partition, metadata.offset, committed.get(partition))
                        self._notes.committed[partition] = max(metadata.offset, self._notes.committed.get(partition, 0))
            except KafkaError:
                await asyncio.sleep(RETRY_S)

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        consumer = self._consumer
        if consumer is None or not partitions:
            return
        self._notes.note_owner(f"{self._name}-{self._lives}", consumer.group_metadata().generation_id, partitions)
        committed = dict(self._notes.committed)
        try:
            fetched = await consumer.committed(sorted(partitions))
        except KafkaError:
            return
        for partition in partitions:
            offset = fetched.get(partition)
            self._notes.note_committed(partition, None if offset is None else offset.offset, committed.get(partition))
