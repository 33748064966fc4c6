"""UnregisterBroker: forgets a broker that has stopped for good.

Version 0.
Behaviour
- any broker serves it. The registration of a broker ends with its session, so only its dynamic configs are left to be removed. A broker
  that is alive, or to which replicas are assigned, cannot be forgotten.
Authorization: ALTER on the cluster.
Errors: CLUSTER_AUTHORIZATION_FAILED, BROKER_ID_NOT_REGISTERED (nothing is left of it), INVALID_REQUEST (it is alive, or has replicas).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.broker.topics.forgotten_broker import forget_broker
from barnabas.errors import KafkaError
from barnabas.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from barnabas.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[UnregisterBrokerRequest]) -> Reply[UnregisterBrokerResponse]:
    return Reply.awaiting(request, _unregister(broker, request))


async def _unregister(broker: Broker, request: Request[UnregisterBrokerRequest]) -> UnregisterBrokerResponse:
    try:
        broker.access.require_on_cluster(request, AclOperation.ALTER)
        await forget_broker(broker.tree, broker.random, request.message.broker_id)
    except KafkaError as error:
        return UnregisterBrokerResponse(0, int(error.code), str(error))
    return UnregisterBrokerResponse()
