"""Delegation tokens: made for workers that shall act for somebody without his password, renewed, ended and listed."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.client.admin.calls import Calls
from barnabas.client.errors import IllegalArgument, error_for
from barnabas.protocol.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from barnabas.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from barnabas.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from barnabas.protocol.messages.describe_delegation_token_response import DescribedDelegationToken, DescribeDelegationTokenResponse
from barnabas.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from barnabas.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from barnabas.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse


class KafkaPrincipal(NamedTuple):
    """Who a client is to the broker:

        KafkaPrincipal.parse("User:alice")

    `principal_type` is `User` unless the broker has a principal builder of its own.
    """

    principal_type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> KafkaPrincipal:
        """`User:alice`; raises IllegalArgument for anything else."""
        kind, colon, name = text.partition(":")
        if not colon or not kind:
            raise IllegalArgument(f"expected a string in format principalType:principalName but got {text}")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


@dataclass(frozen=True, slots=True)
class TokenInformation:
    """Times are in ms since 1970. `token_requester` is who asked for it, where that is not the owner."""

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
    """The hmac is the secret: the password with which the token's id logs in by SCRAM."""

    token_info: TokenInformation
    hmac: bytes = field(repr=False)

    @property
    def hmac_as_base64_string(self) -> str:
        """The HMAC as text: the password of SCRAM with a token."""
        return b64encode(self.hmac).decode("ascii")


class TokenCalls:
    """Makes, renews, ends and lists delegation tokens."""

    _calls: Calls

    async def create_delegation_token(
        self,
        *,
        renewers: Iterable[KafkaPrincipal] = (),
        owner: KafkaPrincipal | None = None,
        max_lifetime_ms: int = -1,
        timeout_ms: int | None = None,
    ) -> DelegationToken:
        """A token of the caller, or of another owner if he may; -1 is the longest life that the broker allows."""
        given = tuple(renewers)
        request = CreateDelegationTokenRequest(
            "" if owner is None else owner.principal_type,
            "" if owner is None else owner.name,
            [CreatableRenewers(renewer.principal_type, renewer.name) for renewer in given],
            max_lifetime_ms,
        )

        def read(response: CreateDelegationTokenResponse) -> DelegationToken:
            if response.error_code:
                raise error_for(response.error_code)
            of = KafkaPrincipal(response.principal_type, response.principal_name)
            by = KafkaPrincipal(response.token_requester_principal_type, response.token_requester_principal_name)
            info = TokenInformation(
                response.token_id,
                of,
                by if by.principal_type else of,
                given,
                response.issue_timestamp_ms,
                response.max_timestamp_ms,
                response.expiry_timestamp_ms,
            )
            return DelegationToken(info, bytes(response.hmac))

        call = self._calls.begin("create_delegation_token", timeout_ms)
        return await self._calls.ask(call, self._calls.any_node, lambda _: request, read)

    async def renew_delegation_token(self, hmac: bytes, *, renew_time_period_ms: int = -1, timeout_ms: int | None = None) -> int:
        """Prolongs a token by so much, or by as much as the broker does; returns when it ends."""

        def read(response: RenewDelegationTokenResponse) -> int:
            if response.error_code:
                raise error_for(response.error_code)
            return response.expiry_timestamp_ms

        call = self._calls.begin("renew_delegation_token", timeout_ms)
        return await self._calls.ask(call, self._calls.any_node, lambda _: RenewDelegationTokenRequest(hmac, renew_time_period_ms), read)

    async def expire_delegation_token(self, hmac: bytes, *, expiry_time_period_ms: int = -1, timeout_ms: int | None = None) -> int:
        """Ends a token after so much time, or (-1) at once; returns when it ends."""

        def read(response: ExpireDelegationTokenResponse) -> int:
            if response.error_code:
                raise error_for(response.error_code)
            return response.expiry_timestamp_ms

        call = self._calls.begin("expire_delegation_token", timeout_ms)
        return await self._calls.ask(call, self._calls.any_node, lambda _: ExpireDelegationTokenRequest(hmac, expiry_time_period_ms), read)

    async def describe_delegation_token(
        self, *, owners: Sequence[KafkaPrincipal] | None = None, timeout_ms: int | None = None
    ) -> list[DelegationToken]:
        """The tokens of all owners, or of some, that the caller may see."""
        asked = None if owners is None else [DescribeDelegationTokenOwner(owner.principal_type, owner.name) for owner in owners]

        def read(response: DescribeDelegationTokenResponse) -> list[DelegationToken]:
            if response.error_code:
                raise error_for(response.error_code)
            return [_token(token) for token in response.tokens]

        call = self._calls.begin("describe_delegation_token", timeout_ms)
        return await self._calls.ask(call, self._calls.any_node, lambda _: DescribeDelegationTokenRequest(asked), read)


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
