"""AddOffsetsToTxn: a transaction is about to commit offsets of a group, so its markers will have to go to the group's partition too.

Versions 0 to 4.
Behaviour: the partition of `__consumer_offsets` that the group belongs to is added to the transaction, as AddPartitionsToTxn adds others.
Version notes: 2 knows PRODUCER_FENCED; before it is INVALID_PRODUCER_EPOCH. 4 knows TRANSACTION_ABORTABLE.
Errors: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS, NOT_COORDINATOR,
  COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Answer
from barnabas.errors import KafkaError
from barnabas.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[AddOffsetsToTxnRequest]) -> AddOffsetsToTxnResponse | None:
    answer: Answer[AddOffsetsToTxnResponse] = Answer(request)
    try:
        broker.transactions.add_offsets(request.message, request.version, answer.give)
    except KafkaError as error:  # groups have no coordinator: the broker is shutting down
        return AddOffsetsToTxnResponse(error_code=error.code)
    return answer.now()
