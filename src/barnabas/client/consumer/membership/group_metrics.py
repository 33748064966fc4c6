# Compiled by mypyc: src/compiled.toml lists this module.
"""The metrics of a group member under Kafka's names (`consumer-coordinator-metrics`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.client.metrics.metrics import Avg, CumulativeCount, CumulativeSum, Max, Metrics, Rate

GROUP: Final = "consumer-coordinator-metrics"


class CommitMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self._commit = latency(metrics, "commit-latency", "commit-latency", "commit")

    def committed(self, took_ms: int) -> None:
        self._commit(took_ms)


class CallbackMetrics:
    """The duration of the application's listener callbacks."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        for event in ("assigned", "revoked", "lost"):
            prefix = f"partition-{event}-latency"
            metrics.average_and_max(prefix, metrics.metric_name(f"{prefix}-avg", GROUP), metrics.metric_name(f"{prefix}-max", GROUP))

    def now_ms(self) -> int:
        return self._metrics.clock.monotonic_ms()

    def called(self, event: str, took_ms: int) -> None:
        self._metrics.sensor(f"partition-{event}-latency").record(took_ms)


class GroupMetrics:
    def __init__(self, metrics: Metrics, assigned: Callable[[], int]) -> None:
        self._metrics = metrics
        self._join = latency(metrics, "join-latency", "join-time", "join")
        self._sync = latency(metrics, "sync-latency", "sync-time", "sync")
        self._rebalance_ended_ms: int | None = None
        self._heartbeat_sent_ms: int | None = None
        metrics.add("heartbeat-latency", metrics.metric_name("heartbeat-response-time-max", GROUP), _max(metrics))
        meter(metrics, "heartbeat-latency", "heartbeat")
        for name, stat in (
            ("rebalance-latency-avg", Avg(metrics.samples, metrics.window_ms)),
            ("rebalance-latency-max", _max(metrics)),
            ("rebalance-latency-total", CumulativeSum()),
            ("rebalance-total", CumulativeCount()),
            ("rebalance-rate-per-hour", PerHour(metrics)),
        ):
            metrics.add("rebalance-latency", metrics.metric_name(name, GROUP), stat)
        metrics.add("failed-rebalance", metrics.metric_name("failed-rebalance-total", GROUP), CumulativeCount())
        metrics.add("failed-rebalance", metrics.metric_name("failed-rebalance-rate-per-hour", GROUP), PerHour(metrics))
        metrics.gauge(metrics.metric_name("assigned-partitions", GROUP), lambda: float(assigned()))
        metrics.gauge(metrics.metric_name("last-rebalance-seconds-ago", GROUP), lambda: self._ago(self._rebalance_ended_ms))
        metrics.gauge(metrics.metric_name("last-heartbeat-seconds-ago", GROUP), lambda: self._ago(self._heartbeat_sent_ms))

    def joined(self, took_ms: int) -> None:
        self._join(took_ms)

    def synced(self, took_ms: int) -> None:
        self._sync(took_ms)

    def heartbeat_sent(self, now_ms: int) -> None:
        self._heartbeat_sent_ms = now_ms

    def heartbeat_answered(self, took_ms: int) -> None:
        self._metrics.sensor("heartbeat-latency").record(took_ms)

    def rebalanced(self, took_ms: int, now_ms: int) -> None:
        self._rebalance_ended_ms = now_ms
        self._metrics.sensor("rebalance-latency").record(took_ms)

    def rebalance_failed(self) -> None:
        self._metrics.sensor("failed-rebalance").record()

    def _ago(self, moment_ms: int | None) -> float:
        return -1.0 if moment_ms is None else float((self._metrics.clock.monotonic_ms() - moment_ms) // 1000)


class PerHour(Rate):
    def __init__(self, metrics: Metrics) -> None:
        super().__init__(metrics.samples, metrics.window_ms, counting=True)

    def measure(self, now_ms: int) -> float:
        return super().measure(now_ms) * 3600


def latency(metrics: Metrics, sensor: str, prefix: str, event: str) -> Callable[[float], None]:
    """Average and maximum of a duration, and rate and total of its events."""
    metrics.average_and_max(sensor, metrics.metric_name(f"{prefix}-avg", GROUP), metrics.metric_name(f"{prefix}-max", GROUP))
    return meter(metrics, sensor, event)


def meter(metrics: Metrics, sensor: str, event: str) -> Callable[[float], None]:
    return metrics.meter(
        sensor, metrics.metric_name(f"{event}-rate", GROUP), metrics.metric_name(f"{event}-total", GROUP), counting=True
    ).record


def _max(metrics: Metrics) -> Max:
    return Max(metrics.samples, metrics.window_ms)
