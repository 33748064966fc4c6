"""The metrics of a consumer's calls under Kafka's names (group consumer-metrics)."""

from __future__ import annotations

import time
from typing import Final

from barnabas.client.metrics.metrics import CumulativeSum, Metrics

GROUP: Final = "consumer-metrics"


class PollMetrics:
    """The idle ratio is the time within polls divided by the time between the starts of polls: near 1 for a consumer that waits for
    records."""

    def __init__(self, metrics: Metrics) -> None:
        name = metrics.metric_name
        self._clock = metrics.clock
        self._between = metrics.average_and_max(
            "time-between-poll", name("time-between-poll-avg", GROUP), name("time-between-poll-max", GROUP)
        )
        self._last_start_ms: int | None = None
        self._between_ms = 0
        self._idle_ms = 0
        self.commit_sync_time = _Stopwatch(metrics, "commit-sync-time-ns-total")
        self.committed_time = _Stopwatch(metrics, "committed-time-ns-total")
        metrics.gauge(name("last-poll-seconds-ago", GROUP), self._seconds_ago)
        metrics.gauge(name("poll-idle-ratio-avg", GROUP), self._idle_ratio)

    def poll_began(self, now_ms: int) -> None:
        if self._last_start_ms is not None:
            self._between_ms += now_ms - self._last_start_ms
            self._between.record(now_ms - self._last_start_ms, now_ms)
        self._last_start_ms = now_ms

    def poll_ended(self, now_ms: int) -> None:
        if self._last_start_ms is not None:
            self._idle_ms += now_ms - self._last_start_ms

    def _seconds_ago(self) -> int:
        return -1 if self._last_start_ms is None else (self._clock.monotonic_ms() - self._last_start_ms) // 1000

    def _idle_ratio(self) -> float:
        return min(1.0, self._idle_ms / self._between_ms) if self._between_ms else float("nan")


class _Stopwatch:
    """Sums the durations of the blocks in which it is used as a context manager; the blocks do not overlap."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        metrics.add(name, metrics.metric_name(name, GROUP), CumulativeSum())
        self._sensor = metrics.sensor(name)
        self._began_ns = 0

    def __enter__(self) -> None:
        self._began_ns = time.perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        self._sensor.record(time.perf_counter_ns() - self._began_ns)
