"""AllocateProducerIds: a broker asks the controller for a block of producer ids. Ours take theirs from the tree; Apache Kafka's ask.

Version 0. Only on the listener that brokers use among themselves.
Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED, COORDINATOR_LOAD_IN_PROGRESS (the tree did not answer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.transactions.producer_ids import take_block
from barnabas.metadata.errors import TreeError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest


def handle(
    broker: Broker, request: Request[AllocateProducerIdsRequest]
) -> AllocateProducerIdsResponse | Awaitable[AllocateProducerIdsResponse]:
    assert broker.cluster is not None
    broker.cluster.require_broker(request)
    context = broker.controller.context
    if context is None or not broker.controller.is_active:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    asking = context.live_brokers.get(request.message.broker_id)
    if asking is None:
        return AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
    if asking.epoch != request.message.broker_epoch:
        return AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    return _allocate(broker, asking.broker_id)


async def _allocate(broker: Broker, for_broker: int) -> AllocateProducerIdsResponse:
    try:
        block = await take_block(broker.tree, for_broker)
    except TreeError:
        return AllocateProducerIdsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.last - block.first + 1)
