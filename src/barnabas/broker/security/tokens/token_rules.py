"""The decisions about a delegation token: how long it is valid, and who may renew or expire it. The checks and their order are Kafka 4.2's.

A token that has been created is valid until its expiry timestamp. Its owner and its renewers may move that timestamp, up to the maximum
timestamp. All timestamps are wall time in ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from barnabas.metadata.znodes.security import TokenZnode
from barnabas.security.errors import DelegationTokenExpired, DelegationTokenOwnerMismatch, InvalidPrincipalType
from barnabas.security.principal import USER_TYPE, KafkaPrincipal

TIMESTAMP_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TokenRules:
    """`max_lifetime_ms` is delegation.token.max.lifetime.ms, and `expiry_time_ms` is delegation.token.expiry.time.ms."""

    max_lifetime_ms: int
    expiry_time_ms: int

    def created(
        self,
        token_id: str,
        owner: KafkaPrincipal,
        requester: KafkaPrincipal,
        renewers: Sequence[KafkaPrincipal],
        max_lifetime_ms: int,
        now_ms: int,
    ) -> TokenZnode:
        """A lifetime of 0 or less means the longest that the broker allows."""
        lifetime_ms = min(self.max_lifetime_ms, max_lifetime_ms) if max_lifetime_ms > 0 else self.max_lifetime_ms
        max_timestamp = _sum(now_ms, lifetime_ms)
        return TokenZnode(
            token_id=token_id,
            owner=str(owner),
            requester=str(requester),
            renewers=tuple(map(str, renewers)),
            issue_timestamp=now_ms,
            max_timestamp=max_timestamp,
            expiry_timestamp=min(max_timestamp, _sum(now_ms, self.expiry_time_ms)),
        )

    def renewed(self, token: TokenZnode, principal: KafkaPrincipal, period_ms: int, now_ms: int) -> TokenZnode:
        """A period of 0 or less means the longest that the broker allows. Raises KafkaError."""
        if has_expired(token, now_ms):
            raise DelegationTokenExpired
        _check_renewer(token, principal)
        period_ms = min(self.expiry_time_ms, period_ms) if period_ms > 0 else self.expiry_time_ms
        return replace(token, expiry_timestamp=min(token.max_timestamp, _sum(now_ms, period_ms)))

    def expired(self, token: TokenZnode, principal: KafkaPrincipal, period_ms: int, now_ms: int) -> TokenZnode | None:
        """None: the token expires now and is removed, as a period below 0 requests. Raises KafkaError."""
        _check_renewer(token, principal)
        if period_ms < 0:
            return None
        if has_expired(token, now_ms):
            raise DelegationTokenExpired
        return replace(token, expiry_timestamp=min(token.max_timestamp, _sum(now_ms, period_ms)))


def has_expired(token: TokenZnode, now_ms: int) -> bool:
    return token.max_timestamp < now_ms or token.expiry_timestamp < now_ms


def is_owner_or_renewer(token: TokenZnode, principal: KafkaPrincipal) -> bool:
    """Whether the principal may see the token without an ACL. Its requester may, too."""
    return str(principal) in (token.owner, token.requester, *token.renewers)


def check_renewer_types(renewers: Sequence[KafkaPrincipal]) -> None:
    if any(renewer.principal_type != USER_TYPE for renewer in renewers):
        raise InvalidPrincipalType


def _check_renewer(token: TokenZnode, principal: KafkaPrincipal) -> None:
    if str(principal) not in (token.owner, *token.renewers):
        raise DelegationTokenOwnerMismatch


def _sum(now_ms: int, duration_ms: int) -> int:
    return min(TIMESTAMP_MAX, now_ms + duration_ms)
