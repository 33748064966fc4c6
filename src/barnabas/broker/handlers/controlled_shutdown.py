"""ControlledShutdown: the controller moves the leadership of a stopping broker's partitions to other brokers.

Versions 0 to 3. Accepted only on the inter-broker or control-plane listener.
Authorization: CLUSTER_ACTION on the cluster, checked before the listener; otherwise CLUSTER_AUTHORIZATION_FAILED.
Behaviour: the controller responds when it has tried all partitions. The response names those that the broker still leads; it sends the
  request again.
Version notes: 2: the epoch of the broker.
Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.controlled_shutdown_response import ControlledShutdownResponse, RemainingPartition
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.controlled_shutdown_request import ControlledShutdownRequest


def handle(broker: Broker, request: Request[ControlledShutdownRequest]) -> Reply[ControlledShutdownResponse]:
    assert broker.cluster is not None
    if not broker.access.allows_on_cluster(request, AclOperation.CLUSTER_ACTION):
        return Reply.now(request, ControlledShutdownResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    broker.cluster.require_broker(request)
    if not broker.controller.is_active:
        return Reply.now(request, ControlledShutdownResponse(ErrorCode.NOT_CONTROLLER))
    return Reply.awaiting(request, _shut_down(broker, request.message))


async def _shut_down(broker: Broker, message: ControlledShutdownRequest) -> ControlledShutdownResponse:
    remaining = await broker.controller.shut_down_broker(message.broker_id, message.broker_epoch)
    if isinstance(remaining, ErrorCode):
        return ControlledShutdownResponse(remaining)
    return ControlledShutdownResponse(0, [RemainingPartition(partition.topic, partition.partition) for partition in remaining])
