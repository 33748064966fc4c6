"""Pushes a client's metrics to the cluster if the cluster subscribes to them (KIP-714); `kafka-client-metrics.sh` configures subscriptions.

Nothing is collected before a broker has returned a subscription. One task on the client's event loop does this, with one broker at a time.
It never delays the client's work, and never makes it fail. `enable.metrics.push=false` disables it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from random import Random
from typing import Final, Protocol

from barnabas.client.clock import Clock
from barnabas.client.config.config import ClientConfig
from barnabas.client.errors import IllegalArgument, IllegalState, KafkaError, Timeout
from barnabas.client.metrics.metrics import Metric, MetricName, Metrics
from barnabas.client.metrics.otlp import CUMULATIVE, DELTA, Point, metrics_data
from barnabas.client.metrics.telemetry_sender import NEVER_MS, ClientTelemetrySubscription, TelemetrySender
from barnabas.protocol.message import Message
from barnabas.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from barnabas.protocol.messages.push_telemetry_response import PushTelemetryResponse
from barnabas.uuid import Uuid

DOMAIN: Final = "org.apache.kafka"
CLIENT_ID_TAG: Final = "client_id"  # the broker takes it from the request
# Settings that identify the client, and their attribute names.
_LABELS: Final = {
    "client.rack": "client_rack",
    "group.id": "group_id",
    "group.instance.id": "group_instance_id",
    "transactional.id": "transactional_id",
}
NO_BROKER_WAIT_MS: Final = 1000
LAST_PUSH_TIMEOUT_MS: Final = 1000  # close() waits at most this long for the last push, even with a longer timeout

_log = logging.getLogger(__name__)


class Network(Protocol):
    """The part of NetworkClient that telemetry uses."""

    async def any_ready(self, deadline_ms: int) -> int: ...

    async def send(self, node_id: int, request: Message, *, timeout_ms: int | None = None) -> Message: ...

    def is_ready(self, node_id: int) -> bool: ...

    def timeout(self, message: str) -> Timeout: ...


class ClientTelemetry:
    """The telemetry task. Call `start` after the network is started, and `close` before the network is closed."""

    def __init__(
        self,
        network: Network,
        metrics: Metrics,
        *,
        clock: Clock,
        request_timeout_ms: int,
        labels: Mapping[str, str] | None = None,
        random: Random | None = None,
    ) -> None:
        self._network = network
        self._clock = clock
        self._request_timeout_ms = request_timeout_ms
        self._collector = Collector(metrics, clock.now_ms())
        self._labels = dict(labels or {})
        self.sender = TelemetrySender(self._collect, random or Random())
        self._node_id: int | None = None  # all requests go to one broker while it is connected
        self._known: asyncio.Event = asyncio.Event()  # set when a subscription has arrived, or none ever will
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def of(
        cls, config: ClientConfig, network: Network, metrics: Metrics, *, clock: Clock, random: Random | None = None
    ) -> ClientTelemetry | None:
        """Created from a client's settings; None if `enable.metrics.push` is false."""
        if not config.get("enable.metrics.push", True):
            return None
        labels = {label: str(value) for name, label in _LABELS.items() if (value := config.get(name)) not in (None, "")}
        return cls(network, metrics, clock=clock, request_timeout_ms=config["request.timeout.ms"], labels=labels, random=random)

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="barnabas-telemetry")

    def update_labels(self, **labels: str) -> None:
        """Sets labels that became known later: `group_member_id`."""
        self._labels.update(labels)

    def register(self, metric: Metric) -> None:
        """Also pushes a metric of the application (KIP-1076), if the cluster subscribes to it. May be called from any thread."""
        self._collector.register(metric)

    def unregister(self, metric: Metric) -> None:
        self._collector.unregister(metric)

    async def client_instance_id(self, timeout_ms: int) -> Uuid:
        """The id that the broker assigned to this client; waits for it, and raises Timeout after `timeout_ms`."""
        if timeout_ms < 0:
            raise IllegalArgument("The timeout cannot be negative for fetching client instance id.")
        if self.sender.subscription is None and self._task is not None and not self._task.done():
            try:
                await asyncio.wait_for(self._known.wait(), timeout_ms / 1000)
            except TimeoutError:
                pass
        if self.sender.subscription is None:
            raise self._network.timeout(f"The broker assigned no client instance id within {timeout_ms} ms")
        return self.sender.subscription.client_instance_id

    async def close(self, timeout_ms: int) -> None:
        """Pushes a last time if there is a subscription, and waits at most `timeout_ms` for that. May be called again."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.sender.initiate_close()
        node_id = self._node_id
        if self.sender.time_to_next_ms(self._clock.monotonic_ms()) == 0 and node_id is not None and self._network.is_ready(node_id):
            request = self.sender.next_request(self._clock.now_ms())
            if request is not None and timeout_ms > 0:
                try:
                    await self._network.send(node_id, request, timeout_ms=min(timeout_ms, LAST_PUSH_TIMEOUT_MS))
                except KafkaError as error:
                    _log.debug("The last metrics could not be pushed: %s", error)
        self.sender.close()
        self._known.set()

    async def _run(self) -> None:
        try:
            while (wait_ms := self.sender.time_to_next_ms(self._clock.monotonic_ms())) != NEVER_MS:
                if wait_ms > 0:
                    await asyncio.sleep(wait_ms / 1000)
                else:
                    await self._exchange()
        except Exception:
            _log.exception("Telemetry has failed; no metrics are pushed any more")
        finally:
            self._known.set()

    async def _exchange(self) -> None:
        """Sends one request and handles its response."""
        try:
            if self._node_id is None or not self._network.is_ready(self._node_id):
                self._node_id = await self._network.any_ready(self._clock.monotonic_ms() + self._request_timeout_ms)
        except KafkaError:
            self._node_id = None
            await asyncio.sleep(NO_BROKER_WAIT_MS / 1000)  # no broker can be reached, or authentication failed
            return
        request = self.sender.next_request(self._clock.now_ms())
        assert request is not None
        try:
            response = await self._network.send(self._node_id, request, timeout_ms=self._request_timeout_ms)
        except KafkaError as error:
            self._node_id = None
            self.sender.failed(error, self._clock.monotonic_ms())
            return
        now_ms = self._clock.monotonic_ms()
        if isinstance(response, GetTelemetrySubscriptionsResponse):
            before = self.sender.subscription
            self.sender.subscribed(response, now_ms)
            after = self.sender.subscription
            if before is not None and after is not None and before.is_delta != after.is_delta:
                self._collector.forget(self._clock.now_ms())
            if after is not None:
                self._known.set()
        else:
            assert isinstance(response, PushTelemetryResponse)
            self.sender.pushed(response, now_ms)

    def _collect(self, subscription: ClientTelemetrySubscription, wall_ms: int) -> bytes:
        return metrics_data(self._collector.points(subscription, wall_ms), self._labels)


class Collector:
    """Converts metrics to points: totals and counts are sums, since the start or since the last push; all others are gauges."""

    def __init__(self, metrics: Metrics, since_ms: int) -> None:
        self._metrics = metrics
        self._registered: dict[MetricName, Metric] = {}  # of the application; replaced and never changed, because other threads read it
        self._first_seen_ms: dict[MetricName, int] = dict.fromkeys(metrics.all(), since_ms)
        self._last: dict[MetricName, tuple[int, float]] = {}  # the time and the value of the last push

    def register(self, metric: Metric) -> None:
        """Adds a metric that is not one of the client's own; replaces an earlier one with the same name."""
        if self._may_change(metric):
            self._registered = {**self._registered, metric.name: metric}

    def unregister(self, metric: Metric) -> None:
        if self._may_change(metric):
            self._registered = {name: kept for name, kept in self._registered.items() if name != metric.name}

    def _may_change(self, metric: Metric) -> bool:
        if not isinstance(metric, Metric):
            raise IllegalArgument(f"Metrics are registered as Metric objects, such as Metric.of makes, not as {type(metric).__name__}")
        if metric.name in self._metrics.all():
            _log.debug("The metric %s is the client's own, which the application neither replaces nor removes", metric.name)
            return False
        return True

    def forget(self, now_ms: int) -> None:
        """Restarts all sums."""
        self._first_seen_ms = dict.fromkeys(self._present(), now_ms)
        self._last.clear()

    def _present(self) -> dict[MetricName, Metric]:
        return self._registered | self._metrics.all()

    def points(self, subscription: ClientTelemetrySubscription, now_ms: int) -> Iterator[Point]:
        present = self._present()
        for removed in self._first_seen_ms.keys() - present.keys():
            del self._first_seen_ms[removed]
            self._last.pop(removed, None)
        for name, metric in present.items():
            started_ms = self._first_seen_ms.setdefault(name, now_ms)
            full_name = telemetry_name(name)
            if not subscription.selects(full_name):
                continue
            value = _value(metric)
            if value is None:
                continue
            attributes = {clean: text for tag, text in name.tags if (clean := tag.lower().replace("-", "_")) != CLIENT_ID_TAG}
            if not metric.is_sum:
                yield Point(full_name, value, now_ms, attributes)
            elif subscription.is_delta:
                since_ms, before = self._last.get(name, (started_ms, 0.0))
                self._last[name] = (now_ms, value)
                yield Point(full_name, value - before, now_ms, attributes, since_ms, DELTA)
            else:
                yield Point(full_name, value, now_ms, attributes, started_ms, CUMULATIVE)


def telemetry_name(name: MetricName) -> str:
    """`producer-metrics` and `record-send-rate` become org.apache.kafka.producer.record.send.rate."""
    group = name.group.lower().replace("-", ".").replace(".metrics", "")
    return f"{DOMAIN}.{group}.{name.name.lower().replace('-', '.')}"


def _value(metric: Metric) -> float | int | None:
    """The value; None if it is not a number, or cannot be read now."""
    try:
        value = metric.metric_value()
    except Exception as error:
        _log.warning("The metric %s could not be read: %s", metric.name.name, error)
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def not_enabled() -> IllegalState:
    """The error of `client_instance_id` of a client without telemetry."""
    return IllegalState("Telemetry is not enabled. Set config `enable.metrics.push` to `true`.")
