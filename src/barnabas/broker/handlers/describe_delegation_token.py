"""DescribeDelegationToken: the delegation tokens of the named owners, or all, with their HMACs.

Versions 0 to 3.
Behaviour
- any broker serves it.
- no owners (null) means all; an empty list means none. A renewer or requester counts as an owner.
Authorization: a client sees the tokens that it owns, requested or may renew. It sees others with DESCRIBE on the token or DESCRIBE_TOKENS
  on the owner. Without an authorizer it sees all, as in Kafka.
Version notes
- 3: has the requester.
Errors
- DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.reply import Reply
from barnabas.broker.security.tokens.token_rules import is_owner_or_renewer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from barnabas.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.security.tokens.delegation_tokens import DelegationToken

_REQUESTER_VERSION: Final = 3  # the first version with the requester
_NO_REQUESTER: Final = KafkaPrincipal("", "")


def handle(broker: Broker, request: Request[DescribeDelegationTokenRequest]) -> Reply[DescribeDelegationTokenResponse]:
    if not broker.tokens.allows_requests(request.session, request.listener_name):
        return Reply.now(request, DescribeDelegationTokenResponse(int(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED), [], 0))
    if not broker.tokens.is_enabled:
        return Reply.now(request, DescribeDelegationTokenResponse(int(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED), [], 0))
    named = request.message.owners
    owners = None if named is None else [KafkaPrincipal(owner.principal_type, owner.principal_name) for owner in named]
    has_requester = request.version >= _REQUESTER_VERSION
    shown = [_described(token, has_requester) for token in broker.tokens.tokens() if _is_shown(broker, request, owners, token)]
    return Reply.now(request, DescribeDelegationTokenResponse(0, shown, 0))


def _is_shown(
    broker: Broker,
    request: Request[DescribeDelegationTokenRequest],
    owners: Collection[KafkaPrincipal] | None,
    token: DelegationToken,
) -> bool:
    information = token.information
    if owners is not None and not any(is_owner_or_renewer(information, owner) for owner in owners):
        return False
    if is_owner_or_renewer(information, request.session.principal):
        return True
    return broker.access.allows(
        request, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, information.token_id
    ) or broker.access.allows(request, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, information.owner)


def _described(token: DelegationToken, has_requester: bool) -> DescribedDelegationToken:
    information = token.information
    requester = KafkaPrincipal.parse(information.requester) if has_requester else _NO_REQUESTER
    return DescribedDelegationToken(
        *KafkaPrincipal.parse(information.owner),
        *requester,
        information.issue_timestamp,
        information.expiry_timestamp,
        information.max_timestamp,
        information.token_id,
        token.hmac,
        [DescribedDelegationTokenRenewer(*KafkaPrincipal.parse(renewer)) for renewer in information.renewers],
    )
