"""AlterPartition: a leader proposes the in-sync replicas of partitions to the controller (KIP-497).

Versions 0 to 3. Accepted only on the inter-broker or control-plane listener.
Authorization: CLUSTER_ACTION on the cluster, checked before the listener; otherwise CLUSTER_AUTHORIZATION_FAILED.
Version notes: 1: the leader's recovery state. 2: topic ids. 3: the epochs of the replicas' brokers.
Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH; of a partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, FENCED_LEADER_EPOCH,
  INVALID_UPDATE_VERSION, INELIGIBLE_REPLICA (OPERATION_NOT_ATTEMPTED before version 2), INVALID_REQUEST, NOT_CONTROLLER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_response import AlterPartitionResponse
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.alter_partition_request import AlterPartitionRequest


def handle(broker: Broker, request: Request[AlterPartitionRequest]) -> Reply[AlterPartitionResponse]:
    assert broker.cluster is not None
    if not broker.access.allows_on_cluster(request, AclOperation.CLUSTER_ACTION):
        return Reply.now(request, AlterPartitionResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    broker.cluster.require_broker(request)
    if not broker.controller.is_active:
        return Reply.now(request, AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER))
    return Reply.awaiting(request, broker.controller.alter_partition(request.message, request.version))
