"""Kafka's token bucket: it fills at the rate of a quota, holds at most what that rate gives in all windows together, and may be overdrawn.

It takes time as an argument and reads no clock.
"""

from __future__ import annotations


class TokenBucket:
    """`samples` windows of `window_ms`: controller.quota.window.num and controller.quota.window.size.seconds. A new bucket is full."""

    def __init__(self, samples: int, window_ms: int, rate: float, monotonic_ms: int) -> None:
        self._capacity_s = samples * window_ms / 1000
        self.rate = rate  # tokens a second
        self._tokens = self._capacity_s * rate
        self._filled_ms = monotonic_ms

    def tokens(self, monotonic_ms: int) -> float:
        """The tokens in the bucket. Below zero the quota is exhausted."""
        self._tokens = min(self._capacity_s * self.rate, self._tokens + self.rate * (monotonic_ms - self._filled_ms) / 1000)
        self._filled_ms = monotonic_ms
        return self._tokens

    def take(self, tokens: float, monotonic_ms: int) -> None:
        self._tokens = min(self._capacity_s * self.rate, self.tokens(monotonic_ms) - tokens)
