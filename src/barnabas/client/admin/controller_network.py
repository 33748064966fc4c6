"""The network client of an admin client with bootstrap.controllers (KIP-919).

Controllers do not support Metadata. This class sends DescribeCluster instead and converts the response to a MetadataResponse for the rest
of the client.
"""

from __future__ import annotations

from barnabas.client.admin.cluster.cluster import CONTROLLER_ENDPOINTS
from barnabas.client.errors import error_for
from barnabas.client.network.network_client import NetworkClient
from barnabas.protocol import api_keys
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker


class ControllerNetwork(NetworkClient):
    """Fetches the metadata of the controllers with DescribeCluster."""

    def version_of(self, node_id: int, api_key: int) -> int | None:
        if api_key == api_keys.METADATA:
            describe_version = super().version_of(node_id, api_keys.DESCRIBE_CLUSTER)
            return None if describe_version is None else MetadataRequest.HIGHEST_VERSION
        return super().version_of(node_id, api_key)

    async def send(
        self,
        node_id: int,
        request: Message,
        *,
        timeout_ms: int | None = None,
        version: int | None = None,
        max_version: int | None = None,
    ) -> Message:
        if isinstance(request, MetadataRequest) and request.topics == []:
            describe = DescribeClusterRequest(endpoint_type=CONTROLLER_ENDPOINTS)
            response = await super().send(node_id, describe, timeout_ms=timeout_ms)
            assert isinstance(response, DescribeClusterResponse)
            return _as_metadata(response)
        return await super().send(node_id, request, timeout_ms=timeout_ms, version=version, max_version=max_version)


def _as_metadata(response: DescribeClusterResponse) -> MetadataResponse:
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    brokers = [MetadataResponseBroker(broker.broker_id, broker.host, broker.port, broker.rack) for broker in response.brokers]
    return MetadataResponse(0, brokers, response.cluster_id, response.controller_id)
