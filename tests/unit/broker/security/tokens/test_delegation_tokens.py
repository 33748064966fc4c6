from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
from collections.abc import Awaitable, Callable
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from barnabas.broker.clock import Clock
from barnabas.broker.handlers import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from barnabas.broker.security.access import Access
from barnabas.broker.security.authorizer.authorizer import Authorizer
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.session import Session
from barnabas.broker.security.tokens.delegation_tokens import DelegationTokens, TokenConfig
from barnabas.broker.security.tokens.token_rules import TokenRules
from barnabas.endpoint import SecurityProtocol
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message, parse, serialize
from barnabas.protocol.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from barnabas.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from barnabas.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from barnabas.protocol.messages.describe_delegation_token_response import DescribeDelegationTokenResponse
from barnabas.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from barnabas.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from barnabas.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from barnabas.security.operations import AclOperation
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.security.scram import ScramCredential
from tests.unit.broker.handlers.asking import request_of

M = TypeVar("M", bound=Message)

NOW = 1_700_000_000_000
SECRET = "the secret of all brokers"
ALICE, BOB, CAROL = (KafkaPrincipal("User", name) for name in ("alice", "bob", "carol"))
PROTOCOLS = {protocol.name: protocol for protocol in SecurityProtocol}
DISABLED, NOT_FOUND, OWNER_MISMATCH, NOT_ALLOWED, NOT_AUTHORIZED, EXPIRED, WRONG_TYPE = 61, 62, 63, 64, 65, 66, 67


class StandingClock(Clock):
    def __init__(self) -> None:
        self.wall_ms = NOW

    def now_ms(self) -> int:
        return self.wall_ms


class Allowing(Authorizer):
    """Allows the named pairs of operation and resource."""

    def __init__(self, *allowed: tuple[AclOperation, str]) -> None:
        self.allowed = allowed

    def authorize(self, session: Session, action: Any) -> bool:
        return (action.operation, action.name) in self.allowed


class TokenBroker:
    """A broker with delegation tokens. Several share one metadata store."""

    def __init__(self, store: LocalTree, clock: StandingClock, secret: str | None = SECRET, check_interval_ms: int = 3_600_000) -> None:
        self.tree = TreeClient(store, lambda: None)
        self.credentials = Credentials()
        self.clock = clock
        self.authorizer: Any = None
        self.is_controller = True
        config = TokenConfig(secret, TokenRules(7000, 1000), check_interval_ms)
        self.tokens = DelegationTokens(config, PROTOCOLS, self.tree, self.credentials, clock, Random(1))

    async def __aenter__(self) -> TokenBroker:
        await self.tree.connect()
        await self.tokens.start(lambda: self.is_controller)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.tokens.close()
        await self.tree.close()

    async def exchange(self, handler: Any, message: Message, response: type[M], session: Session, listener: str, version: int) -> M:
        broker: Any = SimpleNamespace(tokens=self.tokens, access=Access(self.authorizer))
        request = request_of(message, version)
        connection: Any = request.connection
        connection.session, connection.listener_name = session, listener
        return parse(response, serialize(await handler.handle(broker, request).result(), version), version)

    async def create(
        self,
        principal: KafkaPrincipal = ALICE,
        *,
        owner: KafkaPrincipal | None = None,
        renewers: tuple[KafkaPrincipal, ...] = (),
        is_token: bool = False,
        listener: str = "SASL_SSL",
        version: int = 3,
    ) -> CreateDelegationTokenResponse:
        owner_type, owner_name = owner or ((None, None) if version >= 3 else ("", ""))
        message = CreateDelegationTokenRequest(owner_type, owner_name, [CreatableRenewers(*renewer) for renewer in renewers], -1)
        session = Session(principal, "127.0.0.1", is_token=is_token)
        return await self.exchange(create_delegation_token, message, CreateDelegationTokenResponse, session, listener, version)

    async def renew(self, token_hmac: bytes, principal: KafkaPrincipal = ALICE, listener: str = "SASL_SSL") -> tuple[int, int]:
        message = RenewDelegationTokenRequest(token_hmac, -1)
        session = Session(principal, "127.0.0.1")
        answer = await self.exchange(renew_delegation_token, message, RenewDelegationTokenResponse, session, listener, 2)
        return answer.error_code, answer.expiry_timestamp_ms

    async def expire(
        self, token_hmac: bytes, period_ms: int = -1, principal: KafkaPrincipal = ALICE, listener: str = "SASL_SSL"
    ) -> tuple[int, int]:
        message = ExpireDelegationTokenRequest(token_hmac, period_ms)
        session = Session(principal, "127.0.0.1")
        answer = await self.exchange(expire_delegation_token, message, ExpireDelegationTokenResponse, session, listener, 2)
        return answer.error_code, answer.expiry_timestamp_ms

    async def describe(
        self, principal: KafkaPrincipal, *owners: KafkaPrincipal, everything: bool = False, listener: str = "SASL_SSL", version: int = 3
    ) -> tuple[int, list[str]]:
        message = DescribeDelegationTokenRequest(None if everything else [DescribeDelegationTokenOwner(*owner) for owner in owners])
        session = Session(principal, "127.0.0.1")
        answer = await self.exchange(describe_delegation_token, message, DescribeDelegationTokenResponse, session, listener, version)
        return answer.error_code, [token.token_id for token in answer.tokens]


