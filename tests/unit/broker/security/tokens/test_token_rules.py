"""Kafka 4.2's decisions about a delegation token."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.broker.security.tokens.token_rules import TIMESTAMP_MAX, TokenRules, check_renewer_types, has_expired, is_owner_or_renewer
from barnabas.metadata.znodes.security import TokenZnode
from barnabas.security.errors import DelegationTokenExpired, DelegationTokenOwnerMismatch, InvalidPrincipalType
from barnabas.security.principal import KafkaPrincipal

ALICE, BOB, CAROL, ADMIN = (KafkaPrincipal("User", name) for name in ("alice", "bob", "carol", "admin"))
NOW = 1_000_000
RULES = TokenRules(max_lifetime_ms=7000, expiry_time_ms=1000)


def token(lifetime_ms: int = -1) -> TokenZnode:
    return RULES.created("id", ALICE, ADMIN, [BOB], lifetime_ms, NOW)


def test_a_token_expires_after_the_expiry_time_unless_it_is_renewed() -> None:
    assert token() == TokenZnode("id", "User:alice", "User:admin", ("User:bob",), NOW, NOW + 7000, NOW + 1000)


@pytest.mark.parametrize(("requested", "lifetime_ms"), [(-1, 7000), (0, 7000), (500, 500), (7000, 7000), (7001, 7000)])
def test_the_lifetime_has_a_maximum(requested: int, lifetime_ms: int) -> None:
    assert token(requested).max_timestamp == NOW + lifetime_ms
    assert token(requested).expiry_timestamp == NOW + min(lifetime_ms, 1000)


def test_timestamps_do_not_overflow() -> None:
    endless = TokenRules(TIMESTAMP_MAX, TIMESTAMP_MAX)
    made = endless.created("id", ALICE, ALICE, [], -1, NOW)
    assert (made.max_timestamp, made.expiry_timestamp) == (TIMESTAMP_MAX, TIMESTAMP_MAX)
    assert RULES.expired(made, ALICE, TIMESTAMP_MAX, NOW) == made


@pytest.mark.parametrize(("period_ms", "prolonged_ms"), [(-1, 1000), (0, 1000), (300, 300), (5000, 1000)])
@pytest.mark.parametrize("principal", [ALICE, BOB])
def test_owner_and_renewer_renew_by_the_expiry_time_at_most(principal: KafkaPrincipal, period_ms: int, prolonged_ms: int) -> None:
    assert RULES.renewed(token(), principal, period_ms, NOW + 900).expiry_timestamp == NOW + 900 + prolonged_ms


def test_a_renewal_ends_at_the_maximum_timestamp() -> None:
    old = replace(token(), expiry_timestamp=NOW + 6900)
    assert RULES.renewed(old, ALICE, -1, NOW + 6900).expiry_timestamp == NOW + 7000


def test_the_requester_alone_may_neither_renew_nor_expire() -> None:
    for principal in (ADMIN, CAROL):
        with pytest.raises(DelegationTokenOwnerMismatch):
            RULES.renewed(token(), principal, -1, NOW)
        with pytest.raises(DelegationTokenOwnerMismatch):
            RULES.expired(token(), principal, -1, NOW)


def test_an_expired_token_cannot_be_renewed_by_anybody() -> None:
    for principal in (ALICE, CAROL):
        with pytest.raises(DelegationTokenExpired):
            RULES.renewed(token(), principal, -1, NOW + 1001)
    assert RULES.renewed(token(), ALICE, -1, NOW + 1000).expiry_timestamp == NOW + 2000


def test_an_expired_token_can_only_be_removed() -> None:
    assert RULES.expired(token(), ALICE, -1, NOW + 1001) is None
    with pytest.raises(DelegationTokenExpired):
        RULES.expired(token(), ALICE, 0, NOW + 1001)
    with pytest.raises(DelegationTokenOwnerMismatch):
        RULES.expired(token(), CAROL, 0, NOW + 1001)


def test_the_expiry_can_be_moved_up_to_the_maximum_timestamp() -> None:
    moved = [RULES.expired(token(), BOB, period_ms, NOW) for period_ms in (0, 500, 9000)]
    assert [made and made.expiry_timestamp for made in moved] == [NOW, NOW + 500, NOW + 7000]


def test_a_clock_that_jumps_back_does_not_revive_a_removed_token_nor_end_a_valid_one() -> None:
    assert not has_expired(token(), NOW - 10_000)
    assert has_expired(token(), NOW + 1001)
    assert has_expired(replace(token(), max_timestamp=NOW - 1), NOW)


def test_owner_requester_and_renewers_see_the_token() -> None:
    assert [is_owner_or_renewer(token(), principal) for principal in (ALICE, BOB, ADMIN, CAROL)] == [True, True, True, False]


def test_only_users_renew() -> None:
    check_renewer_types([ALICE, BOB])
    with pytest.raises(InvalidPrincipalType):
        check_renewer_types([ALICE, KafkaPrincipal("Group", "admins")])
