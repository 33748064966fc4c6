# Compiled by mypyc: src/compiled.toml lists this module.
"""EndTxn: a producer commits or aborts its transaction.

Versions 0 to 5.
Behaviour
- answered when the decision is in the coordinator's log and cannot be lost; the markers go to the partitions after it. The same decision
  again is answered as the first was, the opposite one is refused.
- from 5 on (transaction version 2) every end raises the epoch, and the answer tells the producer which id and epoch to go on with.
Version notes: 2 knows PRODUCER_FENCED; before it is INVALID_PRODUCER_EPOCH. 4 knows TRANSACTION_ABORTABLE.
Errors: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS, NOT_COORDINATOR,
  COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Answer
from barnabas.protocol.messages.end_txn_request import EndTxnRequest
from barnabas.protocol.messages.end_txn_response import EndTxnResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[EndTxnRequest]) -> EndTxnResponse | None:
    answer: Answer[EndTxnResponse] = Answer(request)
    broker.transactions.end_txn(request.message, request.version, answer.give)
    return answer.now()