def playing(test: Callable[[TokenBroker, TokenBroker], Awaitable[None]]) -> None:
    """With two brokers on one metadata store."""

    async def run() -> None:
        clock = StandingClock()
        store = LocalTree(clock.now_ms)
        async with TokenBroker(store, clock) as one, TokenBroker(store, clock) as other:
            await asyncio.wait_for(test(one, other), 30)

    asyncio.run(run())


def test_the_znode_and_the_notification_are_those_of_kafka_and_have_no_secret() -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        token = await one.create(KafkaPrincipal("User", "CN=alice,O=x"), renewers=(BOB,))
        node = await one.tree.get(f"/delegation_token/tokens/{token.token_id}")
        assert node is not None
        assert (
            node.data
            == (
                '{"issueTimestamp":1700000000000,"renewers":["User%3Abob"],"tokenRequester":"User%3ACN%3Dalice%2CO%3Dx",'
                f'"tokenId":"{token.token_id}","owner":"User%3ACN%3Dalice%2CO%3Dx","expiryTimestamp":1700000001000,'
                '"maxTimestamp":1700000007000,"version":3}'
            ).encode()
        )
        changes = await one.tree.children("/delegation_token/token_changes")
        assert changes is not None
        change = await one.tree.get(f"/delegation_token/token_changes/{changes.names[0]}")
        assert changes.names == ["token_change_0000000000"]
        assert change is not None
        assert change.data == token.token_id.encode()

    playing(test)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_versions_leave_out_who_requested_the_token(version: int) -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        token = await one.create(version=version)
        assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, ALICE.name, "")
        assert await one.describe(ALICE, version=version, everything=True) == (0, [token.token_id])
        assert (await one.create(listener="PLAINTEXT", version=version)).error_code == 64

    playing(test)


def test_the_hmac_follows_from_the_token_id_and_the_secret_key() -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        token = await one.create()
        assert token.hmac == hmac.new(SECRET.encode(), token.token_id.encode(), hashlib.sha512).digest()
        assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "alice", "alice")
        assert (token.issue_timestamp_ms, token.expiry_timestamp_ms, token.max_timestamp_ms) == (NOW, NOW + 1000, NOW + 7000)

    playing(test)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_is_a_scram_user_whose_password_is_the_hmac(mechanism: str) -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        token = await one.create(ALICE, owner=BOB)
        known = one.credentials.token(mechanism, token.token_id)
        assert known is not None
        password = base64.b64encode(token.hmac).decode()
        assert known.credential == ScramCredential.of_password(mechanism, password, known.credential.salt, 4096)
        assert (known.owner, known.expires_ms) == (BOB, NOW + 1000)
        assert one.credentials.user(mechanism, token.token_id) is None
        one.clock.wall_ms += 500
        await one.renew(token.hmac, BOB)
        renewed = one.credentials.token(mechanism, token.token_id)
        assert renewed is not None
        assert renewed.expires_ms == NOW + 1500

    playing(test)


