# Compiled by mypyc: src/compiled.toml lists this module.
"""EndTxn: a producer commits or aborts its transaction.

Versions 0 to 5.
Behaviour
- the coordinator responds when the decision is committed to its log. It writes the markers to the partitions afterwards. A retry with the
  same decision gets the same response, the opposite decision is refused.
- from version 5 on (transaction version 2) every EndTxn raises the epoch. The response has the producer id and epoch to continue with.
Authorization: WRITE on the transactional id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
Version notes: 2 has PRODUCER_FENCED, earlier versions INVALID_PRODUCER_EPOCH. 4 has TRANSACTION_ABORTABLE.
Errors: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS, NOT_COORDINATOR,
  COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.end_txn_response import EndTxnResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[EndTxnRequest]) -> Reply[EndTxnResponse]:
    if not broker.access.allows(request, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.message.transactional_id):
        return Reply.now(request, EndTxnResponse(error_code=int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)))
    reply: Reply[EndTxnResponse] = Reply(request)
    broker.transactions.end_txn(request.message, request.version, reply.complete)
    return reply
