"""DescribeTransactions: state, producer, timeout, start time and partitions of transactional ids, from their coordinator.

Version 0.
Behaviour: each id has its own result, in the order of the request.
Errors: per id: INVALID_REQUEST for an empty one, TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
  COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.coordinator.gather import Gather
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_transactions_response import DescribeTransactionsResponse, TransactionState

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("transactional_ids",), ("transaction_states",))


def handle(broker: Broker, request: Request[DescribeTransactionsRequest]) -> Reply[DescribeTransactionsResponse]:
    reply: Reply[DescribeTransactionsResponse] = Reply(request)
    transactional_ids = request.message.transactional_ids
    gather: Gather[TransactionState] = Gather(
        len(transactional_ids), lambda states: reply.complete(DescribeTransactionsResponse(transaction_states=states))
    )
    for index, transactional_id in enumerate(transactional_ids):
        broker.transactions.describe_transaction(transactional_id, gather.slot(index))
    gather.all_asked()
    return reply