def test_what_one_broker_writes_the_other_knows() -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        token = await one.create(renewers=(BOB,))
        one.clock.wall_ms += 900
        assert await other.renew(token.hmac, BOB) == (0, NOW + 1900)
        known = other.credentials.token("SCRAM-SHA-256", token.token_id)
        assert known is not None
        assert known.expires_ms == NOW + 1900
        assert await one.expire(token.hmac) == (0, NOW + 900)
        assert await other.renew(token.hmac) == (NOT_FOUND, 0)
        assert other.credentials.token("SCRAM-SHA-256", token.token_id) is None
        assert await other.tree.get(f"/delegation_token/tokens/{token.token_id}") is None

    playing(test)


def test_tokens_of_the_metadata_store_are_read_at_the_start() -> None:
    async def run() -> None:
        clock = StandingClock()
        store = LocalTree(clock.now_ms)
        async with TokenBroker(store, clock) as one:
            token = await one.create()
            await one.tree.create_recursive("/delegation_token/tokens/broken", b'{"version":9}')
        async with TokenBroker(store, clock) as again:
            assert again.credentials.token("SCRAM-SHA-512", token.token_id) is not None
            assert await again.describe(ALICE, everything=True) == (0, [token.token_id])
            assert (await again.renew(token.hmac))[0] == 0

    asyncio.run(run())


def test_a_broker_with_another_secret_key_does_not_accept_the_token() -> None:
    async def run() -> None:
        clock = StandingClock()
        store = LocalTree(clock.now_ms)
        async with TokenBroker(store, clock) as one, TokenBroker(store, clock, "another") as other:
            token = await one.create()
            assert (await other.renew(token.hmac))[0] == NOT_FOUND

    asyncio.run(run())


def test_the_controller_removes_expired_tokens() -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        expired, valid = await one.create(), await one.create()
        one.clock.wall_ms += 900
        await one.renew(valid.hmac)
        one.clock.wall_ms += 101
        assert (await one.renew(expired.hmac))[0] == EXPIRED
        await one.tokens.remove_expired()
        assert (await one.renew(expired.hmac))[0] == NOT_FOUND
        assert [token.information.token_id for token in one.tokens.tokens()] == [valid.token_id]
        assert await one.tree.get(f"/delegation_token/tokens/{expired.token_id}") is None

    playing(test)


def test_expiry_is_checked_at_the_interval_by_the_controller_alone() -> None:
    async def run() -> None:
        clock = StandingClock()
        store = LocalTree(clock.now_ms)
        async with TokenBroker(store, clock, check_interval_ms=1) as one, TokenBroker(store, clock) as other:
            other.is_controller = False
            token = await one.create()
            clock.wall_ms += 5000
            async with asyncio.timeout(60):
                while await one.tree.get(f"/delegation_token/tokens/{token.token_id}") is not None:
                    await asyncio.sleep(0.001)

    asyncio.run(run())


def test_an_owner_without_a_type_gets_no_token_and_leaves_none_behind() -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        assert (await one.create(ALICE, owner=KafkaPrincipal("", "carol"))).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
        children = await one.tree.children(paths.DELEGATION_TOKENS)
        assert children is not None and children.names == []

    playing(test)


@pytest.mark.parametrize("listener", ["PLAINTEXT", "SSL", "UNKNOWN"])
def test_a_client_that_has_not_proved_who_it_is_gets_no_token(listener: str) -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        token = await one.create()
        refused = await one.create(ANONYMOUS, listener=listener)
        assert (refused.error_code, refused.expiry_timestamp_ms, refused.token_id, refused.hmac) == (NOT_ALLOWED, -1, "", b"")
        assert await one.renew(token.hmac, ANONYMOUS, listener) == (NOT_ALLOWED, -1)
        assert await one.expire(token.hmac, -1, ANONYMOUS, listener) == (NOT_ALLOWED, -1)
        assert await one.describe(ANONYMOUS, everything=True, listener=listener) == (NOT_ALLOWED, [])

    playing(test)


