"""The authentication of a connection, as a client sees it: which requests are answered how, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from barnabas.broker.quotas.client_quota_callback import DEFAULT
from barnabas.broker.security.sasl.exchange import SaslExchange
from barnabas.broker.security.sasl.plain import Plain, Users
from barnabas.broker.security.sasl.steps import Fail, Respond
from barnabas.broker.security.session import RenewableSession, Session
from barnabas.client.network.sasl.scram import Scram as ScramClient
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX, request_frame
from barnabas.protocol.message import serialize
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.api_versions_response import ApiVersionsResponse
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from barnabas.protocol.registry import APIS
from barnabas.security.principal import KafkaPrincipal
from barnabas.security.scram import ScramCredential
from tests.unit.broker.security.sasl.connecting import Client, Server

GOOD = b"\0alice\0secret"
VERSIONS = ApiVersionsRequest("test", "1.0")
ALICE = KafkaPrincipal("User", "alice")


def with_server(test: Callable[[Server], Awaitable[None]], **settings: str) -> None:
    async def run() -> None:
        await test(Server({name.replace("_", "."): value for name, value in settings.items()}))

    asyncio.run(run())


async def handshake(client: Client, mechanism: str = "PLAIN", version: int = 1) -> SaslHandshakeResponse:
    return await client.ask(SaslHandshakeRequest(mechanism), SaslHandshakeResponse, version)


async def authenticate(client: Client, token: bytes = GOOD, version: int = 2) -> SaslAuthenticateResponse:
    return await client.ask(SaslAuthenticateRequest(token), SaslAuthenticateResponse, version)


async def a_client(server: Server) -> Client:
    client = server.connect()
    await handshake(client)
    assert (await authenticate(client)).error_code == ErrorCode.NONE
    return client


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_authenticates_after_api_versions_and_handshake(version: int) -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        assert (await client.ask(VERSIONS, ApiVersionsResponse, 3)).error_code == ErrorCode.NONE
        assert await handshake(client) == SaslHandshakeResponse(0, ["PLAIN", "SCRAM-SHA-256"])
        assert not client.is_authenticated
        assert await authenticate(client, version=version) == SaslAuthenticateResponse(0, "", b"", 0)
        assert client.is_authenticated
        assert type(client.session) is Session
        assert (client.session.principal, client.session.mechanism, client.session.host) == (ALICE, "PLAIN", "127.0.0.1")
        assert (await client.ask(VERSIONS, ApiVersionsResponse, 3)).error_code == ErrorCode.NONE

    with_server(test)


def test_a_quota_on_the_time_of_requests_does_not_count_a_client_that_has_no_principal_yet() -> None:
    """One such quota, of any user, must not keep those out that begin with ApiVersions."""

    async def test(server: Server) -> None:
        server.broker.quotas.quota_changed(None, DEFAULT, {"request_percentage": 0.001})
        client = server.connect()
        response = await client.ask(VERSIONS, ApiVersionsResponse, 3)
        assert (response.error_code, response.throttle_time_ms) == (ErrorCode.NONE, 0)
        await handshake(client)
        assert (await authenticate(client)).error_code == ErrorCode.NONE

    with_server(test)


def test_scram_takes_two_rounds() -> None:
    async def test(server: Server) -> None:
        server.credentials.set_user("SCRAM-SHA-256", "carol", ScramCredential.of_password("SCRAM-SHA-256", "pw", b"salt", 4096))
        client, scram = server.connect(), ScramClient("SCRAM-SHA-256", "carol", "pw")
        await handshake(client, "SCRAM-SHA-256")
        token: bytes | None = scram.begin()
        while token is not None:
            token = scram.answer((await authenticate(client, token)).auth_bytes)
        assert client.session.principal == KafkaPrincipal("User", "carol")

    with_server(test)


def test_after_handshake_version_0_tokens_have_no_header() -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        await handshake(client, version=0)
        assert await client.send(GOOD) == b""
        assert client.is_open
        assert client.session.principal == ALICE

    with_server(test)


def test_a_wrong_token_without_header_closes_the_connection() -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        await handshake(client, version=0)
        assert await client.send(b"\0alice\0wrong") == b""
        assert not client.is_open
        assert not client.is_authenticated

    with_server(test)


@pytest.mark.parametrize("token", [b"\0alice\0wrong", b"\0eve\0secret"])
def test_a_wrong_password_is_answered_with_kafkas_text_and_closes(token: bytes) -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        await handshake(client)
        response = await authenticate(client, token)
        assert response == SaslAuthenticateResponse(58, "Authentication failed: Invalid username or password")
        assert not client.is_open
        assert (server.sasl.by_name["SASL_PLAINTEXT"].failed, client.is_authenticated) == (1, False)

    with_server(test)


@pytest.mark.parametrize("user", ["carol", "nobody"])
def test_a_wrong_scram_password_gets_a_text_that_says_nothing_about_the_user(user: str) -> None:
    async def test(server: Server) -> None:
        server.credentials.set_user("SCRAM-SHA-256", "carol", ScramCredential.of_password("SCRAM-SHA-256", "pw", b"salt", 4096))
        client, scram = server.connect(), ScramClient("SCRAM-SHA-256", user, "wrong")
        await handshake(client, "SCRAM-SHA-256")
        final = scram.answer((await authenticate(client, scram.begin())).auth_bytes)
        assert final is not None
        text = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
        assert await authenticate(client, final) == SaslAuthenticateResponse(58, text)
        assert not client.is_open

    with_server(test)


@pytest.mark.parametrize("mechanism", ["GSSAPI", "plain", "", "x" * 1000])
def test_an_unknown_mechanism_is_answered_with_those_of_the_listener(mechanism: str) -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        assert await handshake(client, mechanism) == SaslHandshakeResponse(33, ["PLAIN", "SCRAM-SHA-256"])
        assert not client.is_open

    with_server(test)


def frame_of(message: Any, key: int, version: int) -> bytes:
    return b"".join(request_frame(message, APIS[key], version, 17, "test"))[SIZE_PREFIX:]


@pytest.mark.parametrize(
    "frame",
    [
        frame_of(MetadataRequest([]), api_keys.METADATA, 12),
        frame_of(SaslAuthenticateRequest(GOOD), api_keys.SASL_AUTHENTICATE, 2),
        b"",
        b"\x60\x82\x01\x00 a token of GSSAPI",
        b"\x00\x00",
    ],
)
def test_anything_else_before_the_handshake_closes_the_connection(frame: bytes) -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        assert await client.send(frame) == b""
        assert not client.is_open

    with_server(test)


def test_api_versions_is_answered_once_and_again_only_after_an_unsupported_version() -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        newer = serialize(RequestHeader(api_keys.API_VERSIONS, 99, 17, "test"), 2)
        assert await client.send(newer)
        assert (await client.ask(VERSIONS, ApiVersionsResponse, 3)).error_code == ErrorCode.NONE
        assert await client.send(frame_of(VERSIONS, api_keys.API_VERSIONS, 3)) == b""
        assert not client.is_open

    with_server(test)


def test_another_request_during_the_exchange_is_an_illegal_state() -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        await handshake(client)
        assert (await client.ask(HeartbeatRequest("group"), HeartbeatResponse, 4)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert not client.is_open

    with_server(test)


def test_metadata_during_the_exchange_is_an_illegal_state_for_each_topic() -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        await handshake(client)
        response = await client.ask(MetadataRequest([MetadataRequestTopic(name="a"), MetadataRequestTopic(name="b")]), MetadataResponse, 12)
        assert [(topic.name, topic.error_code) for topic in response.topics] == [(name, ErrorCode.ILLEGAL_SASL_STATE) for name in "ab"]
        assert not client.is_open

    with_server(test)


def test_sasl_requests_after_authentication_are_an_illegal_state() -> None:
    async def test(server: Server) -> None:
        client = await a_client(server)
        assert await handshake(client) == SaslHandshakeResponse(34)
        text = "SaslAuthenticate request received after successful authentication"
        assert await authenticate(client) == SaslAuthenticateResponse(34, text)
        assert client.is_open

    with_server(test)


def test_a_request_that_cannot_be_read_after_the_handshake_closes_the_connection() -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        await handshake(client)
        assert await client.send(b"\xff" * 30) == b""
        assert not client.is_open

    with_server(test)


def test_the_answer_to_a_failure_is_held_back_for_the_delay() -> None:
    async def test(server: Server) -> None:
        listener = server.sasl.by_name["SASL_PLAINTEXT"]
        delays: list[float] = []

        def call_later(delay: float, callback: Callable[[], None]) -> None:
            delays.append(delay)
            callback()

        listener._call_later = call_later
        client = server.connect()
        await handshake(client)
        assert (await authenticate(client, b"\0alice\0wrong")).error_code == 58
        assert delays == [0.1]

    with_server(test, connection_failed_authentication_delay_ms="100")


# Re-authentication


def test_a_session_that_expires_has_its_lifetime_in_the_response() -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        await handshake(client)
        assert (await authenticate(client)).session_lifetime_ms == 5000
        assert type(client.session) is RenewableSession
        assert client.session.expires_ms == server.clock.monotonic_ms() + 5000

    with_server(test, connections_max_reauth_ms="5000")


def test_a_client_renews_its_session_on_the_same_connection() -> None:
    async def test(server: Server) -> None:
        client = await a_client(server)
        server.clock.ms += 5001  # also a session that has expired is renewed
        before = client.session
        assert (await handshake(client)).error_code == ErrorCode.NONE
        assert client.session is before  # requests that are in process keep the identity
        assert (await authenticate(client)).session_lifetime_ms == 5000
        assert client.session.expires_ms == server.clock.ms + 5000
        assert (await client.ask(VERSIONS, ApiVersionsResponse, 3)).error_code == ErrorCode.NONE

    with_server(test, connections_max_reauth_ms="5000")


def test_the_first_request_after_the_session_has_expired_closes_the_connection() -> None:
    async def test(server: Server) -> None:
        client = await a_client(server)
        server.clock.ms += 5000
        assert (await client.ask(VERSIONS, ApiVersionsResponse, 3)).error_code == ErrorCode.NONE
        server.clock.ms += 1
        assert await client.send(frame_of(VERSIONS, api_keys.API_VERSIONS, 3)) == b""
        assert not client.is_open

    with_server(test, connections_max_reauth_ms="5000")


def test_another_principal_cannot_take_over_the_connection() -> None:
    async def test(server: Server) -> None:
        client = await a_client(server)
        await handshake(client)
        text = "Cannot change principals during re-authentication from User.alice: User.bob"
        assert await authenticate(client, b"\0bob\0other") == SaslAuthenticateResponse(58, text)
        assert client.session.principal == ALICE
        assert not client.is_open

    with_server(test, connections_max_reauth_ms="5000")


def test_another_mechanism_cannot_renew_the_session() -> None:
    async def test(server: Server) -> None:
        client = await a_client(server)
        assert (await handshake(client, "SCRAM-SHA-256")).error_code == ErrorCode.NONE
        assert await client.send(frame_of(SaslAuthenticateRequest(b"n,,n=alice,r=x"), api_keys.SASL_AUTHENTICATE, 2)) == b""
        assert not client.is_open

    with_server(test, connections_max_reauth_ms="5000")


def test_other_requests_during_a_re_authentication_close_the_connection() -> None:
    async def test(server: Server) -> None:
        client = await a_client(server)
        await handshake(client)
        assert (await client.ask(HeartbeatRequest("group"), HeartbeatResponse, 4)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert not client.is_open

    with_server(test, connections_max_reauth_ms="5000")


def test_a_second_re_authentication_within_a_second_is_an_illegal_state() -> None:
    async def test(server: Server) -> None:
        client = await a_client(server)
        await handshake(client)
        await authenticate(client)
        server.clock.ms += 999
        assert (await handshake(client)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        server.clock.ms += 1
        assert (await handshake(client)).error_code == ErrorCode.NONE

    with_server(test, connections_max_reauth_ms="5000")


def test_the_lifetime_of_a_mechanism_replaces_that_of_the_listener() -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        await handshake(client)
        assert (await authenticate(client)).session_lifetime_ms == 7000

    settings = {"connections.max.reauth.ms": "5000", "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "7000"}

    async def run() -> None:
        await test(Server(settings))

    asyncio.run(run())


def test_a_connection_of_a_listener_that_nobody_authenticates_is_closed() -> None:
    async def test(server: Server) -> None:
        client = server.connect()
        client.listener_name = "OTHER"
        with pytest.raises(Exception, match="no authentication"):
            await client.send(frame_of(VERSIONS, api_keys.API_VERSIONS, 3))

    with_server(test)


def test_an_authentication_that_has_failed_does_not_begin_again() -> None:
    exchange = SaslExchange({"PLAIN": Plain(Users({"alice": "secret"}, b"key"))})
    assert isinstance(exchange.receive(of_handshake("SCRAM-SHA-256")), Fail)
    assert isinstance(exchange.receive(of_handshake("PLAIN")), Fail)
    other = SaslExchange({"PLAIN": Plain(Users({"alice": "secret"}, b"key"))})
    assert isinstance(other.receive(of_handshake("PLAIN")), Respond)


def of_handshake(mechanism: str) -> bytes:
    header = RequestHeader(api_keys.SASL_HANDSHAKE, 1, 1, "test")
    return serialize(header, 1) + serialize(SaslHandshakeRequest(mechanism), 1)
