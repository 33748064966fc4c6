"""Moving averages of a rate, computed when they are read. The event that is counted costs an increment of an integer and nothing else."""

from __future__ import annotations

from math import exp
from typing import Final

ONE_MINUTE_S: Final = 60.0


class MovingRate:
    """The rate per second of a count that only grows, as an exponentially weighted moving average over about `window_s`.

    Each read takes the rate since the last read as constant. Several readers share one average: it depends on time and not on how often it
    is read."""

    def __init__(self, window_s: float = ONE_MINUTE_S) -> None:
        self._window_s = window_s
        self._count = 0.0
        self._at_ms: int | None = None
        self._rate: float | None = None

    def read(self, count: float, monotonic_ms: int) -> float:
        """The average, with the count as it is at this time. 0 until two reads are apart."""
        if self._at_ms is None:
            self._at_ms, self._count = monotonic_ms, count
            return 0.0
        elapsed_s = (monotonic_ms - self._at_ms) / 1000
        if elapsed_s > 0:
            rate = (count - self._count) / elapsed_s
            weight = exp(-elapsed_s / self._window_s)
            self._rate = rate if self._rate is None else self._rate * weight + rate * (1 - weight)
            self._at_ms, self._count = monotonic_ms, count
        return self._rate or 0.0
