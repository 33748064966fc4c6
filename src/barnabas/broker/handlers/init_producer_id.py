"""InitProducerId: allocates a producer id, by which the log recognises retries. For a transactional id it also raises the epoch.

Versions 0 to 5.
Behaviour
- without a transactional id every call returns a new id with epoch 0, also to a producer that sends its old id.
- with a transactional id its coordinator serves the request: the producer id stays, the epoch rises, and producers with an older epoch are
  fenced. An open transaction is aborted first; until then the error is CONCURRENT_TRANSACTIONS.
Authorization
- with a transactional id: WRITE on it, and TWO_PHASE_COMMIT if the producer requests it, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
- without: IDEMPOTENT_WRITE on the cluster or WRITE on any topic, else CLUSTER_AUTHORIZATION_FAILED.
Version notes: 3: a producer may send its current id and epoch, both or none (KIP-360). 4 has PRODUCER_FENCED, earlier versions
  INVALID_PRODUCER_EPOCH. 6, with two-phase commit, is not offered: Kafka may still change it.
Errors: INVALID_REQUEST for an empty transactional id, or for only one of id and epoch; INVALID_TRANSACTION_TIMEOUT; PRODUCER_FENCED;
  CONCURRENT_TRANSACTIONS; NOT_COORDINATOR; COORDINATOR_NOT_AVAILABLE; COORDINATOR_LOAD_IN_PROGRESS, also while no block of ids can be
  taken from the metadata store; TRANSACTIONAL_ID_AUTHORIZATION_FAILED; CLUSTER_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id_request import InitProducerIdRequest
from barnabas.protocol.messages.init_producer_id_response import InitProducerIdResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_NO_PRODUCER_ID: Final = -1
_NO_EPOCH: Final = -1


def handle(broker: Broker, request: Request[InitProducerIdRequest]) -> Reply[InitProducerIdResponse]:
    denial = None if broker.access.is_open else _denial(broker, request)
    if denial is not None:
        return Reply.now(request, InitProducerIdResponse(error_code=denial, producer_id=_NO_PRODUCER_ID, producer_epoch=_NO_EPOCH))
    reply: Reply[InitProducerIdResponse] = Reply(request)
    broker.transactions.init_producer_id(request.message, request.version, reply.complete)
    return reply


def _denial(broker: Broker, request: Request[InitProducerIdRequest]) -> ErrorCode | None:
    access, message = broker.access, request.message
    transactional_id = message.transactional_id
    if transactional_id is None:
        is_allowed = access.allows_on_cluster(request, AclOperation.IDEMPOTENT_WRITE, logs_denied=False) or access.allows_on_any(
            request, AclOperation.WRITE, ResourceType.TOPIC
        )
        return None if is_allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    operations = [AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT] if message.enable_2pc else [AclOperation.WRITE]
    for operation in operations:
        if not access.allows(request, operation, ResourceType.TRANSACTIONAL_ID, transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return None
