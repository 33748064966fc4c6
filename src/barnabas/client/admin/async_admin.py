"""The admin client on asyncio: every operation of Java's Admin as a coroutine.

The operations are in one file for each noun; this module combines them with the network, the metadata and the settings. An operation on
several keys returns `Outcomes`, which has a value or an error for each key; an operation on one key returns its value or raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from barnabas.client.admin.access.acls import AclCalls
from barnabas.client.admin.access.quotas import QuotaCalls
from barnabas.client.admin.access.scram import ScramCalls
from barnabas.client.admin.access.tokens import TokenCalls
from barnabas.client.admin.calls import Calls, CallSettings
from barnabas.client.admin.cluster.client_metrics import ClientMetricsCalls
from barnabas.client.admin.cluster.cluster import BROKER_ENDPOINTS, CONTROLLER_ENDPOINTS, ClusterCalls
from barnabas.client.admin.cluster.features import FeatureCalls
from barnabas.client.admin.cluster.log_dirs import LogDirCalls
from barnabas.client.admin.cluster.quorum import QuorumCalls
from barnabas.client.admin.config import admin_config
from barnabas.client.admin.controller_network import ControllerNetwork
from barnabas.client.admin.directory import MetadataDirectory
from barnabas.client.admin.groups.group_offsets import GroupOffsetCalls
from barnabas.client.admin.groups.groups import GroupCalls
from barnabas.client.admin.groups.share_groups import ShareGroupCalls
from barnabas.client.admin.groups.streams_groups import StreamsGroupCalls
from barnabas.client.admin.topics.elections import ElectionCalls
from barnabas.client.admin.topics.offsets import OffsetCalls
from barnabas.client.admin.topics.producers import ProducerCalls
from barnabas.client.admin.topics.reassignments import ReassignmentCalls
from barnabas.client.admin.topics.records import RecordCalls
from barnabas.client.admin.topics.topics import TopicCalls
from barnabas.client.admin.topics.transactions import TransactionCalls
from barnabas.client.clock import SystemClock
from barnabas.client.errors import IllegalArgument, KafkaError
from barnabas.client.metrics.client_metrics import client_metrics
from barnabas.client.metrics.metrics import Metric, MetricName
from barnabas.client.metrics.telemetry import LAST_PUSH_TIMEOUT_MS, ClientTelemetry
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient
from barnabas.client.shared_start import SharedStart


class AsyncAdmin(
    TopicCalls,
    ClientMetricsCalls,
    ClusterCalls,
    QuorumCalls,
    GroupCalls,
    GroupOffsetCalls,
    ShareGroupCalls,
    StreamsGroupCalls,
    OffsetCalls,
    RecordCalls,
    LogDirCalls,
    ReassignmentCalls,
    ElectionCalls,
    AclCalls,
    ScramCalls,
    TokenCalls,
    QuotaCalls,
    FeatureCalls,
    ProducerCalls,
    TransactionCalls,
):
    """`AsyncAdmin({"bootstrap.servers": "localhost:9092"})` or `AsyncAdmin(bootstrap_servers="localhost:9092")`. Close it, preferably with
    `async with`. It belongs to the event loop on which it is first used.

    Every method takes `timeout_ms`, which replaces default.api.timeout.ms.
    """

    def __init__(self, config: Mapping[str, object] | None = None, **keywords: object) -> None:
        self._config = admin_config(config, keywords)
        self._uses_controllers: bool = bool(self._config["bootstrap.controllers"])
        self._endpoint_type = CONTROLLER_ENDPOINTS if self._uses_controllers else BROKER_ENDPOINTS
        time = SystemClock()
        self._metrics = client_metrics(self._config, time)
        self._metadata = Metadata(self._config, clock=time, allow_auto_topic_creation=False)
        kind = ControllerNetwork if self._uses_controllers else NetworkClient
        self._network = kind(self._config, self._metadata, clock=time, metrics=self._metrics, metric_group="admin-client")
        self._calls = Calls(
            self._network,
            MetadataDirectory(self._metadata, self._network, self.start),
            CallSettings(self._config["default.api.timeout.ms"], self._config["request.timeout.ms"], self._config["retries"]),
            time,
            ExponentialBackoff(self._config["retry.backoff.ms"], self._config["retry.backoff.max.ms"]),
            failures=self._metadata.failures,
        )
        self._telemetry = ClientTelemetry.of(self._config, self._network, self._metrics, clock=time)
        self._starting = SharedStart(self._start)
        self._closed = False
        self._config.report_unused()

    async def start(self) -> None:
        """Starts to fetch the metadata of the cluster. The first call does so too."""
        await self._starting.wait()

    async def _start(self) -> None:
        await self._network.start()
        if self._telemetry is not None:
            self._telemetry.start()

    async def close(self, timeout_ms: int | None = None) -> None:
        """Waits for pending calls for at most `timeout_ms` (None: until they finish), then closes all connections. May be called again."""
        if timeout_ms is not None and timeout_ms < 0:
            raise IllegalArgument("The timeout cannot be negative.")
        if self._closed:
            return
        self._closed = True
        await self._calls.close(timeout_ms)
        await self._starting.close()
        if self._telemetry is not None:
            await self._telemetry.close(LAST_PUSH_TIMEOUT_MS if timeout_ms is None else timeout_ms)
        await self._network.close()
        self._metrics.close()

    def last_connection_error(self) -> KafkaError | None:
        """The last connection failure of an address that has not been connected to since; None if there is none.

        Every Timeout of this client has it as its cause.
        """
        return self._metadata.failures.last()

    def metrics(self) -> dict[MetricName, Metric]:
        """The client's own metrics."""
        return self._metrics.all()

    def register_metric_for_subscription(self, metric: Metric) -> None:
        """Pushes a metric of the application with the client's own metrics, if the cluster subscribes to it (KIP-1076).

        The cluster names `Metric.of(MetricName("queue-length", "app-metrics"), lambda: len(queue))` org.apache.kafka.app.queue.length. A
        metric with the name of one of the client's own metrics is ignored. With enable.metrics.push=false nothing is pushed.
        """
        if self._telemetry is not None:
            self._telemetry.register(metric)

    def unregister_metric_from_subscription(self, metric: Metric) -> None:
        """Stops pushing a metric of the application."""
        if self._telemetry is not None:
            self._telemetry.unregister(metric)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
