"""The exchange of OAUTHBEARER, and the settings without which it does not start."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.broker.security.sasl.callbacks import OAuthToken
from barnabas.broker.security.sasl.mechanism import SaslFailure
from barnabas.broker.security.sasl.oauthbearer.oauthbearer import OAuthBearer
from barnabas.client.network.sasl.oauthbearer import OAuthBearer as Client
from barnabas.config_def import InvalidConfig
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from barnabas.security.errors import SaslAuthentication
from tests.unit.broker.security.sasl.connecting import Server
from tests.unit.broker.security.sasl.oauthbearer.tokens import NOW_MS, jwks, rsa_jwk, signed

INVALID = b'{"status":"invalid_token"}'


class OneToken:
    def validate(self, token: str) -> OAuthToken | None:
        return OAuthToken("alice", 5) if token == "good" else None


def test_a_valid_token_authenticates_its_subject_and_extensions_are_ignored() -> None:
    exchange = OAuthBearer(OneToken()).begin()
    assert exchange.evaluate(Client("good", {"traceId": "123"}).begin()) == b""
    assert (exchange.is_complete, exchange.authorization_id, exchange.credential_expires_ms) == (True, "alice", 5)


def test_an_invalid_token_is_answered_with_a_status_and_then_an_error() -> None:
    exchange = OAuthBearer(OneToken()).begin()
    assert exchange.evaluate(Client("bad").begin()) == INVALID
    with pytest.raises(SaslAuthentication, match="invalid_token"):
        exchange.evaluate(b"\x01")
    assert not exchange.is_complete


def test_a_second_token_is_not_tried_on_the_same_connection() -> None:
    exchange = OAuthBearer(OneToken()).begin()
    exchange.evaluate(Client("bad").begin())
    with pytest.raises(SaslAuthentication):
        exchange.evaluate(Client("good").begin())
    assert not exchange.is_complete


def test_an_authorization_id_that_is_not_the_subject_is_refused() -> None:
    """CVE-2017-12610."""
    assert OAuthBearer(OneToken()).begin().evaluate(b"n,a=alice,\x01auth=Bearer good\x01\x01") == b""
    with pytest.raises(SaslAuthentication, match="different from the token's principal name"):
        OAuthBearer(OneToken()).begin().evaluate(b"n,a=admin,\x01auth=Bearer good\x01\x01")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"p=x,,\x01auth=Bearer good\x01\x01",
        b"\xff",
    ],
)
def test_a_message_that_cannot_be_read_is_refused(message: bytes) -> None:
    with pytest.raises(SaslFailure):
        OAuthBearer(OneToken()).begin().evaluate(message)


def settings(**changes: str) -> dict[str, str]:
    """An empty text removes a setting."""
    given = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": "https://issuer/keys",
        "sasl.oauthbearer.expected.issuer": "https://issuer",
        "sasl.oauthbearer.expected.audience": "kafka",
        "barnabas.sasl.oauthbearer.allowed.urls": "https://issuer/keys",
    } | changes
    return {name: value for name, value in given.items() if value}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"sasl.oauthbearer.jwt.validator.class": "com.example.Strict"}, "com.example.Strict, which is not loaded here"),
        ({"sasl.oauthbearer.jwks.endpoint.url": ""}, r"has no keys to check tokens with: set sasl\.oauthbearer\.jwks\.endpoint\.url"),
        ({"sasl.oauthbearer.expected.issuer": ""}, r"without sasl\.oauthbearer\.expected\.issuer"),
        ({"sasl.oauthbearer.expected.audience": ""}, r"without sasl\.oauthbearer\.expected\.audience"),
        ({"barnabas.sasl.oauthbearer.allowed.urls": ""}, r"is not in barnabas\.sasl\.oauthbearer\.allowed\.urls"),
        ({"barnabas.sasl.oauthbearer.unsigned.tokens.allowed": "true"}, "with which anybody can write a token"),
        (
            {
                "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": (
                    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
                )
            },
            "no Python class can be made of it",
        ),
    ],
)
def test_a_listener_that_could_not_check_tokens_stops_the_start(changes: dict[str, str], text: str) -> None:
    async def run() -> None:
        Server(settings(**changes))

    with pytest.raises(InvalidConfig, match=text):
        asyncio.run(run())


def test_the_session_ends_with_the_token(tmp_path: Path) -> None:
    async def run() -> None:
        path = tmp_path / "keys.json"
        path.write_bytes(jwks(rsa_jwk("one")))
        server = Server(settings(**{"sasl.oauthbearer.jwks.endpoint.url": path.as_uri()}))
        server.clock.ms = NOW_MS
        await server.sasl.start()
        client = server.connect()
        await client.ask(SaslHandshakeRequest("OAUTHBEARER"), SaslHandshakeResponse, 1)
        response = await client.ask(SaslAuthenticateRequest(Client(signed()).begin()), SaslAuthenticateResponse, 2)
        assert response.session_lifetime_ms == 60_000
        assert client.session.expires_ms == NOW_MS + 60_000
        await server.sasl.close()

    asyncio.run(run())
