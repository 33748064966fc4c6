"""InitProducerId: an id for a producer, by which the log tells its retries from new records; for a transactional one also its epoch.

Versions 0 to 5.
Behaviour
- without a transactional id every call gives a new id with epoch 0, also to a producer that tells its old one.
- with a transactional id the coordinator of it answers: the id stays, the epoch rises, and whoever had the one before is fenced. What was
  open is aborted first; until that is done the client hears CONCURRENT_TRANSACTIONS.
Version notes: 3 lets a producer tell the id and epoch it has, both or none (KIP-360). 4 knows PRODUCER_FENCED; before it is
  INVALID_PRODUCER_EPOCH. 6, with two-phase commit, is not offered: Kafka may still change it.
Errors: INVALID_REQUEST for an empty transactional id, or for only one of id and epoch; INVALID_TRANSACTION_TIMEOUT; PRODUCER_FENCED;
  CONCURRENT_TRANSACTIONS; NOT_COORDINATOR; COORDINATOR_NOT_AVAILABLE; COORDINATOR_LOAD_IN_PROGRESS, also while the metadata tree gives no
  block of ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Answer
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[InitProducerIdRequest]) -> InitProducerIdResponse | None:
    answer: Answer[InitProducerIdResponse] = Answer(request)
    broker.transactions.init_producer_id(request.message, request.version, answer.give)
    return answer.now()
