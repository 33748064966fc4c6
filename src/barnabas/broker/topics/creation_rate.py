"""The rate limit of automatic topic creation: a token bucket. Callers pass the time; it reads no clock."""

from __future__ import annotations


class CreationRate:
    """Allows `burst` topics at once, and `per_second` topics a second after that."""

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
