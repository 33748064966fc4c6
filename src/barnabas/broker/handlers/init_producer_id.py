"""InitProducerId: an id for a producer, by which the log tells its retries from new records.

Versions 0 to 6.
Behaviour
- without a transactional id every call gives a new id with epoch 0, also to a producer that tells its old one.
- with a transactional id it is the transaction coordinator that answers. This broker is none, and says so: the client looks for another.
Version notes: 3 lets a producer tell the id and epoch it has, both or none. 6, with two-phase commit, is not promised yet.
Errors: INVALID_REQUEST for an empty transactional id, or for only one of id and epoch; INVALID_TRANSACTION_TIMEOUT; NOT_COORDINATOR;
  COORDINATOR_LOAD_IN_PROGRESS while the metadata tree gives no block of ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1


async def handle(broker: Broker, request: Request[InitProducerIdRequest]) -> InitProducerIdResponse:
    message = request.message
    if (message.producer_id == NO_PRODUCER_ID) != (message.producer_epoch == NO_PRODUCER_EPOCH) or message.transactional_id == "":
        return _refusal(ErrorCode.INVALID_REQUEST)
    if message.transactional_id is not None:
        if not 0 < message.transaction_timeout_ms <= broker.config.current.number("transaction.max.timeout.ms"):
            return _refusal(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        return _refusal(ErrorCode.NOT_COORDINATOR)
    try:
        return InitProducerIdResponse(producer_id=await broker.producer_ids.generate(), producer_epoch=0)
    except KafkaError as error:
        return _refusal(error.code)


def _refusal(error: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
