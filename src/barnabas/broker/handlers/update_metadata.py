"""UpdateMetadata: the control request that updates the metadata cache: live brokers, topics and partition leaders.

Versions 0 to 8. Accepted only on the inter-broker or control-plane listener.
Version notes: 5: the epoch of this broker. 7: topic ids.
Errors: STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest


def handle(broker: Broker, request: Request[UpdateMetadataRequest]) -> Reply[UpdateMetadataResponse]:
    assert broker.cluster is not None
    broker.cluster.require_broker(request)
    if broker.cluster.is_stale_broker_epoch(request.message.broker_epoch):
        return Reply.now(request, UpdateMetadataResponse(ErrorCode.STALE_BROKER_EPOCH))
    return Reply.awaiting(request, broker.cluster.controller_requests.update_metadata(request.message))
