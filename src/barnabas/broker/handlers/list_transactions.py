"""ListTransactions: the transactional ids that this broker coordinates; a client that wants all of them asks every broker.

Versions 0 to 2.
Behaviour: a filter that names nothing lets everything through; names of states that do not exist are told, and find nothing.
Version notes: 1 filters by how long a transaction has been running, 2 by an expression that the whole id has to match.
Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE; INVALID_REGULAR_EXPRESSION; then no transaction is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.list_transactions_response import ListTransactionsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[ListTransactionsRequest]) -> ListTransactionsResponse:
    return broker.transactions.list_transactions(request.message)
