"""RenewDelegationToken: moves the expiry timestamp of a delegation token into the future.

Versions 0 to 2.
Behaviour
- any broker serves it. The HMAC names the token. Its owner and its renewers may renew it.
- a period of 0 or less, and one longer than delegation.token.expiry.time.ms, mean that setting. The maximum timestamp of the token stays.
Errors
- DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED,
  DELEGATION_TOKEN_OWNER_MISMATCH, in this order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.reply import Reply
from barnabas.errors import KafkaError
from barnabas.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from barnabas.security.errors import UnsupportedByAuthentication

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_NONE: Final = -1  # the timestamp where the request is not allowed


def handle(broker: Broker, request: Request[RenewDelegationTokenRequest]) -> Reply[RenewDelegationTokenResponse]:
    if not broker.tokens.allows_requests(request.session, request.listener_name):
        return Reply.now(request, RenewDelegationTokenResponse(UnsupportedByAuthentication.code, _NONE, 0))
    return Reply.awaiting(request, _renew(broker, request))


async def _renew(broker: Broker, request: Request[RenewDelegationTokenRequest]) -> RenewDelegationTokenResponse:
    message = request.message
    try:
        expiry_timestamp = await broker.tokens.renew(request.session.principal, message.hmac, message.renew_period_ms)
    except KafkaError as error:
        return RenewDelegationTokenResponse(error.code, 0, 0)
    return RenewDelegationTokenResponse(0, expiry_timestamp, 0)
