"""The cluster as a whole: its brokers, its controller, and which requests each broker understands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.client.admin.access.operations import AclOperation, authorized_operations
from barnabas.client.admin.call import Answer, Call
from barnabas.client.admin.calls import SOFTWARE_NAME, SOFTWARE_VERSION, Calls, Route, check_controller
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.cluster import Node
from barnabas.client.errors import error_for
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.api_versions_response import ApiVersionsResponse
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from barnabas.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from barnabas.protocol.registry import APIS

BROKER_ENDPOINTS = 1
CONTROLLER_ENDPOINTS = 2


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """`authorized_operations` is None unless asked for, and `controller` None while there is none."""

    cluster_id: str | None
    controller: Node | None
    nodes: tuple[Node, ...]
    authorized_operations: frozenset[AclOperation] | None = None

    def node(self, node_id: int) -> Node:
        """The node of an id; one that has gone has no address."""
        return next((node for node in self.nodes if node.id == node_id), Node(node_id, "", -1))


@dataclass(frozen=True, slots=True)
class ApiVersionRange:
    """One API of a broker: the versions it takes; `name` is None for an API newer than this client."""

    key: int
    min_version: int
    max_version: int
    name: str | None


@dataclass(frozen=True, slots=True)
class NodeApiVersions:
    """What one broker says of itself in ApiVersions."""

    api_versions: dict[int, ApiVersionRange]
    supported_features: dict[str, tuple[int, int]]
    finalized_features: dict[str, tuple[int, int]]
    finalized_features_epoch: int
    zk_migration_ready: bool


class ClusterCalls:
    """Describes the cluster and its brokers."""

    _calls: Calls
    _endpoint_type: int

    async def describe_cluster(
        self, *, include_authorized_operations: bool = False, include_fenced_brokers: bool = False, timeout_ms: int | None = None
    ) -> ClusterDescription:
        """The brokers that are alive (and those that are fenced, if wanted), the controller, and the cluster's id."""
        call = self._calls.begin("describe_cluster", timeout_ms)
        return await fetch_cluster(
            self._calls,
            call,
            self._calls.any_node,
            endpoint_type=self._endpoint_type,
            include_authorized_operations=include_authorized_operations,
            include_fenced_brokers=include_fenced_brokers,
        )

    async def describe_api_versions(
        self, node_ids: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> Outcomes[int, NodeApiVersions]:
        """Which versions of which APIs each broker understands; of all brokers unless some are named. Java's Admin has no such method,
        only its tool."""
        call = self._calls.begin("describe_api_versions", timeout_ms)
        wanted = await self._calls.brokers(call) if node_ids is None else list(node_ids)
        return await self._calls.ask_each(call, wanted, self._calls.each_at_itself, self._api_versions)

    async def unregister_broker(self, broker_id: int, *, timeout_ms: int | None = None) -> None:
        """Strikes a broker that is gone for good from the list of those that are expected."""
        call = self._calls.begin("unregister_broker", timeout_ms)

        def read(response: UnregisterBrokerResponse) -> None:
            if response.error_code:
                raise error_for(response.error_code, response.error_message)

        await self._calls.ask(call, self._calls.any_node, lambda _: UnregisterBrokerRequest(broker_id), read)

    async def _api_versions(self, call: Call, node_id: int, _: object) -> Answer[int, NodeApiVersions]:
        response: ApiVersionsResponse = await self._calls.send(call, node_id, ApiVersionsRequest(SOFTWARE_NAME, SOFTWARE_VERSION))
        if response.error_code:
            return Answer(failed={node_id: error_for(response.error_code)})
        return Answer({node_id: _node_api_versions(response)})


async def fetch_cluster(
    calls: Calls,
    call: Call,
    route: Route,
    *,
    endpoint_type: int = BROKER_ENDPOINTS,
    include_authorized_operations: bool = False,
    include_fenced_brokers: bool = False,
) -> ClusterDescription:
    """DescribeCluster, or Metadata from a broker that does not know it yet."""

    def build(_: int) -> Message:
        return DescribeClusterRequest(include_authorized_operations, endpoint_type, include_fenced_brokers)

    try:
        return await calls.ask(call, route, build, read_cluster)
    except UnsupportedVersion:
        if include_fenced_brokers or endpoint_type != BROKER_ENDPOINTS:
            raise
    old = MetadataRequest([], allow_auto_topic_creation=True, include_cluster_authorized_operations=include_authorized_operations)
    return await calls.ask(call, route, lambda _: old, _read_metadata)


def read_cluster(response: DescribeClusterResponse) -> ClusterDescription:
    """The cluster of a response; raises its error."""
    check_controller(response.error_code, response.error_message)
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    nodes = tuple(Node(broker.broker_id, broker.host, broker.port, broker.rack, broker.is_fenced) for broker in response.brokers)
    controller = next((node for node in nodes if node.id == response.controller_id), None)
    return ClusterDescription(response.cluster_id, controller, nodes, authorized_operations(response.cluster_authorized_operations))


def _read_metadata(response: MetadataResponse) -> ClusterDescription:
    nodes = tuple(Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers)
    controller = next((node for node in nodes if node.id == response.controller_id), None)
    return ClusterDescription(response.cluster_id, controller, nodes, authorized_operations(response.cluster_authorized_operations))


def _node_api_versions(response: ApiVersionsResponse) -> NodeApiVersions:
    ranges = {
        api.api_key: ApiVersionRange(api.api_key, api.min_version, api.max_version, APIS[api.api_key].name if api.api_key in APIS else None)
        for api in response.api_keys
    }
    return NodeApiVersions(
        ranges,
        {feature.name: (feature.min_version, feature.max_version) for feature in response.supported_features},
        {feature.name: (feature.min_version_level, feature.max_version_level) for feature in response.finalized_features},
        response.finalized_features_epoch,
        response.zk_migration_ready,
    )
