"""Reads for fetches of so many partitions that one read would hold the event loop too long: one slice of partitions in each turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.partitions.fetch_params import RequestedPartition
from barnabas.broker.scheduling.steps import timed
from barnabas.broker.scheduling.turns import slices
from barnabas.broker.waiting.delayed_fetch import Fetched, LogReading

if TYPE_CHECKING:
    from barnabas.broker.replication.replica_manager import ReplicaManager
    from barnabas.broker.scheduling.turns import Turns


class LongReads:
    def __init__(self, replica_manager: ReplicaManager, turns: Turns) -> None:
        self._replica_manager = replica_manager
        self._turns = turns
        self._running: set[asyncio.Future[None]] = set()  # asyncio keeps weak references only: these keep the tasks alive

    def begin(self, reading: LogReading, requested: list[RequestedPartition], on_done: Callable[[Fetched], None]) -> None:
        """The time counts for the request of the fetch, in whatever request's step its wait ends."""
        task = asyncio.ensure_future(timed(reading.params.usage, self._read(reading, requested, on_done)))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def close(self) -> None:
        for task in self._running:
            task.cancel()

    async def _read(self, reading: LogReading, requested: list[RequestedPartition], on_done: Callable[[Fetched], None]) -> None:
        is_broker = reading.params.is_from_follower
        for part in slices(requested):
            await self._turns.next(reading.params, is_broker=is_broker)
            self._replica_manager.read_on(reading, part)
        await self._turns.next(reading.params, is_broker=is_broker)
        on_done(reading.fetched)
