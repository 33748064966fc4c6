"""Compaction in the background: as many logs at once as log.cleaner.threads says, also when the setting changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

from barnabas.broker.server.housekeeping import Housekeeping
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.compaction.config import CleanerConfig
from barnabas.storage.compaction.states import CleaningState
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.topic_partition import TopicPartition
from tests.unit.broker.handlers.leader import StandingClock
from tests.unit.storage.cleaning import compact_config, put, roll
from tests.unit.storage.log_manager.managing import manage
from tests.unit.storage.logs import NOW

DEADLINE_S = 60
LOGS = [TopicPartition(topic, 0) for topic in ("a", "b", "c")]
CLEANERS = CleanerConfig(backoff_ms=5)


class HeldCalls(Executor):
    """Calls of the disk wait until they are let go."""

    def __init__(self) -> None:
        self._held: list[tuple[Future[Any], Callable[[], Any]]] = []
        self._is_held = True

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        self._held.append((done, lambda: call(*arguments, **options)))
        if not self._is_held:
            self.let_go()
        return done

    def let_go(self) -> None:
        self._is_held = False
        held, self._held = self._held, []
        for done, call in held:
            done.set_result(call())


def dirty_logs(threads: int) -> LogManager:
    settings = LogManagerConfig(num_recovery_threads_per_data_dir=1, cleaner=replace(CLEANERS, threads=threads))
    manager = manage(SimulatedFiles(lambda: NOW), default=compact_config(), settings=settings)
    for partition in LOGS:
        log = manager.get_or_create(partition, NOW)
        put(log, k="1")
        put(log, k="2")
        roll(log)
    return manager


def cleaned_now(manager: LogManager) -> int:
    return sum(manager.cleaner.state(partition) is CleaningState.IN_PROGRESS for partition in LOGS)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not is_so():
            await asyncio.sleep(0.001)


def with_housekeeping(threads: int, test: Callable[[LogManager, HeldCalls], Any]) -> None:
    async def run() -> None:
        manager, disk = dirty_logs(threads), HeldCalls()
        failures: list[BaseException] = []
        housekeeping = Housekeeping(manager, StandingClock(), disk, asyncio.Event(), lambda _: False, failures.append)
        housekeeping.start()
        try:
            await test(manager, disk)
        finally:
            disk.let_go()
            await housekeeping.stop()
        assert failures == []

    asyncio.run(run())


def test_one_log_is_cleaned_at_a_time_by_default() -> None:
    async def test(manager: LogManager, disk: HeldCalls) -> None:
        await until(lambda: cleaned_now(manager) == 1)
        await asyncio.sleep(CLEANERS.backoff_ms / 1000)
        assert cleaned_now(manager) == 1
        disk.let_go()
        await until(lambda: all(manager.cleaner.checkpoint_of(partition) == 2 for partition in LOGS))

    with_housekeeping(1, test)


def test_two_logs_are_cleaned_at_once_by_two_cleaners() -> None:
    async def test(manager: LogManager, disk: HeldCalls) -> None:
        await until(lambda: cleaned_now(manager) == 2)
        disk.let_go()
        await until(lambda: all(manager.cleaner.checkpoint_of(partition) == 2 for partition in LOGS))

    with_housekeeping(2, test)


def test_the_number_of_cleaners_changes_while_the_broker_runs() -> None:
    async def test(manager: LogManager, disk: HeldCalls) -> None:
        disk.let_go()
        await until(lambda: all(manager.cleaner.checkpoint_of(partition) == 2 for partition in LOGS))
        for threads in (3, 1, 2):
            manager.cleaner.reconfigure(replace(CLEANERS, threads=threads))
            disk._is_held = True
            for partition in LOGS:
                log = manager.get_or_create(partition, NOW)
                for value in "345678":
                    put(log, k=value)
                roll(log)
            await until(lambda threads=threads: cleaned_now(manager) == threads)  # type: ignore[misc]
            disk.let_go()
            await until(lambda: cleaned_now(manager) == 0)

    with_housekeeping(1, test)
