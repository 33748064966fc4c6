"""The windows of histograms: their quantiles describe recent samples, as those of Kafka do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

WINDOW_MS: Final = 150_000  # quantiles describe the last one to two windows, up to five minutes


class HistogramWindows:
    """`rotate` begins a new window. It is called when a reader asks and the time has come, so that no timer is needed."""

    def __init__(self, rotate: Callable[[], None]) -> None:
        self._rotate = rotate
        self._began_ms: int | None = None

    def advance(self, monotonic_ms: int) -> None:
        if self._began_ms is None:
            self._began_ms = monotonic_ms
        elif monotonic_ms - self._began_ms >= WINDOW_MS:
            self._began_ms = monotonic_ms
            self._rotate()
