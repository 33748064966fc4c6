"""Background work on the logs of a broker: retention, flushes, checkpoints, file deletion, compaction, moves between log directories.

The log manager decides which work is due and Housekeeping runs it. It never blocks the event loop for long: blocking calls of the disk run
on threads, and computation runs in slices that yield to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final, TypeVar

from barnabas.broker.clock import Clock
from barnabas.errors import KafkaError
from barnabas.metrics.histogram import Histogram
from barnabas.storage.directory.checkpoints import CheckpointWrite
from barnabas.storage.log.durability import FlushPlan
from barnabas.storage.log.log import Log
from barnabas.storage.log_manager import LogManager

T = TypeVar("T")

TICK_S: Final = 0.5  # the shortest interval of any setting is about a second
FLUSHES_AT_ONCE: Final = 4  # each on a thread
DELETIONS_AT_ONCE: Final = 20
_CLEAN, _MOVE = 2, 3  # among the tasks

_log = logging.getLogger(__name__)


class Housekeeping:
    """`advance_moves` runs one slice of copying replicas between log directories and returns whether more is left. `flush_requested` is set
    by the log manager when a log requests a flush. `flush_us` gets the times of flushes, in microseconds."""

    def __init__(
        self,
        log_manager: LogManager,
        clock: Clock,
        disk_threads: Executor,
        flush_requested: asyncio.Event,
        advance_moves: Callable[[int], bool],
        on_failure: Callable[[BaseException], None],
        flush_us: Histogram | None = None,
    ) -> None:
        self._log_manager = log_manager
        self._clock = clock
        self._disk_threads = disk_threads
        self._advance_moves = advance_moves
        self._on_failure = on_failure
        self._flush_requested = flush_requested
        self._flush_us = flush_us or Histogram()
        self._tasks: list[asyncio.Task[None]] = []
        self._cleaners: dict[int, asyncio.Task[None]] = {}  # beside the first, which is one of the tasks
        self._on_threads: set[asyncio.Future[Any]] = set()

    def start(self) -> None:
        self._log_manager.start_schedule(self._clock.monotonic_ms())
        self._tasks = [asyncio.ensure_future(work()) for work in (self._tick, self._flush, self._clean, self._move, self._inspect)]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    @property
    def dead_cleaners(self) -> int:
        """Tasks of compaction that have ended by an error."""
        return sum(map(_has_failed, (*self._tasks[_CLEAN : _CLEAN + 1], *self._cleaners.values())))

    @property
    def dead_movers(self) -> int:
        """1 if the task that moves replicas between log directories has ended by an error."""
        return sum(map(_has_failed, self._tasks[_MOVE : _MOVE + 1]))

    async def stop(self) -> None:
        """Waits for the calls that run on threads: the logs are closed next, and nothing may write to them then."""
        tasks = [*self._tasks, *self._cleaners.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._on_threads, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)

    async def _tick(self) -> None:
        while True:
            for checkpoint in self._log_manager.due(self._clock.now_ms(), self._clock.monotonic_ms()):
                if checkpoint is None:
                    await asyncio.sleep(0)
                else:
                    await self._write(checkpoint)
            deletions = self._log_manager.take_deletions(self._clock.monotonic_ms())
            for first in range(0, len(deletions), DELETIONS_AT_ONCE):
                await self._on_a_thread(_delete, deletions[first : first + DELETIONS_AT_ONCE])
            await asyncio.sleep(TICK_S)

    async def _write(self, checkpoint: CheckpointWrite) -> None:
        try:
            await self._on_a_thread(checkpoint.run)
        except OSError as error:
            self._log_manager.checkpoints.failed(checkpoint, error)

    async def _flush(self) -> None:
        while True:
            await self._flush_requested.wait()
            self._flush_requested.clear()
            plans = self._log_manager.flushes.take()
            for first in range(0, len(plans), FLUSHES_AT_ONCE):
                await asyncio.gather(*(self._run(log, plan) for log, plan in plans[first : first + FLUSHES_AT_ONCE]))

    async def _run(self, log: Log, plan: FlushPlan) -> None:
        started_ns = self._clock.perf_ns()
        try:
            is_durable = await self._on_a_thread(plan.run)
        except OSError as error:
            self._log_manager.flushes.failed(log, plan.recovery_point, error, plan)
        else:
            self._flush_us.record((self._clock.perf_ns() - started_ns) // 1000)
            self._log_manager.flushes.ran(log, plan, is_durable, self._clock.monotonic_ms())

    async def _clean(self, number: int = 0) -> None:
        """One of the log.cleaner.threads cleaners, each of which cleans one log at a time. The first starts the others, which end when the
        setting is lowered; it has no thread of its own, but waits for the disk while others compute."""
        cleaner = self._log_manager.cleaner
        while number < max(1, cleaner.config.threads):
            if number == 0:
                self._start_cleaners(cleaner.config.threads)
            cleaning = cleaner.clean_next(self._clock.now_ms(), self._clock.monotonic_ms())
            if cleaning is None:
                await asyncio.sleep(cleaner.config.backoff_ms / 1000)
                continue
            while (step := cleaner.advance(cleaning, self._clock.now_ms(), self._clock.monotonic_ms())) is not None:
                if step.blocking is not None:
                    await self._on_a_thread(step.blocking.run)
                await asyncio.sleep(step.wait_ms / 1000)

    def _start_cleaners(self, count: int) -> None:
        for number in range(1, count):
            if number not in self._cleaners or self._cleaners[number].done():
                self._cleaners[number] = asyncio.ensure_future(self._clean(number))
                self._cleaners[number].add_done_callback(self._ended)

    async def _inspect(self) -> None:
        """Runs once after the start: looks for truncated or missing segments."""
        for inspection in self._log_manager.inspections():
            await self._on_a_thread(inspection.run)
            self._log_manager.inspected(inspection)

    async def _move(self) -> None:
        while True:
            is_busy = self._advance_moves(self._clock.now_ms())
            await asyncio.sleep(0 if is_busy else TICK_S)

    async def _on_a_thread(self, call: Callable[..., T], *arguments: object) -> T:
        running: asyncio.Future[T] = asyncio.get_running_loop().run_in_executor(self._disk_threads, call, *arguments)
        self._on_threads.add(running)
        running.add_done_callback(self._on_threads.discard)
        return await asyncio.shield(running)  # a cancelled task leaves the call running, and `stop` waits for it


def _has_failed(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


def _delete(deletions: list[Callable[[], None]]) -> None:
    """A file that cannot be deleted is left for the next start, which deletes it."""
    for delete in deletions:
        try:
            delete()
        except (OSError, KafkaError) as error:
            _log.error("Could not delete files: %s", error)
