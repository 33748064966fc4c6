"""UpdateMetadata: the control request that updates the metadata cache: live brokers, topics and partition leaders.

Versions 0 to 8. Accepted only on the inter-broker or control-plane listener.
Authorization: CLUSTER_ACTION on the cluster, checked before the listener; otherwise CLUSTER_AUTHORIZATION_FAILED.
Version notes: 5: the epoch of this broker. 7: topic ids.
Errors: STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest


def handle(broker: Broker, request: Request[UpdateMetadataRequest]) -> Reply[UpdateMetadataResponse]:
    assert broker.cluster is not None
    if not broker.access.allows_on_cluster(request, AclOperation.CLUSTER_ACTION):
        return Reply.now(request, UpdateMetadataResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    broker.cluster.require_broker(request)
    if broker.cluster.is_stale_broker_epoch(request.message.broker_epoch):
        return Reply.now(request, UpdateMetadataResponse(ErrorCode.STALE_BROKER_EPOCH))
    return Reply.awaiting(request, broker.cluster.controller_requests.update_metadata(request.message, request.correlation_id))
