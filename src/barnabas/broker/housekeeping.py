"""What a broker does to its logs besides serving them: retention, flushes, checkpoints, removing files, compaction, moves.

The log manager decides what is due; here it is done, without ever holding the loop for long: what waits for the disk goes to threads, what
computes goes in slices between which others have their turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final, TypeVar

from barnabas.broker.clock import Clock
from barnabas.errors import KafkaError
from barnabas.storage.durability import FlushPlan
from barnabas.storage.log import Log
from barnabas.storage.log_manager import AllLogDirsFailed, LogManager

T = TypeVar("T")

TICK_S: Final = 0.5  # the shortest interval that a setting can ask for is a second or so

_log = logging.getLogger(__name__)


class Housekeeping:
    """`advance_moves` does one slice of copying replicas between log directories and says whether there is more."""

    def __init__(
        self,
        log_manager: LogManager,
        clock: Clock,
        disk_threads: Executor,
        advance_moves: Callable[[int], bool],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._log_manager = log_manager
        self._clock = clock
        self._disk_threads = disk_threads
        self._advance_moves = advance_moves
        self._on_failure = on_failure
        self._flush_wanted = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._log_manager.on_flush_wanted = self._flush_wanted.set
        self._tasks = [asyncio.ensure_future(work()) for work in (self._tick, self._flush, self._clean, self._move)]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)

    async def _tick(self) -> None:
        while True:
            now_ms = self._clock.now_ms()
            self._log_manager.tick(now_ms)
            for delete in self._log_manager.take_deletions(now_ms):
                await self._on_a_thread(_delete, delete)
            await asyncio.sleep(TICK_S)

    async def _flush(self) -> None:
        while True:
            await self._flush_wanted.wait()
            self._flush_wanted.clear()
            for log, plan in self._log_manager.take_flushes():
                await self._run(log, plan)

    async def _run(self, log: Log, plan: FlushPlan) -> None:
        try:
            is_durable = await self._on_a_thread(plan.run)
        except OSError as error:
            message = f"Error while flushing log for {log.partition} in dir {log.log_dir}: {error}"
            self._log_manager.disk_failed(log.log_dir, message, error)
        else:
            if is_durable:
                log.flushed(plan, self._clock.now_ms())

    async def _clean(self) -> None:
        cleaner = self._log_manager.cleaner
        while True:
            cleaning = cleaner.clean_next(self._clock.now_ms())
            if cleaning is None:
                await asyncio.sleep(cleaner.config.backoff_ms / 1000)
                continue
            while (step := cleaner.advance(cleaning, self._clock.now_ms())) is not None:
                if step.blocking is not None:
                    await self._on_a_thread(step.blocking.run)
                await asyncio.sleep(step.wait_ms / 1000)

    async def _move(self) -> None:
        while True:
            is_busy = self._advance_moves(self._clock.now_ms())
            await asyncio.sleep(0 if is_busy else TICK_S)

    async def _on_a_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._disk_threads, call, *arguments)


def _delete(delete: Callable[[], None]) -> None:
    """What fails is left for the next start, which removes it too."""
    try:
        delete()
    except AllLogDirsFailed:
        raise
    except (OSError, KafkaError) as error:
        _log.error("Could not delete files: %s", error)
