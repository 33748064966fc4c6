"""DescribeCluster: the brokers of the cluster, its id and its controller, for admin clients.

Versions 0 to 2.
Behaviour: served from the metadata cache, with the addresses of the client's listener. A broker that is not alive is not registered, so
  there are no fenced brokers that include_fenced_brokers (2) could add.
Authorization: none, except that the authorized operations need DESCRIBE on the cluster, without which they are 0.
Version notes: 1 adds the type of the requested endpoint. This one has the type broker.
Errors: MISMATCHED_ENDPOINT_TYPE for a client that asks for controllers, UNSUPPORTED_ENDPOINT_TYPE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.authorized_operations import ALL_ON_CLUSTER, NOT_ASKED_FOR
from barnabas.broker.requests.reply import Reply
from barnabas.broker.security.access import CLUSTER_NAME
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

BROKERS: Final = 1
CONTROLLERS: Final = 2
_NO_CONTROLLER: Final = -1


def handle(broker: Broker, request: Request[DescribeClusterRequest]) -> Reply[DescribeClusterResponse]:
    message = request.message
    if message.endpoint_type == CONTROLLERS:
        text = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        return Reply.now(request, DescribeClusterResponse(error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message=text))
    if message.endpoint_type != BROKERS:
        text = f"Unsupported endpoint type {message.endpoint_type}"
        return Reply.now(request, DescribeClusterResponse(error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=text))
    brokers = _brokers(broker, request.listener_name)
    controller_id = broker.metadata_cache.controller_id
    is_reachable = controller_id is not None and any(reachable.broker_id == controller_id for reachable in brokers)
    return Reply.now(
        request,
        DescribeClusterResponse(
            cluster_id=broker.cluster_id,
            controller_id=controller_id if controller_id is not None and is_reachable else _NO_CONTROLLER,
            brokers=brokers,
            cluster_authorized_operations=_operations(broker, request),
        ),
    )


def _operations(broker: Broker, request: Request[DescribeClusterRequest]) -> int:
    if not request.message.include_cluster_authorized_operations:
        return NOT_ASKED_FOR
    if not broker.access.allows_on_cluster(request, AclOperation.DESCRIBE):
        return 0
    return broker.access.operations(request, ALL_ON_CLUSTER, ResourceType.CLUSTER, CLUSTER_NAME)


def _brokers(broker: Broker, listener_name: str) -> list[DescribeClusterBroker]:
    brokers = []
    for alive in broker.metadata_cache.alive_brokers():
        endpoint = alive.endpoint(listener_name)
        if endpoint is not None:
            brokers.append(DescribeClusterBroker(alive.id, endpoint.host, endpoint.port, alive.rack))
    return brokers
