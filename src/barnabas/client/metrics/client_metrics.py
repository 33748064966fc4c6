"""Creates the metrics of a client from its settings: tags, windows, reporters, and the metrics that every client has."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.clock import Clock
from barnabas.client.config.config import ClientConfig, load
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.software import SOFTWARE_VERSION

_JAVA_REPORTERS: Final = "org.apache.kafka."


def client_metrics(config: ClientConfig, clock: Clock) -> Metrics:
    """The metrics, tagged with client.id. Objects or classes of metric.reporters are created, configured and notified; Java's own are
    ignored."""
    named = [value for value in config["metric.reporters"] or () if not (isinstance(value, str) and value.startswith(_JAVA_REPORTERS))]
    reporters: list[Any] = [load("metric.reporters", value) for value in named]
    for reporter in reporters:
        if callable(configure := getattr(reporter, "configure", None)):
            configure(config.originals())
    metrics = Metrics(
        clock,
        tags={"client-id": config["client.id"]},
        samples=config["metrics.num.samples"],
        window_ms=config["metrics.sample.window.ms"],
        recording_level=config["metrics.recording.level"],
        reporters=reporters,
    )
    start_ms = clock.now_ms()
    name = metrics.metric_name
    metrics.gauge(name("count", "kafka-metrics-count", "total number of registered metrics"), lambda: len(metrics.all()))
    metrics.gauge(name("start-time-ms", "app-info", "Metric indicating start-time-ms"), lambda: start_ms)
    metrics.gauge(name("version", "app-info", "Metric indicating version"), lambda: SOFTWARE_VERSION)
    return metrics
