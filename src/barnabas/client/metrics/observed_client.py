# Compiled by mypyc: src/compiled.toml lists this module.
"""The calls by which an application observes its producer or consumer: metrics and the last connection error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mypy_extensions import mypyc_attr

from barnabas.client.metrics.metrics import Metric, MetricName, Metrics

if TYPE_CHECKING:
    from barnabas.client.metrics.telemetry import ClientTelemetry
    from barnabas.errors import KafkaError


class ConnectionErrors(Protocol):
    """The connection failures of a client (`network/connection_failures.py`)."""

    def last(self) -> KafkaError | None: ...


@mypyc_attr(allow_interpreted_subclasses=True)
class ObservedClient:
    """The base class of `Producer`, `AsyncProducer`, `Consumer` and `AsyncConsumer`."""

    def _observed(self) -> tuple[Metrics, ClientTelemetry | None, ConnectionErrors]:
        """The parts of the client that are observed."""
        raise NotImplementedError

    def last_connection_error(self) -> KafkaError | None:
        """The last connection failure of an address that has not been connected to since; None if there is none.

        Every Timeout of this client has it as its cause. The `poll` of a consumer raises no Timeout, so an application that receives no
        records can check here.
        """
        return self._observed()[2].last()

    def metrics(self) -> dict[MetricName, Metric]:
        """The metrics of this client, by name. `metric.metric_value()` measures at the time of the call."""
        return self._observed()[0].all()

    def register_metric_for_subscription(self, metric: Metric) -> None:
        """Pushes a metric of the application with the client's own metrics, if the cluster subscribes to it (KIP-1076).

        The cluster names `Metric.of(MetricName("queue-length", "app-metrics"), lambda: len(queue))` org.apache.kafka.app.queue.length. A
        metric with the name of one of the client's own metrics is ignored. With enable.metrics.push=false nothing is pushed.
        """
        telemetry = self._observed()[1]
        if telemetry is not None:
            telemetry.register(metric)

    def unregister_metric_from_subscription(self, metric: Metric) -> None:
        """Stops pushing a metric of the application."""
        telemetry = self._observed()[1]
        if telemetry is not None:
            telemetry.unregister(metric)
