"""Appends that take longer than a turn of the event loop: batches that unfold into megabytes, or of which one request brings many.

The replica manager appends what it can at once and leaves the rest here. Batches are opened on threads of their own, looked at in turns of
the loop, and appended to the end that their log has by then: the partition serves others meanwhile. What a client has sent next on the same
connection is held until then, because it could be for the same partition.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from barnabas.broker.partitions.append_call import AppendCall, Order
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.scheduling.openings import Openings
from barnabas.errors import NotLeaderOrFollower
from barnabas.protocol.slices import Records
from barnabas.records.validation.validation import Validated

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.replication.replica_manager import ReplicaManager
    from barnabas.broker.scheduling.turns import Turns

_log = logging.getLogger(__name__)


class LongAppends:
    """`at_once` batches are opened at the same time, each on a thread: so many times what one may unfold into is held in memory."""

    def __init__(self, replica_manager: ReplicaManager, turns: Turns, threads: Executor, at_once: int) -> None:
        self._replica_manager = replica_manager
        self._turns = turns
        self._threads = threads
        self._openings = Openings(at_once)
        self._running: set[asyncio.Future[None]] = set()
        self.begun = 0

    def begin(self, call: AppendCall, order: Order | None) -> None:
        self.begun += 1
        self._run(self._append_rest(call, order))

    def close(self) -> None:
        for task in self._running:
            task.cancel()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _append_rest(self, call: AppendCall, order: Order | None) -> None:
        """Entry by entry, in the order of the request."""
        try:
            while len(call.results) < len(call.entries):
                await self._turns.next(call.next_entry[0])
                done = len(call.results)
                self._replica_manager.append_on(call)
                if len(call.results) == done:
                    call.results.append(await self._append_long(call, order))
        except Exception as error:
            _log.error("Appending to %s failed", call.next_entry[0], exc_info=error)
            refused = [self._replica_manager.refused(partition, error) for partition, _ in call.entries[len(call.results) :]]
            call.results.extend(refused)
        if order is not None:
            order.release_next()
        self._replica_manager.finish_append(call)

    async def _append_long(self, call: AppendCall, order: Order | None) -> PartitionAppend:
        partition, records = call.next_entry
        replica_manager = self._replica_manager
        address, connection = ("", "") if order is None else (order.connection.remote_ip, order.connection.id)  # "": this broker itself
        try:
            found = replica_manager.partition_or_raise(partition)
            async with self._openings.turn_of(address, connection):
                validated = await self._validate(found, records, call.origin)
            if replica_manager.partition(partition) is not found:
                raise NotLeaderOrFollower(f"Partition {partition} is another than when its records were received")
            return found.append_validated_to_leader(
                validated,
                call.required_acks,
                replica_manager.clock.now_ms(),
                call.origin,
                call.guard_of(partition),
                call.transaction_version,
            )
        except Exception as error:
            return replica_manager.refused(partition, error)

    async def _validate(self, found: Partition, records: Records, origin: int) -> Validated:
        now_ms = self._replica_manager.clock.now_ms()
        validation = found.long_validation(records.data, records.start, records.end, now_ms, origin)
        for step in validation.steps():
            if step is not None:
                await asyncio.get_running_loop().run_in_executor(self._threads, step)
            await self._turns.next(found.partition)
        assert validation.validated is not None
        return validation.validated
