"""Rates, totals, averages and maxima over Kafka's windows."""

from __future__ import annotations

from math import isnan
from typing import Any

import pytest

from barnabas.client.metrics.client_metrics import client_metrics
from barnabas.client.metrics.metrics import (
    Avg,
    CumulativeCount,
    CumulativeSum,
    Max,
    Metric,
    MetricName,
    Metrics,
    Min,
    Rate,
    Value,
    WindowedSum,
)
from tests.client_network import config_of
from tests.unit.client.clocks import ManualClock

WINDOW_MS = 1000


def test_totals_and_last_values() -> None:
    total, count, last = CumulativeSum(), CumulativeCount(), Value()
    for value in (5, 7):
        for stat in (total, count, last):
            stat.record(value, 0)
    assert (total.measure(0), count.measure(0), last.measure(0)) == (12, 2, 7)


def test_averages_and_extremes_forget_old_windows() -> None:
    average, largest, smallest = Avg(2, WINDOW_MS), Max(2, WINDOW_MS), Min(2, WINDOW_MS)
    for now_ms, value in ((0, 10), (1500, 2), (1600, 4)):
        for stat in (average, largest, smallest):
            stat.record(value, now_ms)
    assert (average.measure(1600), largest.measure(1600), smallest.measure(1600)) == (16 / 3, 10, 2)
    assert (average.measure(2100), largest.measure(2100), smallest.measure(2100)) == (3, 4, 2)
    assert isnan(average.measure(9000)) and isnan(largest.measure(9000)) and isnan(smallest.measure(9000))


def test_a_rate_is_measured_over_all_but_one_window_at_least() -> None:
    rate = Rate(2, WINDOW_MS)
    rate.record(100, 0)
    assert rate.measure(0) == 100 / 1, "one whole window, though no time has passed"
    rate.record(100, 1500)
    assert rate.measure(1500) == pytest.approx(200 / 1.5)


def test_a_rate_of_events_counts_them() -> None:
    rate = Rate(2, WINDOW_MS, counting=True)
    rate.record(100, 0)
    rate.record(100, 10)
    assert rate.measure(100) == pytest.approx(2 / 1.1)


def test_an_idle_rate_falls_to_nothing() -> None:
    rate = Rate(2, WINDOW_MS)
    rate.record(100, 0)
    assert rate.measure(10_000) == 0


def test_no_more_samples_than_wanted_are_kept() -> None:
    stat = WindowedSum(3, WINDOW_MS)
    for now_ms in range(0, 10 * WINDOW_MS, WINDOW_MS):
        stat.record(1, now_ms)
    assert len(stat.samples) == 3 and stat.measure(9 * WINDOW_MS) == 3


class Reporter:
    def __init__(self) -> None:
        self.told: list[str] = []

    def configure(self, settings: dict[str, Any]) -> None:
        self.told.append(f"configured {settings['my.reporter']}")

    def init(self, metrics: list[Metric]) -> None:
        self.told.append(f"init {len(metrics)}")

    def metric_change(self, metric: Metric) -> None:
        self.told.append(metric.name.name)

    def metric_removal(self, metric: Metric) -> None:
        self.told.append(f"-{metric.name.name}")

    def close(self) -> None:
        self.told.append("closed")


def test_a_registry_of_sensors() -> None:
    clock = ManualClock()
    metrics = Metrics(clock, tags={"client-id": "c"}, samples=2, window_ms=WINDOW_MS)
    rate, total = metrics.metric_name("r", "g"), metrics.metric_name("t", "g", "how many", node_id="node-1")
    sensor = metrics.meter("bytes", rate, total)
    assert metrics.meter("bytes", rate, total) is sensor, "again, and nothing is counted twice"
    sensor.record(5)
    assert total == MetricName("t", "g", (("client-id", "c"), ("node-id", "node-1")))
    found = metrics.find("t", "g", node_id="node-1")
    assert found is not None and found.metric_value() == 5.0 and found.metric_name.description == "how many"
    assert metrics.find("t", "other") is None
    metrics.gauge(metrics.metric_name("now", "g"), lambda: "text")
    assert [metric.metric_value() for metric in metrics if metric.name.name == "now"] == ["text"]
    metrics.remove_sensor("bytes")
    assert {name.name for name in metrics.all()} == {"now"}


def test_levels() -> None:
    metrics = Metrics(ManualClock(), recording_level="DEBUG")
    assert metrics.should_record("INFO") and metrics.should_record("DEBUG") and not metrics.should_record("TRACE")


def test_reporters_of_the_settings_are_told() -> None:
    reporter = Reporter()
    named = [reporter, "org.apache.kafka.common.metrics.JmxReporter"]
    config = config_of({"bootstrap.servers": "h:1", "client.id": "c", "metric.reporters": named, "my.reporter": 5})
    metrics = client_metrics(config, ManualClock())
    metrics.meter("s", metrics.metric_name("r", "g"), metrics.metric_name("t", "g"))
    metrics.remove_sensor("s")
    metrics.close()
    assert reporter.told == ["configured 5", "init 0", "count", "start-time-ms", "version", "r", "t", "-r", "-t", "closed"]
    assert metrics.tags == {"client-id": "c"} and config.unused() == []
