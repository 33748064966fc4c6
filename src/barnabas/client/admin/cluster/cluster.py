"""The cluster: its brokers, its controller, and the API versions of each broker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.client.admin.call import ApiResult, Call
from barnabas.client.admin.calls import Calls, Route, check_controller
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.cluster import Node
from barnabas.client.errors import error_for
from barnabas.client.software import SOFTWARE_NAME, SOFTWARE_VERSION
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.api_versions_response import ApiVersionsResponse
from barnabas.protocol.messages.controlled_shutdown_request import ControlledShutdownRequest
from barnabas.protocol.messages.controlled_shutdown_response import ControlledShutdownResponse
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from barnabas.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from barnabas.protocol.registry import APIS
from barnabas.security.operations import AclOperation, authorized_operations
from barnabas.topic_partition import TopicPartition

BROKER_ENDPOINTS = 1
CONTROLLER_ENDPOINTS = 2


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """`authorized_operations` is None unless it was requested; `controller` is None while there is no controller."""

    cluster_id: str | None
    controller: Node | None
    nodes: tuple[Node, ...]
    authorized_operations: frozenset[AclOperation] | None = None

    def node(self, node_id: int) -> Node:
        """The node of an id. A node that is not in the cluster has no address."""
        return next((node for node in self.nodes if node.id == node_id), Node(node_id, "", -1))


@dataclass(frozen=True, slots=True)
class ApiVersionRange:
    """One API of a broker and the versions that the broker supports; `name` is None for an API newer than this client."""

    key: int
    min_version: int
    max_version: int
    name: str | None


@dataclass(frozen=True, slots=True)
class NodeApiVersions:
    """The content of one broker's ApiVersions response."""

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
        """The brokers that are alive (and the fenced brokers, if requested), the controller, and the cluster id."""
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
        """The API versions of the given brokers, or of all brokers. Java's Admin has no such method; only Kafka's tool
        kafka-broker-api-versions does this."""
        call = self._calls.begin("describe_api_versions", timeout_ms)
        requested_ids = await self._calls.brokers(call) if node_ids is None else list(node_ids)
        return await self._calls.request_by_node(call, requested_ids, self._calls.locate_brokers, self._api_versions)

    async def unregister_broker(self, broker_id: int, *, timeout_ms: int | None = None) -> None:
        """Removes the registration of a broker that will not return."""
        call = self._calls.begin("unregister_broker", timeout_ms)

        def read(response: UnregisterBrokerResponse) -> None:
            if response.error_code:
                raise error_for(response.error_code, response.error_message)

        await self._calls.request(call, self._calls.any_node, lambda _: UnregisterBrokerRequest(broker_id), read)

    async def controlled_shutdown(self, node_id: int, *, timeout_ms: int | None = None) -> list[TopicPartition]:
        """Moves the leaders of a broker that is to be stopped to other brokers, and returns the partitions that it still leads because no
        other replica is in sync. Partitions with one replica stay and are not returned. Until it is started again, the broker becomes
        leader of nothing. Brokers do the same when they stop (`controlled.shutdown.enable`).

        Only for clusters of Barnabas and of Apache Kafka in ZooKeeper mode, on their inter-broker listener; needs CLUSTER_ACTION on the
        cluster. Java's Admin has no such method; the tools of Kafka 0.8 did this."""
        call = self._calls.begin("controlled_shutdown", timeout_ms)

        def read(response: ControlledShutdownResponse) -> list[TopicPartition]:
            check_controller(response.error_code, None)
            if response.error_code:
                raise error_for(response.error_code)
            return [TopicPartition(partition.topic_name, partition.partition_index) for partition in response.remaining_partitions]

        return await self._calls.request(call, self._calls.controller, lambda _: ControlledShutdownRequest(node_id), read)

    async def _api_versions(self, call: Call, node_id: int, _: object) -> ApiResult[int, NodeApiVersions]:
        response: ApiVersionsResponse = await self._calls.send(call, node_id, ApiVersionsRequest(SOFTWARE_NAME, SOFTWARE_VERSION))
        if response.error_code:
            return ApiResult(failed={node_id: error_for(response.error_code)})
        return ApiResult({node_id: _node_api_versions(response)})


async def fetch_cluster(
    calls: Calls,
    call: Call,
    route: Route,
    *,
    endpoint_type: int = BROKER_ENDPOINTS,
    include_authorized_operations: bool = False,
    include_fenced_brokers: bool = False,
) -> ClusterDescription:
    """Sends DescribeCluster, or Metadata to a broker that does not support DescribeCluster."""

    def build(_: int) -> Message:
        return DescribeClusterRequest(include_authorized_operations, endpoint_type, include_fenced_brokers)

    try:
        return await calls.request(call, route, build, read_cluster)
    except UnsupportedVersion:
        if include_fenced_brokers or endpoint_type != BROKER_ENDPOINTS:
            raise
    old = MetadataRequest([], allow_auto_topic_creation=True, include_cluster_authorized_operations=include_authorized_operations)
    return await calls.request(call, route, lambda _: old, _read_metadata)


def read_cluster(response: DescribeClusterResponse) -> ClusterDescription:
    """The cluster of a response. Raises the response's error."""
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
