"""Members that come and go at random while one stays: no partition ever has two owners, and in the end the one that stays has all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from random import Random

import pytest

from barnabas.client.consumer.async_consumer import AsyncConsumer
from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
from barnabas.client.errors import RebalanceInProgress
from barnabas.topic_partition import TopicPartition
from tests.broker import TopicMaker, set_session_timeout

PARTITIONS = 12
MEMBERS = 4
CHURN_S = 5
WAIT_S = 30
SESSION_TIMEOUT_MS = 30_000  # no member is thrown out on a busy machine
PROTOCOLS: dict[str, dict[str, object]] = {
    "range": {"partition.assignment.strategy": ["range"], "heartbeat.interval.ms": 200},
    "cooperative-sticky": {"partition.assignment.strategy": ["cooperative-sticky"], "heartbeat.interval.ms": 200},
    "consumer": {"group.protocol": "consumer"},
}


class Owners:
    """Who owns what, by what listeners are told."""

    def __init__(self) -> None:
        self.of: dict[TopicPartition, str] = {}
        self.conflicts: list[tuple[TopicPartition, str, str]] = []


class Listener(ConsumerRebalanceListener):
    def __init__(self, name: str, owners: Owners) -> None:
        self._name = name
        self._owners = owners

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            other = self._owners.of.setdefault(partition, self._name)
            if other != self._name:
                self._owners.conflicts.append((partition, other, self._name))

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            if self._owners.of.get(partition) == self._name:
                del self._owners.of[partition]


class Churn:
    def __init__(self, bootstrap: str, topic: str, settings: dict[str, object], random: Random) -> None:
        self.owners = Owners()
        self._settings = {"bootstrap.servers": bootstrap, "group.id": f"group-of-{topic}", **settings}
        self._topic = topic
        self._random = random
        self._until = time.monotonic() + CHURN_S

    async def run(self) -> int:
        """How many partitions the one that stays has when all others are gone."""
        steady = asyncio.ensure_future(self._steady())
        await asyncio.gather(*(self._restless(f"restless {number}") for number in range(MEMBERS)))
        return await steady

    async def _steady(self) -> int:
        async with self._consumer("steady", auto_commit=False) as one:
            while time.monotonic() < self._until or (len(one.assignment()) < PARTITIONS and time.monotonic() < self._until + WAIT_S):
                await one.poll(0.1)
            return len(one.assignment())

    async def _restless(self, name: str) -> None:
        while time.monotonic() < self._until:
            life_end = time.monotonic() + self._random.uniform(0.1, 2)
            async with self._consumer(name, auto_commit=self._random.random() < 0.5) as one:
                while time.monotonic() < min(life_end, self._until):
                    await one.poll(self._random.choice((0, 0.02, 0.3)))
                    await self._commit(one)

    async def _commit(self, one: AsyncConsumer[bytes, bytes]) -> None:
        if self._random.random() < 0.2:
            one.commit_async(callback=lambda offsets, error: None)
        if self._random.random() < 0.1:
            try:
                await one.commit_sync(timeout=WAIT_S)
            except RebalanceInProgress:
                pass  # the next poll goes on with the rebalance

    def _consumer(self, name: str, *, auto_commit: bool) -> AsyncConsumer[bytes, bytes]:
        settings = {**self._settings, "enable.auto.commit": auto_commit, "auto.commit.interval.ms": 100}
        one: AsyncConsumer[bytes, bytes] = AsyncConsumer(settings)
        one.subscribe([self._topic], Listener(name, self.owners))
        return one


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_partition_has_two_owners_and_the_one_that_stays_gets_all(bootstrap: str, new_topic: TopicMaker, protocol: str) -> None:
    topic = new_topic(f"churn-{protocol}", partitions=PARTITIONS)
    set_session_timeout(bootstrap, f"group-of-{topic}", SESSION_TIMEOUT_MS)
    churn = Churn(bootstrap, topic, PROTOCOLS[protocol], Random(protocol))
    assert asyncio.run(churn.run()) == PARTITIONS
    assert (churn.owners.conflicts, churn.owners.of) == ([], {})
