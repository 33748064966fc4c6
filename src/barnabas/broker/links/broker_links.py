"""Connections of this broker to the other brokers, on the inter-broker listener.

The controller's channel, the replica fetchers and the requests to the controller have links of their own, so that none delays another.
A link uses the connections of `barnabas.client`: opened when needed, with backoff and security, and closed when its broker is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from ssl import SSLContext
from typing import Final

from barnabas.broker.clock import Clock
from barnabas.broker.links.link_warnings import LinkWarnings
from barnabas.client.cluster import Node
from barnabas.client.config.common_config import COMMON
from barnabas.client.config.config import ClientConfig
from barnabas.client.errors import Disconnected
from barnabas.client.metrics.metrics import Metrics
from barnabas.client.network.connection_failures import ConnectionFailures
from barnabas.client.network.connections import Connections
from barnabas.client.network.network_metrics import NetworkMetrics
from barnabas.config_def import table
from barnabas.endpoint import EndPoint
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.registry import BY_NAME

_KEYS: Final = table(key for key in COMMON if key.name != "bootstrap.servers")


class BrokerLinks:
    """`client_id` tells the other brokers the purpose of the connections, `settings` secure them (`link_settings`). At most `in_flight_max`
    requests are in flight to each broker."""

    def __init__(
        self,
        client_id: str,
        clock: Clock,
        random: Random,
        request_timeout_ms: int = 30_000,
        settings: Mapping[str, object] | None = None,
        in_flight_max: int = 1,
    ) -> None:
        self.warnings = LinkWarnings(clock.monotonic_ms)
        self._nodes: dict[int, Node] = {}
        self._clock = clock
        self._timeout_ms = request_timeout_ms
        config = ClientConfig(_KEYS, {"client.id": client_id, "request.timeout.ms": request_timeout_ms, **(settings or {})})
        metrics = Metrics(clock, tags={"client-id": client_id})
        self._connections = Connections(
            config,
            find=self._nodes.get,
            clock=clock,
            metrics=NetworkMetrics(metrics, client_id, lambda: len(self._connections.links)),
            random=random,
            in_flight_max=in_flight_max,
            failures=ConnectionFailures(clock.monotonic_ms),
        )

    def set_endpoint(self, broker_id: int, endpoint: EndPoint) -> None:
        """Sets the endpoint of a broker. A connection to another endpoint of it is closed."""
        node = Node(broker_id, endpoint.host, endpoint.port)
        if self._nodes.get(broker_id) not in (None, node):
            self.forget(broker_id)
        self._nodes[broker_id] = node

    def forget(self, broker_id: int) -> None:
        if self._nodes.pop(broker_id, None) is not None:
            self._connections.disconnect(broker_id, Disconnected(f"Broker {broker_id} is gone"))

    async def ask(self, broker_id: int, request: Message, version: int, timeout_ms: int | None = None) -> Message:
        """The response; raises Disconnected or Timeout. It waits while `in_flight_max` requests are in flight to the broker. A broker that
        does not know the version gets the highest that it knows."""
        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        link = await self._connections.ready(broker_id, self._clock.monotonic_ms() + limit_ms)
        api = BY_NAME[type(request).__name__.removesuffix("Request")]
        offered = link.versions.ranges.get(api.key)
        response = await link.connection.request(api, version if offered is None else min(version, offered[1]), request, limit_ms)
        if getattr(response, "error_code", 0) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self.warnings.refused(broker_id, api.name)
        return response

    def use_tls(self, tls: SSLContext) -> None:
        """Connections that are opened from now on use this context."""
        self._connections.use_tls(tls)

    async def close(self) -> None:
        await self._connections.close()
