"""The wall clock of the broker is set while clients are connected. Sessions last as long as was promised to the client, measured by the
monotonic clock; credentials with a date are compared with the clock as it is now. No step lets in a client that was refused before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from barnabas.broker.security.session import RenewableSession
from barnabas.client.network.sasl.oauthbearer import OAuthBearer as OAuthClient
from barnabas.client.network.sasl.scram import Scram as ScramClient
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX, request_frame
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from barnabas.protocol.registry import APIS
from barnabas.security.principal import KafkaPrincipal
from barnabas.security.scram import ScramCredential
from tests.unit.broker.security.sasl.connecting import Client, Server
from tests.unit.broker.security.sasl.oauthbearer.tokens import NOW_MS, jwks, rsa_jwk, signed

DAY_MS = 86_400_000
STEPS = [DAY_MS, -DAY_MS, 365 * DAY_MS, -365 * DAY_MS]
SCRAM = "SCRAM-SHA-256"
ALICE = KafkaPrincipal("User", "alice")


def with_server(test: Callable[[Server], Awaitable[None]], settings: dict[str, str]) -> None:
    async def run() -> None:
        server = Server(settings)
        server.clock.ms = NOW_MS
        salt = b"a salt of the test"
        server.credentials.set_user(SCRAM, "alice", ScramCredential.of_password(SCRAM, "secret", salt, 4096))
        await server.sasl.start()
        try:
            await test(server)
        finally:
            await server.sasl.close()

    asyncio.run(run())


async def handshake(client: Client, mechanism: str) -> None:
    assert (await client.ask(SaslHandshakeRequest(mechanism), SaslHandshakeResponse, 1)).error_code == ErrorCode.NONE


async def authenticate(client: Client, token: bytes) -> SaslAuthenticateResponse:
    return await client.ask(SaslAuthenticateRequest(token), SaslAuthenticateResponse, 2)


async def with_password(client: Client, between: Callable[[], None] = lambda: None) -> SaslAuthenticateResponse:
    """SCRAM as alice. `between` is called after the first message."""
    return await _scram(client, ScramClient(SCRAM, "alice", "secret"), between)


async def with_delegation_token(client: Client, between: Callable[[], None] = lambda: None) -> SaslAuthenticateResponse:
    return await _scram(client, ScramClient(SCRAM, "token-1", "hmac", token_auth=True), between)


async def _scram(client: Client, scram: ScramClient, between: Callable[[], None]) -> SaslAuthenticateResponse:
    await handshake(client, SCRAM)
    first = await authenticate(client, scram.begin())
    between()
    final = scram.answer(first.auth_bytes)
    assert final is not None
    return await authenticate(client, final)


async def with_jwt(client: Client, token: str) -> SaslAuthenticateResponse:
    await handshake(client, "OAUTHBEARER")
    return await authenticate(client, OAuthClient(token).begin())


async def is_served(client: Client) -> bool:
    api = APIS[api_keys.API_VERSIONS]
    frame = b"".join(request_frame(ApiVersionsRequest("test", "1.0"), api, 3, 17, "test"))[SIZE_PREFIX:]
    response = await client.send(frame)
    assert client.is_open is bool(response)
    return client.is_open


def of_jwks(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "keys.json"
    path.write_bytes(jwks(rsa_jwk("one")))
    return {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": path.as_uri(),
        "sasl.oauthbearer.expected.issuer": "https://issuer",
        "sasl.oauthbearer.expected.audience": "kafka",
    }


@pytest.mark.parametrize("step_ms", STEPS)
def test_a_step_neither_ends_nor_prolongs_a_session(step_ms: int) -> None:
    """connections.max.reauth.ms, with a password."""

    async def test(server: Server) -> None:
        client = server.connect()
        assert (await with_password(client)).session_lifetime_ms == 5000
        server.clock.step_ms = step_ms
        server.clock.ms += 5000
        assert await is_served(client)
        server.clock.ms += 1
        assert not await is_served(client)

    with_server(test, {"connections.max.reauth.ms": "5000"})


@pytest.mark.parametrize("step_ms", STEPS)
def test_a_session_is_renewed_after_a_step_for_the_same_time(step_ms: int) -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        await with_password(client)
        server.clock.ms += 4000
        server.clock.step_ms = step_ms
        assert (await with_password(client)).session_lifetime_ms == 5000
        assert type(client.session) is RenewableSession
        assert client.session.expires_ms == server.clock.ms + 5000

    with_server(test, {"connections.max.reauth.ms": "5000"})


@pytest.mark.parametrize("step_ms", STEPS)
def test_a_step_within_the_exchange_does_not_change_the_time_of_a_password(step_ms: int) -> None:
    async def test(server: Server) -> None:
        client = server.connect()

        def step() -> None:
            server.clock.step_ms = step_ms

        assert (await with_password(client, step)).session_lifetime_ms == 5000

    with_server(test, {"connections.max.reauth.ms": "5000"})


@pytest.mark.parametrize("step_ms", STEPS)
def test_a_session_with_a_jwt_lasts_as_long_as_the_token_had_left(tmp_path: Path, step_ms: int) -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        assert (await with_jwt(client, signed())).session_lifetime_ms == 60_000
        server.clock.step_ms = step_ms
        server.clock.ms += 60_000
        assert await is_served(client)
        server.clock.ms += 1
        assert not await is_served(client)

    with_server(test, of_jwks(tmp_path))


def test_a_jwt_that_has_expired_by_the_stepped_clock_opens_no_session_and_renews_none(tmp_path: Path) -> None:
    async def test(server: Server) -> None:
        client, other = server.connect(), server.connect()
        await with_jwt(client, signed())
        server.clock.step_ms = DAY_MS
        for refused in (client, other):
            assert b"invalid_token" in (await with_jwt(refused, signed())).auth_bytes
        assert other.session is None or not other.is_authenticated

    with_server(test, of_jwks(tmp_path))


def test_a_clock_that_is_set_back_makes_a_jwt_one_of_the_future_instead_of_a_longer_session(tmp_path: Path) -> None:
    async def test(server: Server) -> None:
        server.clock.step_ms = -DAY_MS
        client = server.connect()
        assert b"invalid_token" in (await with_jwt(client, signed())).auth_bytes
        assert not client.is_authenticated

    with_server(test, of_jwks(tmp_path))


@pytest.mark.parametrize("step_ms", STEPS)
def test_a_session_with_a_delegation_token_lasts_as_long_as_the_token_had_left(step_ms: int) -> None:
    async def test(server: Server) -> None:
        server.credentials.set_token_password("token-1", "hmac", ALICE, NOW_MS + 60_000)
        client = server.connect()
        assert (await with_delegation_token(client)).session_lifetime_ms == 60_000
        server.clock.step_ms = step_ms
        server.clock.ms += 60_000
        assert await is_served(client)
        server.clock.ms += 1
        assert not await is_served(client)

    with_server(test, {})


def test_a_delegation_token_that_has_expired_by_the_stepped_clock_is_refused() -> None:
    async def test(server: Server) -> None:
        server.credentials.set_token_password("token-1", "hmac", ALICE, NOW_MS + 60_000)
        server.clock.step_ms = DAY_MS
        client = server.connect()
        assert (await with_delegation_token(client)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert not client.is_authenticated

    with_server(test, {})


def test_a_delegation_token_that_expires_by_a_step_within_the_exchange_gives_a_session_of_no_time() -> None:
    async def test(server: Server) -> None:
        server.credentials.set_token_password("token-1", "hmac", ALICE, NOW_MS + 60_000)
        client = server.connect()

        def step() -> None:
            server.clock.step_ms = DAY_MS

        await with_delegation_token(client, step)
        server.clock.ms += 1
        assert not await is_served(client)

    with_server(test, {})


@pytest.mark.parametrize("step_ms", STEPS)
def test_a_step_does_not_let_a_client_renew_more_often(step_ms: int) -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        await with_password(client)
        await with_password(client)
        server.clock.step_ms = step_ms
        server.clock.ms += 999
        response = await client.ask(SaslHandshakeRequest(SCRAM), SaslHandshakeResponse, 1)
        assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE

    with_server(test, {"connections.max.reauth.ms": "5000"})
