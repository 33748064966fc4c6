"""AllocateProducerIds: the controller gives a broker a block of producer ids.

Version 0. Accepted only on the inter-broker or control-plane listener.
Authorization: CLUSTER_ACTION on the cluster, checked before the listener; otherwise CLUSTER_AUTHORIZATION_FAILED.
Behaviour: Apache Kafka's brokers send it. Brokers of Barnabas take their blocks from the metadata store themselves.
Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED, COORDINATOR_LOAD_IN_PROGRESS (the metadata store did not answer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.broker.transactions.producer_ids import take_block
from barnabas.metadata.errors import TreeError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest


def handle(broker: Broker, request: Request[AllocateProducerIdsRequest]) -> Reply[AllocateProducerIdsResponse]:
    assert broker.cluster is not None
    if not broker.access.allows_on_cluster(request, AclOperation.CLUSTER_ACTION):
        return Reply.now(request, AllocateProducerIdsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    broker.cluster.require_broker(request)
    context = broker.controller.context
    if context is None or not broker.controller.is_active:
        return Reply.now(request, AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER))
    sender = context.live_brokers.get(request.message.broker_id)
    if sender is None:
        return Reply.now(request, AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED))
    if sender.epoch != request.message.broker_epoch:
        return Reply.now(request, AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    return Reply.awaiting(request, _allocate(broker, sender.broker_id))


async def _allocate(broker: Broker, broker_id: int) -> AllocateProducerIdsResponse:
    try:
        block = await take_block(broker.tree, broker_id)
    except TreeError:
        return AllocateProducerIdsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.last - block.first + 1)
