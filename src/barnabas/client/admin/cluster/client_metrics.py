"""Client metrics (KIP-714): the subscriptions of the cluster, and the client instance id of this client."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.client.admin.calls import Calls
from barnabas.client.admin.cluster.config_entries import ConfigResourceType
from barnabas.client.admin.cluster.configs import ConfigCalls
from barnabas.client.metrics.telemetry import ClientTelemetry, not_enabled
from barnabas.uuid import Uuid


@dataclass(frozen=True, slots=True)
class ClientMetricsResourceListing:
    """The name of a subscription to client metrics (KIP-714)."""

    name: str


class ClientMetricsCalls(ConfigCalls):
    """Lists the subscriptions, and returns the client instance id of this client."""

    _calls: Calls
    _telemetry: ClientTelemetry | None

    async def list_client_metrics_resources(self, *, timeout_ms: int | None = None) -> list[ClientMetricsResourceListing]:
        """The subscriptions to client metrics. Deprecated in Java since 4.1, where `list_config_resources` does the same."""
        resources = await self.list_config_resources([ConfigResourceType.CLIENT_METRICS], timeout_ms=timeout_ms)
        return [ClientMetricsResourceListing(resource.name) for resource in resources]

    async def client_instance_id(self, *, timeout_ms: int | None = None) -> Uuid:
        """The id that a broker assigned to this client. It does not change while the client lives. Needs enable.metrics.push=true."""
        if self._telemetry is None:
            raise not_enabled()
        call = self._calls.begin("client_instance_id", timeout_ms)
        await self._calls.brokers(call)  # connects to the brokers if no call has done so yet
        return await self._telemetry.client_instance_id(call.remaining_ms())
