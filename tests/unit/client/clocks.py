"""A clock that stands still until it is told to go on."""

from __future__ import annotations


class ManualClock:
    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.wall_ms = now_ms
        self.steady_ms = now_ms

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.steady_ms

    def advance(self, by_ms: int) -> None:
        self.wall_ms += by_ms
        self.steady_ms += by_ms
