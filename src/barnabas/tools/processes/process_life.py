"""Decides about one child process: when it starts again, and when it hangs. A plain object that receives times and events."""

from __future__ import annotations

from enum import Enum
from typing import Final

from barnabas.tools.processes.messages import Announcement

PAUSE_MS: Final = 100  # before the first restart
PAUSE_MS_MAX: Final = 30_000
STABLE_MS: Final = 5_000  # a process that was ready for so long starts again after the shortest pause
SILENCE_MS_MAX: Final = 120_000  # as WatchdogSec of the unit: a broker reports every ten seconds that its event loop runs


class LifeState(Enum):
    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"  # it ended, and starts again
    STOPPED = "stopped"


class ProcessLife:
    def __init__(self, number: int, node_id: int) -> None:
        self.number = number
        self.node_id = node_id
        self.state = LifeState.STARTING
        self.process: int | None = None
        self.announcement: Announcement | None = None  # of its last start
        self.was_ready = False
        self.restarts = 0
        self.last_code: int | None = None
        self._reported_problem = ""
        self._ready_ms = 0
        self._heard_ms = 0
        self._pause_ms = PAUSE_MS

    @property
    def problem(self) -> str:
        """Why it is not ready, empty if it is."""
        if self.state is LifeState.READY:
            return self._reported_problem
        if self.state is LifeState.STARTING:
            return "it starts"
        return describe_end(self.last_code) if self.state is LifeState.WAITING else "it is stopped"

    def started(self, process: int) -> None:
        self.process = process
        self.state = LifeState.STARTING

    def announced(self, announcement: Announcement, monotonic_ms: int) -> None:
        self.announcement = announcement
        self.state = LifeState.READY
        self.was_ready = True
        self._reported_problem = ""
        self._ready_ms = self._heard_ms = monotonic_ms

    def reported(self, problem: str, monotonic_ms: int) -> None:
        self._reported_problem = problem
        self._heard_ms = monotonic_ms

    def is_hanging(self, monotonic_ms: int) -> bool:
        """Whether it was silent for so long that its event loop cannot run. A start may take any time: logs are recovered then."""
        return self.state is LifeState.READY and monotonic_ms - self._heard_ms > SILENCE_MS_MAX

    def ended(self, code: int | None, monotonic_ms: int) -> int:
        """Returns the pause before the next start. `code` is the exit code, negative for a signal; None for a process that could not be
        started. Each process that ends soon doubles the pause."""
        was_stable = self.state is LifeState.READY and monotonic_ms - self._ready_ms >= STABLE_MS
        pause_ms = PAUSE_MS if was_stable else self._pause_ms
        self._pause_ms = min(PAUSE_MS_MAX, pause_ms * 2)
        self.state = LifeState.WAITING
        self.process = None
        self.last_code = code
        self.restarts += 1
        return pause_ms

    def stopped(self) -> None:
        self.state = LifeState.STOPPED
        self.process = None


def describe_end(code: int | None) -> str:
    if code is None:
        return "it could not be started"
    return f"it ended by signal {-code}" if code < 0 else f"it ended with {code}"
