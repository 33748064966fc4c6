"""DescribeTransactions: state, producer, timeout, start time and partitions of transactional ids, from their coordinator.

Version 0.
Behaviour: each id has its own result, in the order of the request.
Authorization
- DESCRIBE on each transactional id. A denied one has the error TRANSACTIONAL_ID_AUTHORIZATION_FAILED whether it exists or not.
- DESCRIBE on each topic of a transaction. Denied topics are left out.
Errors: per id: INVALID_REQUEST for an empty one, TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
  COORDINATOR_NOT_AVAILABLE, TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.coordinator.gather import Gather
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_transactions_response import DescribeTransactionsResponse, TransactionState
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("transactional_ids",), ("transaction_states",))


def handle(broker: Broker, request: Request[DescribeTransactionsRequest]) -> Reply[DescribeTransactionsResponse]:
    reply: Reply[DescribeTransactionsResponse] = Reply(request)
    transactional_ids = request.message.transactional_ids

    def done(states: list[TransactionState]) -> None:
        if not broker.access.is_open:
            _hide_topics(broker, request, states)
        reply.complete(DescribeTransactionsResponse(transaction_states=states))

    gather: Gather[TransactionState] = Gather(len(transactional_ids), done)
    for index, transactional_id in enumerate(transactional_ids):
        if broker.access.allows(request, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            broker.transactions.describe_transaction(transactional_id, gather.slot(index))
        else:
            gather.slot(index)(TransactionState(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, transactional_id))
    gather.all_asked()
    return reply


def _hide_topics(broker: Broker, request: Request[DescribeTransactionsRequest], states: list[TransactionState]) -> None:
    names = [topic.topic for state in states for topic in state.topics]
    allowed = broker.access.allowed(request, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    for state in states:
        state.topics = [topic for topic in state.topics if topic.topic in allowed]
