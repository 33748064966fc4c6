"""How many topics clients may have created by asking for them: so many at once, then so many a second.

A token bucket. Time is given, never read.
"""

from __future__ import annotations


class CreationRate:
    """`burst` topics at once; the bucket fills by `per_second`."""

    __slots__ = ("_burst", "_filled_ms", "_per_second", "_tokens")

    def __init__(self, burst: int, per_second: int, monotonic_ms: int) -> None:
        self._burst = burst
        self._per_second = per_second
        self._tokens = float(burst)
        self._filled_ms = monotonic_ms

    def take(self, monotonic_ms: int) -> bool:
        """Whether one more topic may be created now."""
        elapsed_ms = max(0, monotonic_ms - self._filled_ms)
        self._filled_ms = monotonic_ms
        self._tokens = min(float(self._burst), self._tokens + elapsed_ms * self._per_second / 1000)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
