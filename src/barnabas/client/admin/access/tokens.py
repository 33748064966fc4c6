"""Delegation tokens: workers authenticate with a token on behalf of its owner, without the owner's password."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from barnabas.client.admin.calls import Calls
from barnabas.client.errors import error_for
from barnabas.protocol.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from barnabas.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from barnabas.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from barnabas.protocol.messages.describe_delegation_token_response import DescribedDelegationToken, DescribeDelegationTokenResponse
from barnabas.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from barnabas.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from barnabas.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from barnabas.security.principal import KafkaPrincipal


@dataclass(frozen=True, slots=True)
class TokenInformation:
    """A delegation token without its secret. Times are in ms since 1970. `token_requester` is the principal that created the token; it may
    differ from the owner."""

    token_id: str
    owner: KafkaPrincipal
    token_requester: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int

    def owner_or_renewer(self, principal: KafkaPrincipal) -> bool:
        """Whether the principal may renew or expire the token."""
        return principal in (self.owner, self.token_requester, *self.renewers)


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token and its secret. The hmac is the password with which the token id authenticates by SCRAM."""

    token_info: TokenInformation
    hmac: bytes = field(repr=False)

    @property
    def hmac_as_base64_string(self) -> str:
        """The HMAC as text: the password of SCRAM with a token."""
        return b64encode(self.hmac).decode("ascii")


class TokenCalls:
    """Creates, renews, expires and describes delegation tokens."""

    _calls: Calls

    async def create_delegation_token(
        self,
        *,
        renewers: Iterable[KafkaPrincipal] = (),
        owner: KafkaPrincipal | None = None,
        max_lifetime_ms: int = -1,
        timeout_ms: int | None = None,
    ) -> DelegationToken:
        """Creates a token for the caller, or for another owner if the caller may do so; -1 is the longest lifetime that the broker
        allows."""
        renewer_principals = tuple(renewers)
        request = CreateDelegationTokenRequest(
            "" if owner is None else owner.principal_type,
            "" if owner is None else owner.name,
            [CreatableRenewers(renewer.principal_type, renewer.name) for renewer in renewer_principals],
            max_lifetime_ms,
        )

        def read(response: CreateDelegationTokenResponse) -> DelegationToken:
            if response.error_code:
                raise error_for(response.error_code)
            token_owner = KafkaPrincipal(response.principal_type, response.principal_name)
            requester = KafkaPrincipal(response.token_requester_principal_type, response.token_requester_principal_name)
            info = TokenInformation(
                response.token_id,
                token_owner,
                requester if requester.principal_type else token_owner,
                renewer_principals,
                response.issue_timestamp_ms,
                response.max_timestamp_ms,
                response.expiry_timestamp_ms,
            )
            return DelegationToken(info, bytes(response.hmac))

        call = self._calls.begin("create_delegation_token", timeout_ms)
        return await self._calls.request(call, self._calls.any_node, lambda _: request, read)

    async def renew_delegation_token(self, hmac: bytes, *, renew_time_period_ms: int = -1, timeout_ms: int | None = None) -> int:
        """Extends a token by the given time, or (-1) by the broker's default; returns the new expiry time in ms since 1970."""

        def read(response: RenewDelegationTokenResponse) -> int:
            if response.error_code:
                raise error_for(response.error_code)
            return response.expiry_timestamp_ms

        call = self._calls.begin("renew_delegation_token", timeout_ms)
        return await self._calls.request(
            call, self._calls.any_node, lambda _: RenewDelegationTokenRequest(hmac, renew_time_period_ms), read
        )

    async def expire_delegation_token(self, hmac: bytes, *, expiry_time_period_ms: int = -1, timeout_ms: int | None = None) -> int:
        """Expires a token after the given time, or (-1) at once; returns the expiry time in ms since 1970."""

        def read(response: ExpireDelegationTokenResponse) -> int:
            if response.error_code:
                raise error_for(response.error_code)
            return response.expiry_timestamp_ms

        call = self._calls.begin("expire_delegation_token", timeout_ms)
        return await self._calls.request(
            call, self._calls.any_node, lambda _: ExpireDelegationTokenRequest(hmac, expiry_time_period_ms), read
        )

    async def describe_delegation_token(
        self, *, owners: Sequence[KafkaPrincipal] | None = None, timeout_ms: int | None = None
    ) -> list[DelegationToken]:
        """The tokens that the caller may see, of all owners or of the given owners."""
        requested_owners = None if owners is None else [DescribeDelegationTokenOwner(owner.principal_type, owner.name) for owner in owners]

        def read(response: DescribeDelegationTokenResponse) -> list[DelegationToken]:
            if response.error_code:
                raise error_for(response.error_code)
            return [_token(token) for token in response.tokens]

        call = self._calls.begin("describe_delegation_token", timeout_ms)
        return await self._calls.request(call, self._calls.any_node, lambda _: DescribeDelegationTokenRequest(requested_owners), read)


def _token(token: DescribedDelegationToken) -> DelegationToken:
    owner = KafkaPrincipal(token.principal_type, token.principal_name)
    requester = KafkaPrincipal(token.token_requester_principal_type, token.token_requester_principal_name)
    info = TokenInformation(
        token.token_id,
        owner,
        requester if requester.principal_type else owner,
        tuple(KafkaPrincipal(renewer.principal_type, renewer.principal_name) for renewer in token.renewers),
        token.issue_timestamp,
        token.max_timestamp,
        token.expiry_timestamp,
    )
    return DelegationToken(info, bytes(token.hmac))
