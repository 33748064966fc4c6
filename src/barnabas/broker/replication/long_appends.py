"""Appends that take longer than a turn of the event loop: batches that decompress to megabytes, or many such batches in one request.

The replica manager appends what it can at once and leaves the rest here. Batches are decompressed in threads, validated in slices on the
loop, and appended at the log end offset of that moment: the partition serves other requests in between. The next request of the same
connection is held until then, because it could append to the same partition.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from barnabas.broker.partitions.append_call import AppendCall
from barnabas.broker.partitions.partition_append import PartitionAppend
from barnabas.broker.scheduling.decompression_slots import DecompressionSlots
from barnabas.errors import NotLeaderOrFollower
from barnabas.records.validation.validation import Validated
from barnabas.storage.log.append import LogAppend

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.replication.replica_manager import ReplicaManager
    from barnabas.broker.scheduling.turns import Turns

_log = logging.getLogger(__name__)


class LongAppends:
    """`at_once` batches are decompressed at the same time, each in a thread. It bounds the memory: that many decompressed batches."""

    def __init__(self, replica_manager: ReplicaManager, turns: Turns, threads: Executor, at_once: int) -> None:
        self._replica_manager = replica_manager
        self._turns = turns
        self._threads = threads
        self._decompression_slots = DecompressionSlots(at_once)
        self._running: set[asyncio.Future[None]] = set()
        self.begun = 0

    def begin(self, call: AppendCall) -> None:
        self.begun += 1
        self._run(self._append_rest(call))

    def close(self) -> None:
        for task in self._running:
            task.cancel()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(self._turns.counted(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _append_rest(self, call: AppendCall) -> None:
        """Entry by entry, in the order of the request."""
        try:
            while not call.is_done:
                await self._turns.next(call.next_entry[0])
                done = len(call.results)
                self._replica_manager.append_on(call)
                if len(call.results) == done:
                    call.results.append(await self._append_long(call))
        except Exception as error:
            _log.error("Appending to %s failed", call.next_entry[0], exc_info=error)
            refused = [
                self._replica_manager.refused(partition, error, records.size) for partition, records in call.entries[len(call.results) :]
            ]
            call.results.extend(refused)
        if call.order is not None:
            call.order.release_next()
        self._replica_manager.finish_append(call)

    async def _append_long(self, call: AppendCall) -> PartitionAppend:
        partition, order = call.next_entry[0], call.order
        replica_manager = self._replica_manager
        address, connection = ("", "") if order is None else (order.connection.remote_ip, order.connection.id)  # "" for this broker itself
        try:
            hosted = replica_manager.partition_or_raise(partition)
            async with self._decompression_slots.turn_of(address, connection):
                validated = await self._validate(hosted, call.next_append(replica_manager.clock.now_ms()))
            if replica_manager.partition(partition) is not hosted:
                raise NotLeaderOrFollower(f"Partition {partition} was replaced after its records were received")
            return hosted.append_validated_to_leader(validated, call.next_append(replica_manager.clock.now_ms()), call.required_acks)
        except Exception as error:
            return replica_manager.refused(partition, error, call.next_entry[1].size)

    async def _validate(self, hosted: Partition, append: LogAppend) -> Validated:
        validation = hosted.long_validation(append)
        for step in validation.steps():
            if step is not None:
                await asyncio.get_running_loop().run_in_executor(self._threads, step)
            await self._turns.next(hosted.partition)
        assert validation.validated is not None
        return validation.validated
