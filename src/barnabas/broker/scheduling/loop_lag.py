"""Measures how long the event loop is blocked: by the delay of a timer, and by requests and other work that take long in one call.

Everything in a broker runs on one loop, so a call that takes a second makes every client wait a second. The budget of a call is BUDGET_MS.
Longer calls of requests are counted here; they and other long work are named in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

TICK_S: Final = 0.1
BUDGET_MS: Final = 50.0
WARN_MS: Final = 200.0  # shorter delays also happen on a machine that is busy with other processes
WARN_INTERVAL_S: Final = 10.0

_log = logging.getLogger(__name__)


class LoopLag:
    """`ticks` calls of the timer were `total_ms` late in all and `max_ms` at most, `over_budget` of them by more than BUDGET_MS.
    `long_requests` calls took more than that, `longest_ms` at most. `last_taker` returns who had the last turn (`Turns`), for the log."""

    def __init__(self, last_taker: Callable[[], object] = lambda: None) -> None:
        self.ticks = 0
        self.total_ms = 0.0
        self.max_ms = 0.0
        self.over_budget = 0
        self.long_requests = 0
        self.longest_ms = 0.0
        self._last_taker = last_taker
        self._longest_work: tuple[float, str] | None = None  # its milliseconds and its text, since the last tick
        self._warned_s = -WARN_INTERVAL_S
        self._unlogged = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._schedule(loop)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def held(self, ms: float, request: object) -> None:
        """A request has blocked the loop for `ms` in one call, which is more than the budget."""
        self.long_requests += 1
        self.longest_ms = max(self.longest_ms, ms)
        self.note_work(ms, request)

    def note_work(self, ms: float, work: object) -> None:
        """Work has blocked the loop for `ms` in one call. The log names the longest, if it was longer than the budget."""
        if ms > BUDGET_MS and (self._longest_work is None or ms > self._longest_work[0]):
            self._longest_work = ms, str(work)

    def late(self, ms: float, now_s: float) -> None:
        """The timer was called `ms` late."""
        self.ticks += 1
        self.total_ms += ms
        self.max_ms = max(self.max_ms, ms)
        if ms > BUDGET_MS:
            self.over_budget += 1
        if ms > WARN_MS:
            self._warn(ms, now_s)
        self._longest_work = None

    def _warn(self, ms: float, now_s: float) -> None:
        if now_s - self._warned_s < WARN_INTERVAL_S:
            self._unlogged += 1
            return
        if self._longest_work is not None:
            what = f"{self._longest_work[1]} took {self._longest_work[0]:.0f} ms"
        else:
            what = f"no request took long; the last long work was that of {self._last_taker()}"
        before = f", {self._unlogged} times more since the last such line" if self._unlogged else ""
        _log.warning("The event loop was held for %.0f ms and all clients waited: %s%s", ms, what, before)
        self._warned_s = now_s
        self._unlogged = 0

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        due_s = loop.time() + TICK_S
        self._timer = loop.call_at(due_s, self._tick, due_s)

    def _tick(self, due_s: float) -> None:
        assert self._loop is not None
        now_s = self._loop.time()
        self.late(max(0.0, now_s - due_s) * 1000, now_s)
        self._schedule(self._loop)
