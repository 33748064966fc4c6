"""ControlledShutdown: a broker that is about to stop asks the controller to give its partitions to others.

Versions 0 to 3. Only on the listener that brokers use among themselves.
Behaviour: answered when the others lead, or cannot; the partitions that are left to it are named, and it asks again.
Version notes: 2: the epoch of the broker.
Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.controlled_shutdown_response import ControlledShutdownResponse, RemainingPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.controlled_shutdown_request import ControlledShutdownRequest


def handle(
    broker: Broker, request: Request[ControlledShutdownRequest]
) -> ControlledShutdownResponse | Awaitable[ControlledShutdownResponse]:
    assert broker.cluster is not None
    broker.cluster.require_broker(request)
    if not broker.controller.is_active:
        return ControlledShutdownResponse(ErrorCode.NOT_CONTROLLER)
    return _shut_down(broker, request.message)


async def _shut_down(broker: Broker, message: ControlledShutdownRequest) -> ControlledShutdownResponse:
    remaining = await broker.controller.shut_down_broker(message.broker_id, message.broker_epoch)
    if isinstance(remaining, ErrorCode):
        return ControlledShutdownResponse(remaining)
    return ControlledShutdownResponse(0, [RemainingPartition(each.topic, each.partition) for each in remaining])
