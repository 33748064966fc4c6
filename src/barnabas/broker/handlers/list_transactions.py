"""ListTransactions: the transactional ids that this broker coordinates. A client that lists all of them sends it to every broker.

Versions 0 to 2.
Behaviour: an empty filter matches every transaction. Unknown states match none, and the response names them.
Authorization: DESCRIBE on each transactional id. Denied ones are left out.
Version notes: 1 filters by the age of a transaction, 2 by a regular expression that the whole id has to match.
Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, INVALID_REGULAR_EXPRESSION; the list is empty then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.messages.list_transactions_request import ListTransactionsRequest
from barnabas.protocol.messages.list_transactions_response import ListTransactionsResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[ListTransactionsRequest]) -> Reply[ListTransactionsResponse]:
    response = broker.transactions.list_transactions(request.message)
    if not broker.access.is_open:
        states = response.transaction_states
        names = [state.transactional_id for state in states]
        allowed = broker.access.allowed(request, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, names)
        response.transaction_states = [state for state in states if state.transactional_id in allowed]
    return Reply.now(request, response)
