"""How long the event loop was held: by a timer that notes how late it is called, and by requests that took long in one piece.

Everything a broker does is done on one loop, so a call that takes a second makes every client wait a second. The budget of a request is
BUDGET_MS in one piece; what is longer is counted here, and said in the log with the request it belongs to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

TICK_S: Final = 0.1
BUDGET_MS: Final = 50.0
WARN_MS: Final = 200.0  # less is also caused by a machine that is busy with others
WARN_INTERVAL_S: Final = 10.0

_log = logging.getLogger(__name__)


class LoopLag:
    """`ticks` calls of the timer were `total_ms` late in all and `max_ms` at most, `over_budget` of them by more than BUDGET_MS.
    `long_requests` were handled for more than that in one piece, `longest_ms` at most."""

    def __init__(self, who: Callable[[], object] = lambda: None) -> None:
        self.ticks = 0
        self.total_ms = 0.0
        self.max_ms = 0.0
        self.over_budget = 0
        self.long_requests = 0
        self.longest_ms = 0.0
        self._who = who  # what else has just had a turn, where no request is known
        self._culprit: tuple[float, str] | None = None  # since the last tick
        self._warned_s = -WARN_INTERVAL_S
        self._unsaid = 0
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
        """A request has held the loop for so long, in one piece and longer than the budget."""
        self.long_requests += 1
        self.longest_ms = max(self.longest_ms, ms)
        if self._culprit is None or ms > self._culprit[0]:
            self._culprit = ms, str(request)

    def late(self, ms: float, now_s: float) -> None:
        """The timer was called so late."""
        self.ticks += 1
        self.total_ms += ms
        self.max_ms = max(self.max_ms, ms)
        if ms > BUDGET_MS:
            self.over_budget += 1
        if ms > WARN_MS:
            self._warn(ms, now_s)
        self._culprit = None

    def _warn(self, ms: float, now_s: float) -> None:
        if now_s - self._warned_s < WARN_INTERVAL_S:
            self._unsaid += 1
            return
        if self._culprit is not None:
            what = f"{self._culprit[1]} took {self._culprit[0]:.0f} ms"
        else:
            what = f"no request took long; the last long work was that of {self._who()}"
        before = f", {self._unsaid} times more since the last such line" if self._unsaid else ""
        _log.warning("The event loop was held for %.0f ms and all clients waited: %s%s", ms, what, before)
        self._warned_s = now_s
        self._unsaid = 0

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        due_s = loop.time() + TICK_S
        self._timer = loop.call_at(due_s, self._tick, due_s)

    def _tick(self, due_s: float) -> None:
        assert self._loop is not None
        now_s = self._loop.time()
        self.late(max(0.0, now_s - due_s) * 1000, now_s)
        self._schedule(self._loop)
