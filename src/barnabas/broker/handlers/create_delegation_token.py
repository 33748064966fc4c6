"""CreateDelegationToken: gives the client a delegation token, a password that other processes can use in its name.

Versions 0 to 3.
Behaviour
- any broker serves it. The owner is the client, or another user.
- the response has the HMAC, which is the password of the token; DescribeDelegationToken returns it again.
Authorization: CREATE_TOKENS on the owner, if that is not the client.
Version notes
- 3: may create a token for another owner.
Errors
- DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (the client is anonymous or authenticated with a token), DELEGATION_TOKEN_AUTHORIZATION_FAILED,
  INVALID_PRINCIPAL_TYPE (a renewer is not a `User`), DELEGATION_TOKEN_AUTH_DISABLED (no delegation.token.secret.key).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.reply import Reply
from barnabas.broker.security.tokens.token_rules import check_renewer_types
from barnabas.errors import KafkaError
from barnabas.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from barnabas.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from barnabas.security.acl import ResourceType
from barnabas.security.errors import DelegationTokenAuthorization, DelegationTokenDisabled, UnsupportedByAuthentication
from barnabas.security.operations import AclOperation
from barnabas.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_NONE: Final = -1  # a timestamp of a token that was not created
_REQUESTER_VERSION: Final = 3  # the first version with the requester
_NO_REQUESTER: Final = KafkaPrincipal("", "")


def handle(broker: Broker, request: Request[CreateDelegationTokenRequest]) -> Reply[CreateDelegationTokenResponse]:
    return Reply.awaiting(request, _create(broker, request))


async def _create(broker: Broker, request: Request[CreateDelegationTokenRequest]) -> CreateDelegationTokenResponse:
    message, requester = request.message, request.session.principal
    shown = requester if request.version >= _REQUESTER_VERSION else _NO_REQUESTER
    owner = KafkaPrincipal(message.owner_principal_type or "", message.owner_principal_name) if message.owner_principal_name else requester
    renewers = [KafkaPrincipal(renewer.principal_type, renewer.principal_name) for renewer in message.renewers]
    try:
        if not broker.tokens.allows_requests(request.session, request.listener_name):
            raise UnsupportedByAuthentication
        if owner != requester and not broker.access.allows(request, AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)):
            raise DelegationTokenAuthorization
        check_renewer_types(renewers)
        token = await broker.tokens.create(owner, requester, renewers, message.max_lifetime_ms)
    except KafkaError as error:
        return _refused(error, owner, shown)
    made = token.information
    return CreateDelegationTokenResponse(
        0, *owner, *shown, made.issue_timestamp, made.expiry_timestamp, made.max_timestamp, made.token_id, token.hmac, 0
    )


def _refused(error: KafkaError, owner: KafkaPrincipal, requester: KafkaPrincipal) -> CreateDelegationTokenResponse:
    """As in Kafka 4.2, the timestamps are 0 where the controller refuses, and -1 where the broker does."""
    timestamp = 0 if isinstance(error, DelegationTokenDisabled) else _NONE
    return CreateDelegationTokenResponse(error.code, *owner, *requester, timestamp, timestamp, timestamp, "", b"", 0)
