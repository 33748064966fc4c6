"""ExpireDelegationToken: moves the expiry timestamp of a delegation token, or removes the token.

Versions 0 to 2.
Behaviour
- any broker serves it. The HMAC names the token. Its owner and its renewers may expire it.
- a period below 0 removes the token at once, also one that has expired.
Errors
- DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_OWNER_MISMATCH,
  DELEGATION_TOKEN_EXPIRED, in this order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.reply import Reply
from barnabas.errors import KafkaError
from barnabas.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from barnabas.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from barnabas.security.errors import UnsupportedByAuthentication

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_NONE: Final = -1  # the timestamp where the request is not allowed


def handle(broker: Broker, request: Request[ExpireDelegationTokenRequest]) -> Reply[ExpireDelegationTokenResponse]:
    if not broker.tokens.allows_requests(request.session, request.listener_name):
        return Reply.now(request, ExpireDelegationTokenResponse(UnsupportedByAuthentication.code, _NONE, 0))
    return Reply.awaiting(request, _expire(broker, request))


async def _expire(broker: Broker, request: Request[ExpireDelegationTokenRequest]) -> ExpireDelegationTokenResponse:
    message = request.message
    try:
        expiry_timestamp = await broker.tokens.expire(request.session.principal, message.hmac, message.expiry_time_period_ms)
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error.code, 0, 0)
    return ExpireDelegationTokenResponse(0, expiry_timestamp, 0)
