"""A member of a consumer group on one of the Python clients, a program of its own so that it can be killed.

Takes the words of java/Member.java after the name of the client, and tells the same on stdout: see member.py. Stops when stdin ends.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

SESSION_TIMEOUT_MS = 6000
STATIC_SESSION_TIMEOUT_MS = 30_000  # a static member has this time to start again, also on a busy machine
HEARTBEAT_INTERVAL_MS = 500
RECONNECT_MS_MAX = 500
POLL_MS = 100
READ_MAX = 200


class Place(NamedTuple):
    bootstrap: str
    group: str
    topic: str
    strategy: str
    instance: str | None


class Told:
    """What the member holds, and what it says about it."""

    def __init__(self) -> None:
        self._held: set[int] = set()

    def assigned(self, partitions: Iterable[Any]) -> None:
        self._held |= {one.partition for one in partitions}
        self._hold()

    def revoked(self, partitions: Iterable[Any]) -> None:
        self._held -= {one.partition for one in partitions}
        self._hold()

    def read(self, partition: int, first: int, last: int) -> None:
        print("read", partition, first, last, flush=True)

    def note(self, problem: object) -> None:
        print("note", " ".join(repr(problem).split()), flush=True)

    def _hold(self) -> None:
        print("hold", time.monotonic_ns(), ",".join(map(str, sorted(self._held))), flush=True)


def session_timeout_ms(place: Place) -> int:
    return STATIC_SESSION_TIMEOUT_MS if place.instance else SESSION_TIMEOUT_MS


def confluent(place: Place, stopping: threading.Event) -> None:
    import confluent_kafka

    told = Told()
    config: dict[str, Any] = {
        "bootstrap.servers": place.bootstrap,
        "group.id": place.group,
        "enable.auto.commit": False,
        "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
        "auto.offset.reset": "earliest",
    }
    if place.strategy == "consumer":
        config["group.protocol"] = "consumer"
    else:
        config |= {"partition.assignment.strategy": place.strategy, "session.timeout.ms": session_timeout_ms(place)}
        config["heartbeat.interval.ms"] = HEARTBEAT_INTERVAL_MS
    if place.instance:
        config["group.instance.id"] = place.instance
    consumer = confluent_kafka.Consumer(config)
    uncommitted: dict[int, int] = {}

    def commit() -> None:
        offsets = [confluent_kafka.TopicPartition(place.topic, partition, offset) for partition, offset in uncommitted.items()]
        try:
            if offsets:
                results = consumer.commit(offsets=offsets, asynchronous=False)
                for one in results or ():
                    if one.error is None:
                        uncommitted.pop(one.partition)
        except confluent_kafka.KafkaException as problem:
            told.note(problem)

    def revoked(_consumer: object, partitions: list[Any]) -> None:
        commit()
        lost(_consumer, partitions)

    def lost(_consumer: object, partitions: list[Any]) -> None:
        for one in partitions:
            uncommitted.pop(one.partition, None)
        told.revoked(partitions)

    consumer.subscribe([place.topic], on_assign=lambda _consumer, partitions: told.assigned(partitions), on_revoke=revoked, on_lost=lost)
    while not stopping.is_set():
        wait_s = POLL_MS / 1000
        for _ in range(READ_MAX):
            message = consumer.poll(wait_s)
            if message is None:
                break
            partition, offset = message.partition(), message.offset()
            if message.error() or partition is None or offset is None:
                told.note(message.error())
                break
            told.read(partition, offset, offset)
            uncommitted[partition] = offset + 1
            wait_s = 0
        commit()
    consumer.close()


def kafka_python(place: Place, stopping: threading.Event) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import kafka
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    assignors = [CooperativeStickyAssignor, RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor]
    told = Told()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=place.bootstrap,
        group_id=place.group,
        group_instance_id=place.instance,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        partition_assignment_strategy=[assignor for assignor in assignors if assignor.name == place.strategy],
        session_timeout_ms=session_timeout_ms(place),
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        reconnect_backoff_max_ms=RECONNECT_MS_MAX,
    )
    uncommitted = False

    def commit() -> None:
        nonlocal uncommitted
        if uncommitted:
            try:
                consumer.commit()
                uncommitted = False
            except kafka.errors.KafkaError as problem:
                told.note(problem)

    class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            told.assigned(assigned)

        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            commit()
            told.revoked(revoked)

        def on_partitions_lost(self, lost: Iterable[Any]) -> None:
            told.revoked(lost)

    consumer.subscribe([place.topic], listener=Listener())
    # A member that joins before it knows the topic's partitions gets none, and joins again once it does. If the time of a poll is over
    # during that second join, kafka-python 3.0.12 forgets it: it stays without partitions and heartbeats, with Apache Kafka as well.
    consumer.partitions_for_topic(place.topic)
    while not stopping.is_set():
        for partition, records in consumer.poll(POLL_MS).items():
            told.read(partition.partition, records[0].offset, records[-1].offset)
            uncommitted = True
        commit()
    consumer.close()


def aiokafka(place: Place, stopping: threading.Event) -> None:
    asyncio.run(_aiokafka(place, stopping))


async def _aiokafka(place: Place, stopping: threading.Event) -> None:
    import aiokafka
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    assignors = [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor]
    told = Told()
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=place.bootstrap,
        group_id=place.group,
        group_instance_id=place.instance,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        partition_assignment_strategy=[assignor for assignor in assignors if assignor.name == place.strategy],
        session_timeout_ms=session_timeout_ms(place),
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
    )
    busy = asyncio.Lock()  # the client rejoins on a task of its own: not between a read and its commit

    class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            told.assigned(assigned)

        async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            async with busy:
                told.revoked(revoked)

    consumer.subscribe([place.topic], listener=Listener())
    await consumer.start()
    while not stopping.is_set():
        batches = await consumer.getmany(timeout_ms=POLL_MS)
        async with busy:
            for partition, records in batches.items():
                told.read(partition.partition, records[0].offset, records[-1].offset)
                try:
                    await consumer.commit({partition: records[-1].offset + 1})
                except aiokafka.errors.KafkaError as problem:
                    told.note(problem)
    told.revoked(consumer.assignment())
    await consumer.stop()


def _settings(place: Place) -> dict[str, Any]:
    """Of both our clients."""
    settings: dict[str, Any] = {
        "bootstrap.servers": place.bootstrap,
        "group.id": place.group,
        "group.instance.id": place.instance,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
    }
    if place.strategy == "consumer":
        return settings | {"group.protocol": "consumer"}
    return settings | {
        "partition.assignment.strategy": [place.strategy],
        "session.timeout.ms": session_timeout_ms(place),
        "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
    }


def barnabas(place: Place, stopping: threading.Event) -> None:
    from barnabas.client.consumer.consumer import Consumer
    from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
    from barnabas.client.errors import KafkaError

    told = Told()
    uncommitted = False

    def commit() -> None:
        nonlocal uncommitted
        if uncommitted:
            try:
                consumer.commit_sync()
                uncommitted = False
            except KafkaError as problem:
                told.note(problem)

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: Iterable[Any]) -> None:
            told.assigned(partitions)

        def on_partitions_revoked(self, partitions: Iterable[Any]) -> None:
            commit()
            told.revoked(partitions)

        def on_partitions_lost(self, partitions: Iterable[Any]) -> None:
            told.revoked(partitions)

    consumer: Consumer[bytes, bytes] = Consumer(_settings(place))
    with consumer:
        consumer.subscribe([place.topic], Listener())
        while not stopping.is_set():
            records = consumer.poll(POLL_MS / 1000)
            for partition in records.partitions():
                read = records.records(partition)
                told.read(partition.partition, read[0].offset, read[-1].offset)
                uncommitted = True
            commit()


def barnabas_async(place: Place, stopping: threading.Event) -> None:
    asyncio.run(_barnabas(place, stopping))


async def _barnabas(place: Place, stopping: threading.Event) -> None:
    from barnabas.client.consumer.async_consumer import AsyncConsumer
    from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
    from barnabas.client.errors import KafkaError

    told = Told()
    uncommitted = False

    async def commit() -> None:
        nonlocal uncommitted
        if uncommitted:
            try:
                await consumer.commit_sync()
                uncommitted = False
            except KafkaError as problem:
                told.note(problem)

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: Iterable[Any]) -> None:
            told.assigned(partitions)

        async def on_partitions_revoked(self, partitions: Iterable[Any]) -> None:
            await commit()
            told.revoked(partitions)

        def on_partitions_lost(self, partitions: Iterable[Any]) -> None:
            told.revoked(partitions)

    consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(_settings(place))
    async with consumer:
        consumer.subscribe([place.topic], Listener())
        while not stopping.is_set():
            records = await consumer.poll(POLL_MS / 1000)
            for partition in records.partitions():
                read = records.records(partition)
                told.read(partition.partition, read[0].offset, read[-1].offset)
                uncommitted = True
            await commit()


CLIENTS = {
    "confluent": confluent,
    "kafka_python": kafka_python,
    "aiokafka": aiokafka,
    "barnabas": barnabas,
    "barnabas_async": barnabas_async,
}


def main(client: str, bootstrap: str, group: str, topic: str, strategy: str, instance: str) -> None:
    stopping = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    CLIENTS[client](Place(bootstrap, group, topic, strategy, None if instance == "-" else instance), stopping)
    print("closed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
