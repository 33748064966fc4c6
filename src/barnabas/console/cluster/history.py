"""An hour of samples: of the cluster's traffic, of each topic's rate, of each group's lag. All rings and their number are bounded."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

SPAN_MS: Final = 3_600_000
TOTALS_MAX: Final = 720  # an hour of samples, one in 5 seconds
SERIES_POINTS_MAX: Final = 240  # an hour, one in 15 seconds
SERIES_MAX: Final = 4_000  # topics and groups together, those that changed last
_SERIES_STEP_MS: Final = 15_000

Point = tuple[int, float | None]  # wall time in ms, and the value


class Ring:
    """Points in the order of time; a point that comes sooner than `step_ms` after the last one is left out."""

    __slots__ = ("_points", "_step_ms")

    def __init__(self, points_max: int, step_ms: int = 0) -> None:
        self._points: deque[Point] = deque(maxlen=points_max)
        self._step_ms = step_ms

    def add(self, time_ms: int, value: float | None) -> None:
        if not self._points or time_ms - self._points[-1][0] >= self._step_ms:
            self._points.append((time_ms, value))

    def points(self, since_ms: int = 0) -> list[Point]:
        return [point for point in self._points if point[0] >= since_ms]

    @property
    def last(self) -> float | None:
        return self._points[-1][1] if self._points else None


class MetricHistory:
    """The rings of one cluster, as one person sees it. Names of totals: `records_in`, `records_out`, `bytes_in`, `bytes_out`, `lag`."""

    def __init__(self) -> None:
        self._totals: dict[str, Ring] = {}
        self._series: OrderedDict[tuple[str, str], Ring] = OrderedDict()  # the one that changed longest ago first

    def add_total(self, name: str, time_ms: int, value: float | None) -> None:
        self._totals.setdefault(name, Ring(TOTALS_MAX)).add(time_ms, value)

    def add_topic_rate(self, topic: str, time_ms: int, records_per_s: float) -> None:
        self._add(("topic", topic), time_ms, records_per_s)

    def add_group_lag(self, group: str, time_ms: int, lag: int) -> None:
        self._add(("group", group), time_ms, lag)

    def total(self, name: str, since_ms: int = 0) -> list[Point]:
        return self._totals[name].points(since_ms) if name in self._totals else []

    def topic_rate(self, topic: str) -> list[Point]:
        """Records per second of a topic."""
        return self._points(("topic", topic))

    def group_lag(self, group: str) -> list[Point]:
        """The lag of a group, in records."""
        return self._points(("group", group))

    def _points(self, key: tuple[str, str]) -> list[Point]:
        return self._series[key].points() if key in self._series else []

    def _add(self, key: tuple[str, str], time_ms: int, value: float) -> None:
        ring = self._series.get(key)
        if ring is None:
            if not value:
                return  # nothing has happened there yet
            ring = self._series[key] = Ring(SERIES_POINTS_MAX, _SERIES_STEP_MS)
            if len(self._series) > SERIES_MAX:
                self._series.popitem(last=False)
        if value or ring.last:
            self._series.move_to_end(key)
        ring.add(time_ms, value)


def columns(*series: Sequence[Point]) -> list[list[float | None]]:
    """Series with their times in seconds as the first column, as uPlot takes them. Points of one time are in one row."""
    times = sorted({time for points in series for time, _ in points})
    by_time = [dict(points) for points in series]
    return [[time / 1_000 for time in times], *([values.get(time) for time in times] for values in by_time)]
