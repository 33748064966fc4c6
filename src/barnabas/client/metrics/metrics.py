# Compiled by mypyc: src/compiled.toml lists this module.
"""The metrics of a client under Kafka's names.

A sensor records events as a few numbers. Rates, averages and maxima cover the last `metrics.num.samples` windows of
`metrics.sample.window.ms` each, as in Kafka, and are computed when they are read. Recording costs a few additions and takes no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Final, Protocol

from barnabas.client.clock import Clock, SystemClock

RECORDING_LEVELS: Final = ("INFO", "DEBUG", "TRACE")


@dataclass(frozen=True, slots=True)
class MetricName:
    """Two names are equal if name, group and tags are."""

    name: str
    group: str
    tags: tuple[tuple[str, str], ...] = ()
    description: str = field(default="", compare=False)

    @property
    def tag_map(self) -> dict[str, str]:
        """The tags as a dictionary."""
        return dict(self.tags)


class Stat:
    """Records values and computes one number from them."""

    def record(self, value: float, now_ms: int) -> None:
        raise NotImplementedError

    def measure(self, now_ms: int) -> float:
        raise NotImplementedError


class CumulativeSum(Stat):
    """The sum of all values since the start."""

    def __init__(self) -> None:
        self.total = 0.0

    def record(self, value: float, now_ms: int) -> None:
        self.total += value

    def measure(self, now_ms: int) -> float:
        return self.total


class CumulativeCount(CumulativeSum):
    """The number of values since the start."""

    def record(self, value: float, now_ms: int) -> None:
        self.total += 1


class Value(Stat):
    """The last value."""

    def __init__(self) -> None:
        self.value = 0.0

    def record(self, value: float, now_ms: int) -> None:
        self.value = value

    def measure(self, now_ms: int) -> float:
        return self.value


class _Sample:
    __slots__ = ("count", "start_ms", "value")

    def __init__(self, start_ms: int, value: float) -> None:
        self.start_ms = start_ms
        self.value = value
        self.count = 0


class SampledStat(Stat):
    """Keeps one sample for each of the last windows; older samples do not count."""

    initial = 0.0

    def __init__(self, samples: int, window_ms: int) -> None:
        self.samples_max = samples
        self.window_ms = window_ms
        self.samples: list[_Sample] = []
        self._current: _Sample | None = None

    def record(self, value: float, now_ms: int) -> None:
        current = self._current
        if current is None or now_ms - current.start_ms >= self.window_ms:
            current = self._advance(now_ms)
        self.update(current, value)
        current.count += 1

    def measure(self, now_ms: int) -> float:
        self.forget(now_ms)
        return self.combine(self.samples, now_ms)

    def update(self, sample: _Sample, value: float) -> None:
        raise NotImplementedError

    def combine(self, samples: list[_Sample], now_ms: int) -> float:
        raise NotImplementedError

    def forget(self, now_ms: int) -> None:
        """Drops samples that are older than the oldest window."""
        horizon = now_ms - self.samples_max * self.window_ms
        self.samples = [sample for sample in self.samples if sample.start_ms > horizon]
        if self._current is not None and self._current.start_ms <= horizon:
            self._current = None

    def oldest_ms(self, now_ms: int) -> int:
        return min((sample.start_ms for sample in self.samples), default=now_ms)

    def _advance(self, now_ms: int) -> _Sample:
        self._current = _Sample(now_ms, self.initial)
        self.samples = [*self.samples[-(self.samples_max - 1) :], self._current] if self.samples_max > 1 else [self._current]
        return self._current


class WindowedSum(SampledStat):
    def update(self, sample: _Sample, value: float) -> None:
        sample.value += value

    def combine(self, samples: list[_Sample], now_ms: int) -> float:
        return sum(sample.value for sample in samples)


class WindowedCount(WindowedSum):
    def update(self, sample: _Sample, value: float) -> None:
        sample.value += 1


class Avg(SampledStat):
    def update(self, sample: _Sample, value: float) -> None:
        sample.value += value

    def combine(self, samples: list[_Sample], now_ms: int) -> float:
        count = sum(sample.count for sample in samples)
        return sum(sample.value for sample in samples) / count if count else nan


class Max(SampledStat):
    initial = float("-inf")

    def update(self, sample: _Sample, value: float) -> None:
        if value > sample.value:
            sample.value = value

    def combine(self, samples: list[_Sample], now_ms: int) -> float:
        return max((sample.value for sample in samples if sample.count), default=nan)


class Min(SampledStat):
    initial = float("inf")

    def update(self, sample: _Sample, value: float) -> None:
        if value < sample.value:
            sample.value = value

    def combine(self, samples: list[_Sample], now_ms: int) -> float:
        return min((sample.value for sample in samples if sample.count), default=nan)


class Rate(Stat):
    """A rate per second over the windows, but over at least all but one of them, so that a client that has just started shows no absurd
    rates."""

    def __init__(self, samples: int, window_ms: int, *, counting: bool = False) -> None:
        self.stat: SampledStat = WindowedCount(samples, window_ms) if counting else WindowedSum(samples, window_ms)

    def record(self, value: float, now_ms: int) -> None:
        self.stat.record(value, now_ms)

    def measure(self, now_ms: int) -> float:
        value = self.stat.measure(now_ms)
        elapsed_ms = now_ms - self.stat.oldest_ms(now_ms)
        full_windows = elapsed_ms // self.stat.window_ms if self.stat.window_ms else 0
        least = self.stat.samples_max - 1
        if full_windows < least:
            elapsed_ms += (least - full_windows) * self.stat.window_ms
        return value / (max(elapsed_ms, self.stat.window_ms, 1) / 1000)


class Sensor:
    """Records one kind of event; each of its stats is the source of a metric."""

    __slots__ = ("_clock", "_stats")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stats: list[Stat] = []

    def add(self, stat: Stat) -> None:
        self._stats.append(stat.stat if isinstance(stat, Rate) else stat)  # the rate only measures; its inner stat records

    def record(self, value: float = 1.0, now_ms: int | None = None) -> None:
        now = self._clock.monotonic_ms() if now_ms is None else now_ms
        for stat in self._stats:
            stat.record(value, now)


class Metric:
    """A number with a name, computed when it is read."""

    __slots__ = ("_clock", "_measure", "is_sum", "name")

    def __init__(self, name: MetricName, clock: Clock, measure: Callable[[int], object], is_sum: bool = False) -> None:
        self.name = name
        self.is_sum = is_sum  # a count or total, which telemetry pushes as a sum; all others are gauges
        self._clock = clock
        self._measure = measure

    @staticmethod
    def of(name: MetricName, measure: Callable[[], object], *, is_sum: bool = False) -> Metric:
        """A metric of the application, to be registered with a client. `measure` is called at every read, in any thread."""
        return Metric(name, SystemClock(), lambda now_ms: measure(), is_sum)

    @property
    def metric_name(self) -> MetricName:
        """Its name, under the name that Java's metrics have for it."""
        return self.name

    def metric_value(self) -> object:
        """A float for a measured value; the result of its function for a gauge."""
        return self._measure(self._clock.monotonic_ms())

    def __repr__(self) -> str:
        return f"{self.name.group}:{self.name.name}={self.metric_value()}"


