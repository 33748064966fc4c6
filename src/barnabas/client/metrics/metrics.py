# Compiled by mypyc: src/compiled.toml lists this module.
"""What a client measures of itself, under Kafka's names.

A sensor is told of an event and keeps a few numbers; a rate, an average or a maximum looks at the last `metrics.num.samples` windows of
`metrics.sample.window.ms` each, as Kafka's do, and is computed when somebody asks. Recording costs a few additions and takes no lock.
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
    """Two are the same when name, group and tags are."""

    name: str
    group: str
    tags: tuple[tuple[str, str], ...] = ()
    description: str = field(default="", compare=False)

    @property
    def tag_map(self) -> dict[str, str]:
        """The tags as a dictionary."""
        return dict(self.tags)


class Stat:
    """Something that is told values and can say one number."""

    def record(self, value: float, now_ms: int) -> None:
        raise NotImplementedError

    def measure(self, now_ms: int) -> float:
        raise NotImplementedError


class CumulativeSum(Stat):
    """Everything since the beginning."""

    def __init__(self) -> None:
        self.total = 0.0

    def record(self, value: float, now_ms: int) -> None:
        self.total += value

    def measure(self, now_ms: int) -> float:
        return self.total


class CumulativeCount(CumulativeSum):
    """How often, since the beginning."""

    def record(self, value: float, now_ms: int) -> None:
        self.total += 1


class Value(Stat):
    """The last one that was told."""

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
    """Keeps one sample for each of the last windows; those that are too old do not count any more."""

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
        """Drops samples that ended before the oldest window."""
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
    """Per second, over the windows; over all but one of them at least, so that a client that has just begun shows no absurd rates."""

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
    """Told of one kind of event; each of its stats makes a metric of it."""

    __slots__ = ("_clock", "_stats")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stats: list[Stat] = []

    def add(self, stat: Stat) -> None:
        self._stats.append(stat.stat if isinstance(stat, Rate) else stat)  # a rate only measures: what records is inside

    def record(self, value: float = 1.0, now_ms: int | None = None) -> None:
        now = self._clock.monotonic_ms() if now_ms is None else now_ms
        for stat in self._stats:
            stat.record(value, now)


class Metric:
    """A number with a name, looked up when asked for."""

    __slots__ = ("_clock", "_measure", "is_sum", "name")

    def __init__(self, name: MetricName, clock: Clock, measure: Callable[[int], object], is_sum: bool = False) -> None:
        self.name = name
        self.is_sum = is_sum  # a count or total, which telemetry pushes as a sum; all else is a gauge to it
        self._clock = clock
        self._measure = measure

    @staticmethod
    def of(name: MetricName, measure: Callable[[], object], *, is_sum: bool = False) -> Metric:
        """A metric of an application's own, to be registered with a client: `measure` is called whenever it is looked at, in any thread."""
        return Metric(name, SystemClock(), lambda now_ms: measure(), is_sum)

    @property
    def metric_name(self) -> MetricName:
        """Its name, under the name that Java's metrics have for it."""
        return self.name

    def metric_value(self) -> object:
        """A float for what is measured; whatever the gauge gives for a gauge."""
        return self._measure(self._clock.monotonic_ms())

    def __repr__(self) -> str:
        return f"{self.name.group}:{self.name.name}={self.metric_value()}"


class MetricsReporter(Protocol):
    """Told of the metrics of a client as they come and go: an entry of metric.reporters."""

    def init(self, metrics: list[Metric]) -> None: ...

    def metric_change(self, metric: Metric) -> None: ...

    def metric_removal(self, metric: Metric) -> None: ...

    def close(self) -> None: ...


class Metrics:
    """The metrics of one client. Names are made with `metric_name`, which adds the client's own tags (`client-id`)."""

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
        """It is told of all metrics there are, and of each that comes or goes from now on."""
        reporter.init(list(self._metrics.values()))
        self._reporters.append(reporter)

    def close(self) -> None:
        for reporter in self._reporters:
            reporter.close()
        self._reporters = []

    def should_record(self, level: str) -> bool:
        return RECORDING_LEVELS.index(level) <= RECORDING_LEVELS.index(self.recording_level)

    def metric_name(self, name: str, group: str, description: str = "", **tags: str) -> MetricName:
        """With the client's tags; keyword tags are written with `_` for `-`."""
        all_tags = self.tags | {tag.replace("_", "-"): value for tag, value in tags.items()}
        return MetricName(name, group, tuple(all_tags.items()), description)

    def sensor(self, name: str) -> Sensor:
        """The sensor of that name, made if there is none."""
        found = self._sensors.get(name)
        if found is None:
            found = self._sensors[name] = Sensor(self.clock)
        return found

    def add(self, sensor: str, name: MetricName, stat: Stat) -> None:
        """A metric of what a sensor is told. Adding a name twice changes nothing."""
        if name in self._metrics:
            return
        self.sensor(sensor).add(stat)
        self._put(Metric(name, self.clock, stat.measure, isinstance(stat, CumulativeSum | WindowedCount)))
        self._of_sensor.setdefault(sensor, []).append(name)

    def gauge(self, name: MetricName, measure: Callable[[], object]) -> None:
        """A metric that is asked for when it is looked at."""
        self._put(Metric(name, self.clock, lambda now_ms: measure()))

    def meter(self, sensor: str, rate: MetricName, total: MetricName, *, counting: bool = False) -> Sensor:
        """Rate and total of the same events, as most of Kafka's metrics come in pairs."""
        self.add(sensor, rate, Rate(self.samples, self.window_ms, counting=counting))
        self.add(sensor, total, CumulativeCount() if counting else CumulativeSum())
        return self.sensor(sensor)

    def average_and_max(self, sensor: str, average: MetricName, largest: MetricName) -> Sensor:
        self.add(sensor, average, Avg(self.samples, self.window_ms))
        self.add(sensor, largest, Max(self.samples, self.window_ms))
        return self.sensor(sensor)

    def remove_sensor(self, name: str) -> None:
        """With its metrics, for instance of a node that is gone."""
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
        """A copy: what the client's `metrics()` gives."""
        return dict(self._metrics)

    def __iter__(self) -> Iterator[Metric]:
        return iter(list(self._metrics.values()))

    def find(self, name: str, group: str | None = None, **tags: str) -> Metric | None:
        """The first metric of that name that has these tags."""
        wanted = {tag.replace("_", "-"): value for tag, value in tags.items()}.items()
        for metric in self._metrics.values():
            if metric.name.name == name and group in (None, metric.name.group) and wanted <= metric.name.tag_map.items():
                return metric
        return None
