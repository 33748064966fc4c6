"""InitProducerId: allocates a producer id, by which the log recognises retries. For a transactional id it also raises the epoch.

Versions 0 to 5.
Behaviour
- without a transactional id every call returns a new id with epoch 0, also to a producer that sends its old id.
- with a transactional id its coordinator serves the request: the producer id stays, the epoch rises, and producers with an older epoch are
  fenced. An open transaction is aborted first; until then the error is CONCURRENT_TRANSACTIONS.
Version notes: 3: a producer may send its current id and epoch, both or none (KIP-360). 4 has PRODUCER_FENCED, earlier versions
  INVALID_PRODUCER_EPOCH. 6, with two-phase commit, is not offered: Kafka may still change it.
Errors: INVALID_REQUEST for an empty transactional id, or for only one of id and epoch; INVALID_TRANSACTION_TIMEOUT; PRODUCER_FENCED;
  CONCURRENT_TRANSACTIONS; NOT_COORDINATOR; COORDINATOR_NOT_AVAILABLE; COORDINATOR_LOAD_IN_PROGRESS, also while no block of ids can be
  taken from the metadata store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[InitProducerIdRequest]) -> Reply[InitProducerIdResponse]:
    reply: Reply[InitProducerIdResponse] = Reply(request)
    broker.transactions.init_producer_id(request.message, request.version, reply.complete)
    return reply
