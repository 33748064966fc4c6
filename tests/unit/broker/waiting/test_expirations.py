"""One timer of the loop expires the operations of all purgatories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.broker.clock import Clock
from barnabas.broker.waiting.delayed_operation import DelayedOperation
from barnabas.broker.waiting.expirations import Expirations


class Wait(DelayedOperation):
    def __init__(self, delay_ms: int, told: Callable[[str], None], name: str) -> None:
        super().__init__(delay_ms)
        self._told, self._name = told, name

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        self._told(self._name)


def test_what_waits_times_out_in_the_order_of_its_deadlines() -> None:
    async def scenario() -> list[str]:
        clock, done = Clock(), []
        finished = asyncio.get_running_loop().create_future()

        def told(name: str) -> None:
            done.append(name)
            if len(done) == 3:
                finished.set_result(None)

        expirations = Expirations(asyncio.get_running_loop(), clock)
        first, second = expirations.new_purgatory("Produce"), expirations.new_purgatory("Fetch")
        first.try_complete_else_watch(Wait(1_000, told, "late"), ["key"], clock.monotonic_ms())
        second.try_complete_else_watch(Wait(5, told, "early"), ["key"], clock.monotonic_ms())
        first.try_complete_else_watch(Wait(500, told, "between"), ["other"], clock.monotonic_ms())
        await asyncio.wait_for(finished, 60)
        expirations.stop()
        return done

    assert asyncio.run(scenario()) == ["early", "between", "late"]


def test_nothing_times_out_before_its_time() -> None:
    async def scenario() -> int:
        clock = Clock()
        finished: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        expirations = Expirations(asyncio.get_running_loop(), clock)
        purgatory = expirations.new_purgatory("Fetch")
        began = clock.monotonic_ms()
        purgatory.try_complete_else_watch(Wait(25, lambda _: finished.set_result(clock.monotonic_ms() - began), ""), ["key"], began)
        return await asyncio.wait_for(finished, 60)

    assert asyncio.run(scenario()) >= 25


def test_no_timer_is_left_after_stopping() -> None:
    async def scenario() -> None:
        clock = Clock()
        done: list[str] = []
        expirations = Expirations(asyncio.get_running_loop(), clock)
        expirations.new_purgatory("Fetch").try_complete_else_watch(Wait(1, done.append, "never"), ["key"], clock.monotonic_ms())
        expirations.stop()
        await asyncio.sleep(0)
        assert done == []

    asyncio.run(scenario())


def test_all_that_waits_is_answered_when_the_broker_stops() -> None:
    async def scenario() -> list[str]:
        clock, done = Clock(), list[str]()
        expirations = Expirations(asyncio.get_running_loop(), clock)
        for name in ("Produce", "Fetch"):
            purgatory = expirations.new_purgatory(name)
            purgatory.try_complete_else_watch(Wait(60_000, done.append, name), ["key", "other"], clock.monotonic_ms())
        expirations.complete_all()
        expirations.stop()
        return done

    assert asyncio.run(scenario()) == ["Produce", "Fetch"]
