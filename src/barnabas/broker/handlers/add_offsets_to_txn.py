"""AddOffsetsToTxn: adds the partition of a group's offsets to a transaction, so that its markers go to that partition too.

Versions 0 to 4.
Behaviour: the partition of `__consumer_offsets` that the group belongs to is added as AddPartitionsToTxn adds other partitions.
Authorization: WRITE on the transactional id, READ on the group.
Version notes: 2 has PRODUCER_FENCED, earlier versions INVALID_PRODUCER_EPOCH. 4 has TRANSACTION_ABORTABLE.
Errors: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS, NOT_COORDINATOR,
  COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[AddOffsetsToTxnRequest]) -> Reply[AddOffsetsToTxnResponse]:
    message, access = request.message, broker.access
    if not access.allows(request, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id):
        return Reply.now(request, AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not access.allows(request, AclOperation.READ, ResourceType.GROUP, message.group_id):
        return Reply.now(request, AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    reply: Reply[AddOffsetsToTxnResponse] = Reply(request)
    try:
        broker.transactions.add_offsets(message, request.version, reply.complete)
    except KafkaError as error:  # the group coordinator has stopped: the broker is shutting down
        return Reply.now(request, AddOffsetsToTxnResponse(error_code=error.code))
    return reply
