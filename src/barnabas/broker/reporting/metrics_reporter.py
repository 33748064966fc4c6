"""The base class of reporters, and what they get: the value of each series at one time."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from barnabas.broker.exposition.prometheus_text import names_of
from barnabas.metrics.registry import QUANTILES, Distribution, Family, Kind

_log = logging.getLogger(__name__)

SeriesKey = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Metric:
    """One series of one metric. `name` and `labels` are those of /metrics, where a histogram has a series for each quantile and one named
    `…_count`. `mbean` is Kafka's name of the metric, such as `kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec`; it is empty for a
    metric that Kafka does not have."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    is_counter: bool  # never decreases while the broker runs
    mbean: str
    meaning: str

    @property
    def key(self) -> SeriesKey:
        """What distinguishes the series from all others."""
        return self.name, self.labels


class MetricsReporter:
    """The base class of classes of `metric.reporters`. All methods but `configure` are called on a thread of the reporter, one after the
    other: they may wait, and what they raise is logged.

        class Printer(MetricsReporter):
            def report(self, metrics):
                for metric in metrics:
                    print(metric.name, dict(metric.labels), metric.value)

    A reporter that takes longer than the interval misses reports.
    """

    def configure(self, configs: Mapping[str, str]) -> None:
        """Called once, on the event loop, with the properties of the broker. An exception refuses the reporter."""

    def init(self, metrics: Sequence[Metric]) -> None:
        """Called first, with all series that exist."""

    def metric_change(self, metric: Metric) -> None:
        """Called when a series was added, such as that of a new topic."""

    def metric_removal(self, metric: Metric) -> None:
        """Called when a series has ended, with its last value."""

    def report(self, metrics: Sequence[Metric]) -> None:
        """Called every kafka.metrics.polling.interval.secs, with the values of all series."""

    def close(self) -> None:
        """Called when the broker stops, or the reporter is taken out of metric.reporters."""


def read_metrics(families: Iterable[Family]) -> Iterator[Metric]:
    """All series, read one after the other. An error of one family does not take the others away."""
    for family in families:
        try:
            yield from _series(family)
        except Exception:
            _log.exception("Reading the metric %s %s %s failed", family.group, family.type, family.name)


def _series(family: Family) -> Iterator[Metric]:
    names = names_of(family)
    mbean = f"{family.group}:type={family.type},name={family.name}" if family.group else ""
    is_counter = family.kind is Kind.METER
    for values, value in family.read():
        labels = tuple((name, text) for name, text in zip(family.labels, values, strict=True) if text)
        if isinstance(value, Distribution):
            (name, _), (count_name, _) = names
            for quantile, at in zip(QUANTILES, value.quantiles, strict=True):
                yield Metric(name, (*labels, ("quantile", str(quantile))), at, False, mbean, family.meaning)
            yield Metric(count_name, labels, value.count, True, mbean, family.meaning)
        else:
            for name, _ in names:
                yield Metric(name, labels, value, is_counter, mbean, family.meaning)