class MetricsReporter(Protocol):
    """An entry of metric.reporters: notified when metrics of a client are added, changed or removed."""

    def init(self, metrics: list[Metric]) -> None: ...

    def metric_change(self, metric: Metric) -> None: ...

    def metric_removal(self, metric: Metric) -> None: ...

    def close(self) -> None: ...


class Metrics:
    """The metrics of one client. `metric_name` creates names with the client's own tags (`client-id`)."""

    def __init__(
        self,
        clock: Clock,
        *,
        tags: Mapping[str, str] | None = None,
        samples: int = 2,
        window_ms: int = 30000,
        recording_level: str = "INFO",
        reporters: Iterable[MetricsReporter] = (),
    ) -> None:
        self.clock = clock
        self.tags = dict(tags or {})
        self.samples = samples
        self.window_ms = window_ms
        self.recording_level = recording_level
        self._metrics: dict[MetricName, Metric] = {}
        self._of_sensor: dict[str, list[MetricName]] = {}
        self._sensors: dict[str, Sensor] = {}
        self._reporters: list[MetricsReporter] = []
        for reporter in reporters:
            self.add_reporter(reporter)

    def add_reporter(self, reporter: MetricsReporter) -> None:
        """Adds a reporter: it receives all existing metrics, and every later addition and removal."""
        reporter.init(list(self._metrics.values()))
        self._reporters.append(reporter)

    def close(self) -> None:
        for reporter in self._reporters:
            reporter.close()
        self._reporters = []

    def should_record(self, level: str) -> bool:
        return RECORDING_LEVELS.index(level) <= RECORDING_LEVELS.index(self.recording_level)

    def metric_name(self, name: str, group: str, description: str = "", **tags: str) -> MetricName:
        """A name with the client's tags; keyword tags have `_` for `-`."""
        all_tags = self.tags | {tag.replace("_", "-"): value for tag, value in tags.items()}
        return MetricName(name, group, tuple(all_tags.items()), description)

    def sensor(self, name: str) -> Sensor:
        """The sensor of that name; created if there is none."""
        existing = self._sensors.get(name)
        if existing is None:
            existing = self._sensors[name] = Sensor(self.clock)
        return existing

    def add(self, sensor: str, name: MetricName, stat: Stat) -> None:
        """Adds a metric of a sensor. Adding a name twice changes nothing."""
        if name in self._metrics:
            return
        self.sensor(sensor).add(stat)
        self._put(Metric(name, self.clock, stat.measure, isinstance(stat, CumulativeSum | WindowedCount)))
        self._of_sensor.setdefault(sensor, []).append(name)

    def gauge(self, name: MetricName, measure: Callable[[], object]) -> None:
        """Adds a metric whose function is called when it is read."""
        self._put(Metric(name, self.clock, lambda now_ms: measure()))

    def meter(self, sensor: str, rate: MetricName, total: MetricName, *, counting: bool = False) -> Sensor:
        """Adds rate and total of the same events, as most of Kafka's metrics are pairs."""
        self.add(sensor, rate, Rate(self.samples, self.window_ms, counting=counting))
        self.add(sensor, total, CumulativeCount() if counting else CumulativeSum())
        return self.sensor(sensor)

    def average_and_max(self, sensor: str, average: MetricName, largest: MetricName) -> Sensor:
        self.add(sensor, average, Avg(self.samples, self.window_ms))
        self.add(sensor, largest, Max(self.samples, self.window_ms))
        return self.sensor(sensor)

    def remove_sensor(self, name: str) -> None:
        """Removes a sensor and its metrics, for instance of a node that is gone."""
        self._sensors.pop(name, None)
        for metric in self._of_sensor.pop(name, ()):
            self.remove(metric)

    def remove(self, name: MetricName) -> None:
        removed = self._metrics.pop(name, None)
        if removed is not None:
            for reporter in self._reporters:
                reporter.metric_removal(removed)

    def _put(self, metric: Metric) -> None:
        self._metrics[metric.name] = metric
        for reporter in self._reporters:
            reporter.metric_change(metric)

    def all(self) -> dict[MetricName, Metric]:
        """A copy of all metrics: the result of the client's `metrics()`."""
        return dict(self._metrics)

    def __iter__(self) -> Iterator[Metric]:
        return iter(list(self._metrics.values()))

    def find(self, name: str, group: str | None = None, **tags: str) -> Metric | None:
        """The first metric with that name and these tags."""
        tag_items = {tag.replace("_", "-"): value for tag, value in tags.items()}.items()
        for metric in self._metrics.values():
            if metric.name.name == name and group in (None, metric.name.group) and tag_items <= metric.name.tag_map.items():
                return metric
        return None
