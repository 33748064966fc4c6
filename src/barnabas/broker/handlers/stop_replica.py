"""StopReplica: the control request that stops replicas of this broker, and deletes their logs if asked to.

Versions 0 to 4. Accepted only on the inter-broker or control-plane listener.
Authorization: CLUSTER_ACTION on the cluster, checked before the listener; otherwise CLUSTER_AUTHORIZATION_FAILED, also of each partition.
Version notes
- 1: the epoch of this broker. 3: the leader epoch of each partition, and deletion by partition.
Errors: STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH; of a partition: KAFKA_STORAGE_ERROR, FENCED_LEADER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.replication.replica_states import refused_stops
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.stop_replica_response import StopReplicaResponse
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest


def handle(broker: Broker, request: Request[StopReplicaRequest]) -> Reply[StopReplicaResponse]:
    assert broker.cluster is not None
    if not broker.access.allows_on_cluster(request, AclOperation.CLUSTER_ACTION):
        return Reply.now(request, refused_stops(request.message, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    broker.cluster.require_broker(request)
    if broker.cluster.is_stale_broker_epoch(request.message.broker_epoch):
        return Reply.now(request, StopReplicaResponse(ErrorCode.STALE_BROKER_EPOCH))
    return Reply.awaiting(request, broker.cluster.controller_requests.stop_replicas(request.message, request.correlation_id))
