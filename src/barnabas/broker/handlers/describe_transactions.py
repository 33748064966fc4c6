"""DescribeTransactions: what the coordinator knows of transactional ids: state, producer, timeout, since when, and which partitions.

Version 0.
Behaviour: each id has its own error; they are answered in the order they were asked for.
Errors: per id: INVALID_REQUEST for an empty one, TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
  COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.gather import Gather
from barnabas.broker.requests.reply import Answer
from barnabas.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_transactions_response import DescribeTransactionsResponse, TransactionState

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("transactional_ids",), ("transaction_states",))


def handle(broker: Broker, request: Request[DescribeTransactionsRequest]) -> DescribeTransactionsResponse | None:
    answer: Answer[DescribeTransactionsResponse] = Answer(request)
    wanted = request.message.transactional_ids
    gather: Gather[TransactionState] = Gather(
        len(wanted), lambda states: answer.give(DescribeTransactionsResponse(transaction_states=states))
    )
    for index, transactional_id in enumerate(wanted):
        broker.transactions.describe_transaction(transactional_id, gather.slot(index))
    gather.all_asked()
    return answer.now()
