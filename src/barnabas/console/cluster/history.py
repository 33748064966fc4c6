"""An hour of samples: of the cluster's traffic, of each topic's rate, of each group's lag. All rings and their number are bounded."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from math import isnan, nan
from typing import Final

SPAN_MS: Final = 3_600_000
TOTALS_MAX: Final = 720  # an hour of samples, one in 5 seconds
SERIES_POINTS_MAX: Final = 240  # an hour, one in 15 seconds
SERIES_MAX: Final = 4_000  # topics and groups together, those that changed last
_SERIES_STEP_MS: Final = 15_000
_ROOM: Final = 16  # points beyond the bound, so that not every new one moves all others

Point = tuple[int, float | None]  # wall time in ms, and the value


class Ring:
    """Points in the order of time; a point that comes sooner than `step_ms` after the last one is left out.

    A point takes 16 bytes: a large cluster has thousands of rings.
    """

    __slots__ = ("_points_max", "_step_ms", "_times", "_values")

    def __init__(self, points_max: int, step_ms: int = 0) -> None:
        self._times = array("q")
        self._values = array("d")  # NaN for None
        self._points_max = points_max
        self._step_ms = step_ms

    def add(self, time_ms: int, value: float | None) -> None:
        if self._times and time_ms - self._times[-1] < self._step_ms:
            return
        self._times.append(time_ms)
        self._values.append(nan if value is None else value)
        if len(self._times) >= self._points_max + _ROOM:
            del self._times[: -self._points_max], self._values[: -self._points_max]

    def points(self, since_ms: int = 0) -> list[Point]:
        newest = zip(self._times[-self._points_max :], self._values[-self._points_max :], strict=True)
        return [(time_ms, None if isnan(value) else value) for time_ms, value in newest if time_ms >= since_ms]

    @property
    def last(self) -> float | None:
        return None if not self._values or isnan(self._values[-1]) else self._values[-1]


class MetricHistory:
    """The rings of one cluster, with the data that one user may read. Names of totals: `records_in`, `records_out`, `bytes_in`,
    `bytes_out`, `lag`."""

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
