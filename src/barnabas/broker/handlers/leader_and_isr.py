"""LeaderAndIsr: the control request that makes this broker leader or follower of partitions.

Versions 0 to 7. Accepted only on the inter-broker or control-plane listener.
Authorization: CLUSTER_ACTION on the cluster, checked before the listener; otherwise CLUSTER_AUTHORIZATION_FAILED, also of each partition.
Behaviour
- the broker responds when every log exists and every partition leads or follows. States with an old leader epoch are refused.
Version notes
- 2: the epoch of this broker, so that a request sent before a restart is not applied after it. 5: topic ids.
Errors: STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH; of a partition: KAFKA_STORAGE_ERROR, INCONSISTENT_TOPIC_ID,
  UNKNOWN_TOPIC_OR_PARTITION (it is not assigned to this broker), STALE_CONTROLLER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.replication.replica_states import refused_states
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leader_and_isr_response import LeaderAndIsrResponse
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrRequest


def handle(broker: Broker, request: Request[LeaderAndIsrRequest]) -> Reply[LeaderAndIsrResponse]:
    assert broker.cluster is not None
    if not broker.access.allows_on_cluster(request, AclOperation.CLUSTER_ACTION):
        return Reply.now(request, refused_states(request.message, request.version, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    broker.cluster.require_broker(request)
    if broker.cluster.is_stale_broker_epoch(request.message.broker_epoch):
        return Reply.now(request, LeaderAndIsrResponse(ErrorCode.STALE_BROKER_EPOCH))
    return Reply.awaiting(
        request, broker.cluster.controller_requests.lead_or_follow(request.message, request.version, request.correlation_id)
    )
