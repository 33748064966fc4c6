"""Kafka's ClientMetricsManager: gives clients their telemetry subscriptions and accepts or refuses what they push.

It has no clock and no I/O: callers pass monotonic times. What is pushed goes to `received`, the registry that metrics are exported from.
Client instances are bounded in number, and are removed when their connection ends or when they are silent for too long.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Generator, Mapping
from random import Random
from typing import Final

from barnabas.broker.telemetry.client_instance import ClientInstance
from barnabas.broker.telemetry.otlp_reader import ReceivedPoints
from barnabas.broker.telemetry.received_metrics import ReceivedMetrics
from barnabas.broker.telemetry.subscriptions import ClientMetricsSubscriptions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.push_telemetry_request import PushTelemetryRequest
from barnabas.records.codecs import compression
from barnabas.uuid import Uuid

CLIENT_INSTANCES_MAX: Final = 16_384
PUSHES_READ_AT_ONCE: Final = 4  # of all clients: the content of each is in memory, decompressed
POINTS_PER_SLICE: Final = 500  # about 2 µs each
EXPIRY_CHECK_MS: Final = 1_000  # a check looks at every instance
CLIENT_INSTANCE_ID: Final = "client_instance_id"
COMPRESSION_TYPES: Final = (compression.ZSTD, compression.LZ4, compression.GZIP, compression.SNAPPY)  # in the order of preference

_RESERVED: Final = frozenset({Uuid.ZERO, Uuid.METADATA_TOPIC_ID})


class ClientMetricsManager:
    def __init__(
        self, received: ReceivedMetrics, telemetry_max_bytes: int, random: Random, instances_max: int = CLIENT_INSTANCES_MAX
    ) -> None:
        self.received = received
        self.telemetry_max_bytes = telemetry_max_bytes
        self.subscriptions = ClientMetricsSubscriptions()
        self.unknown_subscriptions = 0  # pushes with a subscription id that is not the client's
        self.reading = asyncio.Semaphore(PUSHES_READ_AT_ONCE)  # held while the content of a push is read
        self._random = random
        self._instances_max = instances_max
        self._instances: OrderedDict[Uuid, ClientInstance] = OrderedDict()  # the one that was used last is at the end
        self._by_connection: dict[str, Uuid] = {}
        self._checked_ms: int | None = None

    def instances(self) -> list[ClientInstance]:
        return list(self._instances.values())

    def get_subscription(
        self, client_instance_id: Uuid, attributes: Mapping[str, str | None], connection_id: str, monotonic_ms: int
    ) -> ClientInstance | ErrorCode:
        """The client instance, with what it is to push, or an error. A client without an id gets one."""
        if client_instance_id == Uuid.ZERO:
            client_instance_id = Uuid.random(self._random)
        instance = self._instance(client_instance_id, attributes, connection_id, monotonic_ms)
        if not instance.may_get(monotonic_ms):
            instance.throttled += 1
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        instance.last_error = ErrorCode.NONE
        return instance

    def begin_push(
        self, request: PushTelemetryRequest, attributes: Mapping[str, str | None], connection_id: str, monotonic_ms: int
    ) -> ClientInstance | ErrorCode:
        """Checks a push before its content is read. The caller calls `pushed` or `unreadable` next."""
        if request.client_instance_id in _RESERVED:
            return ErrorCode.INVALID_REQUEST
        instance = self._instance(request.client_instance_id, attributes, connection_id, monotonic_ms)
        error = self._check(request, instance, monotonic_ms)
        instance.is_terminating = request.terminating
        instance.last_error = error
        return instance if error is ErrorCode.NONE else error

    def pushed(self, instance: ClientInstance, size: int, received: ReceivedPoints) -> Generator[None, None, None]:
        """Counts the push, and keeps its points as long as the client has not left. Yields after each slice of the points."""
        instance.pushes += 1
        instance.bytes_received += size
        self.received.drop(received.dropped)
        client_id = instance.attributes.get("client_id") or ""
        for start in range(0, max(1, len(received.points)), POINTS_PER_SLICE):  # also without points: the resource is kept
            if instance.id not in self._instances:
                return
            self.received.record(instance.id, client_id, received.resource, received.points[start : start + POINTS_PER_SLICE])
            yield

    def unreadable(self, instance: ClientInstance) -> None:
        instance.failures += 1
        instance.last_error = ErrorCode.INVALID_RECORD

    def disconnected(self, connection_id: str) -> None:
        """The connection has ended: its client instance, if it has one, is forgotten with its metrics."""
        client_instance_id = self._by_connection.pop(connection_id, None)
        if client_instance_id is not None:
            self._remove(client_instance_id)

    def expire(self, monotonic_ms: int) -> None:
        """Forgets the clients that were silent for too long."""
        if self._checked_ms is not None and monotonic_ms - self._checked_ms < EXPIRY_CHECK_MS:
            return
        self._checked_ms = monotonic_ms
        for instance in [instance for instance in self._instances.values() if instance.expires_ms <= monotonic_ms]:
            self._remove(instance.id)

    def _check(self, request: PushTelemetryRequest, instance: ClientInstance, monotonic_ms: int) -> ErrorCode:
        if instance.is_terminating:
            return ErrorCode.INVALID_REQUEST  # nothing may follow the last push
        if not instance.may_push(monotonic_ms) and not request.terminating:
            instance.throttled += 1
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != instance.requested.subscription_id:
            self.unknown_subscriptions += 1
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if not compression.NONE <= request.compression_type <= compression.ZSTD:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(request.metrics) > self.telemetry_max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def _instance(
        self, client_instance_id: Uuid, attributes: Mapping[str, str | None], connection_id: str, monotonic_ms: int
    ) -> ClientInstance:
        """The known instance with the current subscriptions, or a new one. Also a broker that has never seen the client takes its id."""
        self.expire(monotonic_ms)
        instance = self._instances.get(client_instance_id)
        if instance is None:
            attributes = {**attributes, CLIENT_INSTANCE_ID: str(client_instance_id)}
            requested = self.subscriptions.requested(client_instance_id, attributes)
            instance = ClientInstance(client_instance_id, attributes, requested, self.subscriptions.version, connection_id)
            self._add(instance)
        elif instance.version != self.subscriptions.version:
            instance.subscribe(self.subscriptions.requested(client_instance_id, instance.attributes), self.subscriptions.version)
        if instance.connection_id != connection_id:
            self._leave_connection(instance)
            instance.connection_id = connection_id
        self._by_connection[connection_id] = client_instance_id  # a peer with several ids: the others expire by time
        instance.used(monotonic_ms)
        self._instances.move_to_end(client_instance_id)
        return instance

    def _add(self, instance: ClientInstance) -> None:
        if len(self._instances) >= self._instances_max:
            self._remove(next(iter(self._instances)))
        self._instances[instance.id] = instance

    def _remove(self, client_instance_id: Uuid) -> None:
        instance = self._instances.pop(client_instance_id, None)
        if instance is not None:
            self._leave_connection(instance)
        self.received.forget(client_instance_id)

    def _leave_connection(self, instance: ClientInstance) -> None:
        if self._by_connection.get(instance.connection_id) == instance.id:
            del self._by_connection[instance.connection_id]
