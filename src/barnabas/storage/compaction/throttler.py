"""Keeps a stream of work below a rate: computes how long the caller must wait."""

from __future__ import annotations

from typing import Final

CHECK_INTERVAL_MS: Final = 300


class Throttler:
    def __init__(self, rate_per_second: float, monotonic_ms: int = 0) -> None:
        self.rate_per_second = rate_per_second
        self._period_start_ms = monotonic_ms
        self._observed = 0.0

    def observe(self, amount: float, monotonic_ms: int) -> int:
        """Adds work that was done; returns the milliseconds to wait before more. Checks the rate about three times a second."""
        self._observed += amount
        elapsed_ms = monotonic_ms - self._period_start_ms
        if elapsed_ms <= CHECK_INTERVAL_MS or self._observed <= 0:
            return 0
        wait_ms = max(0, round(self._observed * 1000 / self.rate_per_second - elapsed_ms))
        self._period_start_ms = monotonic_ms + wait_ms
        self._observed = 0.0
        return wait_ms
