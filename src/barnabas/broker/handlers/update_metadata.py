"""UpdateMetadata: the controller says which brokers live, and who leads what.

Versions 0 to 8. Only on the listener that brokers use among themselves.
Version notes: 5: the epoch of this broker. 7: topic ids.
Errors: STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest


def handle(broker: Broker, request: Request[UpdateMetadataRequest]) -> UpdateMetadataResponse | Awaitable[UpdateMetadataResponse]:
    assert broker.cluster is not None
    broker.cluster.require_broker(request)
    if broker.cluster.is_meant_for_an_earlier_life(request.message.broker_epoch):
        return UpdateMetadataResponse(ErrorCode.STALE_BROKER_EPOCH)
    return broker.cluster.orders.update_metadata(request.message)
