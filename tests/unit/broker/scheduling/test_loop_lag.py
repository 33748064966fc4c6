"""Delays of the loop are counted, and logged with the request that caused them."""

from __future__ import annotations

import asyncio
import time

import pytest

from barnabas.broker.scheduling import loop_lag
from barnabas.broker.scheduling.loop_lag import BUDGET_MS, TICK_S, WARN_INTERVAL_S, WARN_MS, LoopLag
from tests.logged import lines_of


def test_what_comes_late_is_counted() -> None:
    lag = LoopLag()
    for ms in (0.0, 1.0, BUDGET_MS + 1, 2.0):
        lag.late(ms, 0)
    assert (lag.ticks, lag.over_budget, lag.max_ms, lag.total_ms) == (4, 1, BUDGET_MS + 1, BUDGET_MS + 4)


def test_the_longest_request_since_the_last_tick_is_named(caplog: pytest.LogCaptureFixture) -> None:
    lag = LoopLag()
    lag.held(60, "Fetch v12 #1 of a on 1")
    lag.held(480, "Metadata v12 #2 of b on 2")
    lag.held(70, "Fetch v12 #3 of a on 1")
    lag.late(WARN_MS + 1, 100)
    assert (lag.long_requests, lag.longest_ms) == (3, 480)
    assert lines_of(caplog, loop_lag) == [
        "The event loop was held for 201 ms and all clients waited: Metadata v12 #2 of b on 2 took 480 ms"
    ]


def test_other_work_is_named_if_it_took_longer_than_the_request(caplog: pytest.LogCaptureFixture) -> None:
    lag = LoopLag()
    lag.held(60, "Fetch v12 #1 of a on 1")
    lag.note_work(300, "the config change of brokers/1")
    lag.note_work(BUDGET_MS, "the config change of topics/t")
    lag.late(WARN_MS + 1, 100)
    assert (lag.long_requests, lag.longest_ms) == (1, 60)
    assert lines_of(caplog, loop_lag)[0].endswith("the config change of brokers/1 took 300 ms")


def test_work_within_the_budget_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    lag = LoopLag(lambda: "orders-0")
    lag.note_work(BUDGET_MS, "the config change of topics/t")
    lag.late(WARN_MS + 1, 100)
    assert "the last long work was that of orders-0" in lines_of(caplog, loop_lag)[0]


def test_without_a_request_the_last_long_work_is_named(caplog: pytest.LogCaptureFixture) -> None:
    lag = LoopLag(lambda: "orders-0")
    lag.held(480, "Metadata")
    lag.late(1, 0)  # it has been told of
    lag.late(300, 1)
    assert "the last long work was that of orders-0" in lines_of(caplog, loop_lag)[0]


def test_the_log_is_not_flooded(caplog: pytest.LogCaptureFixture) -> None:
    lag = LoopLag()
    for second in range(5):
        lag.late(WARN_MS + 100, second)
    lag.late(WARN_MS + 100, WARN_INTERVAL_S)
    assert len(lines_of(caplog, loop_lag)) == 2
    assert lines_of(caplog, loop_lag)[1].endswith("4 times more since the last such line")


def test_the_timer_notices_that_the_loop_was_held() -> None:
    async def run() -> None:
        lag = LoopLag()
        lag.start(asyncio.get_running_loop())
        held_s = 2 * TICK_S
        until = time.monotonic() + held_s
        while time.monotonic() < until:
            pass
        while not lag.ticks:
            await asyncio.sleep(0)
        lag.stop()
        assert lag.max_ms >= (held_s - TICK_S) * 1000 - 1

    asyncio.run(run())