def test_a_client_with_a_certificate_gets_a_token_and_one_with_a_token_does_not() -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        assert (await one.create(ALICE, listener="SSL")).error_code == 0
        assert (await one.create(ALICE, listener="SASL_PLAINTEXT")).error_code == 0
        assert (await one.create(ALICE, listener="SASL_SSL", is_token=True)).error_code == NOT_ALLOWED

    playing(test)


def test_a_token_for_another_owner_needs_create_tokens_on_that_user() -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        one.authorizer = Allowing((AclOperation.CREATE_TOKENS, "User:bob"))
        made = await one.create(ALICE, owner=BOB)
        assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "bob", "alice")
        refused = await one.create(ALICE, owner=CAROL, renewers=(KafkaPrincipal("Group", "g"),))
        assert (refused.error_code, refused.principal_name, refused.issue_timestamp_ms) == (NOT_AUTHORIZED, "carol", -1)
        assert (await one.create(ALICE, owner=ALICE)).error_code == 0
        assert (await one.create(ALICE, renewers=(KafkaPrincipal("Group", "g"),))).error_code == WRONG_TYPE

    playing(test)


def test_a_client_sees_its_own_tokens_and_those_that_acls_allow() -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        one.authorizer = Allowing((AclOperation.CREATE_TOKENS, "User:bob"))
        first = (await one.create(ALICE)).token_id
        one.clock.wall_ms += 1
        second = (await one.create(ALICE, owner=BOB)).token_id
        one.clock.wall_ms += 1
        third = (await one.create(CAROL, renewers=(BOB,))).token_id
        assert await one.describe(ALICE, everything=True) == (0, [first, second])
        assert await one.describe(BOB, everything=True) == (0, [second, third])
        assert await one.describe(BOB, CAROL) == (0, [third])
        assert await one.describe(BOB) == (0, [])
        one.authorizer = Allowing((AclOperation.DESCRIBE, first), (AclOperation.DESCRIBE_TOKENS, "User:bob"))
        assert await one.describe(CAROL, everything=True) == (0, [first, second, third])
        assert await one.describe(CAROL, ALICE) == (0, [first, second])
        one.authorizer = None
        assert await one.describe(KafkaPrincipal("User", "dave"), everything=True) == (0, [first, second, third])

    playing(test)


def test_only_owner_and_renewers_renew_and_expire() -> None:
    async def test(one: TokenBroker, other: TokenBroker) -> None:
        token = await one.create(ALICE, renewers=(BOB,))
        assert await one.renew(token.hmac, CAROL) == (OWNER_MISMATCH, 0)
        assert await one.expire(token.hmac, -1, CAROL) == (OWNER_MISMATCH, 0)
        assert await one.expire(token.hmac, 300, BOB) == (0, NOW + 300)
        assert await one.expire(b"another", -1, BOB) == (NOT_FOUND, 0)

    playing(test)


def test_without_a_secret_key_there_are_no_tokens() -> None:
    async def run() -> None:
        clock = StandingClock()
        store = LocalTree(clock.now_ms)
        async with TokenBroker(store, clock, secret=None) as broker:
            refused = await broker.create()
            assert (refused.error_code, refused.issue_timestamp_ms) == (DISABLED, 0)
            assert await broker.renew(b"") == (DISABLED, 0)
            assert await broker.expire(b"") == (DISABLED, 0)
            assert await broker.describe(ALICE, everything=True) == (DISABLED, [])
            assert await broker.tree.get("/delegation_token/token_changes") is None

    asyncio.run(run())


def test_no_secret_is_in_the_log_or_in_a_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def test(one: TokenBroker, other: TokenBroker) -> None:
        token = await one.create()
        await one.renew(token.hmac)
        known = one.credentials.token("SCRAM-SHA-256", token.token_id)
        text = caplog.text + repr(one.tokens.tokens()) + repr(known) + repr(vars(one.tokens)["_rules"])
        text += repr(TokenConfig(SECRET, TokenRules(1, 1), 1)) + repr(vars(one.credentials)["_token_passwords"])
        for secret in (SECRET, base64.b64encode(token.hmac).decode(), repr(token.hmac)[2:20], token.hmac.hex()):
            assert secret not in text
        assert token.token_id in caplog.text

    playing(test)
