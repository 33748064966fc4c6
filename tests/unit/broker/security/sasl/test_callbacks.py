"""Callback handlers: Python classes that know the users."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import ClassVar

import pytest

from barnabas.broker.security.sasl.callbacks import OAuthHandler, OAuthToken, PlainHandler, ScramHandler
from barnabas.client.network.sasl.scram import Scram as ScramClient
from barnabas.config_def import InvalidConfig
from barnabas.protocol import api_keys
from barnabas.protocol.framing import SIZE_PREFIX, request_frame
from barnabas.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from barnabas.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from barnabas.protocol.registry import APIS
from barnabas.security.scram import ScramCredential
from tests.unit.broker.handlers.asking import TIMEOUT_S
from tests.unit.broker.security.sasl.connecting import Client, Server

PREFIX = "listener.name.sasl_plaintext."
HANDLER = ".sasl.server.callback.handler.class"
HERE = __name__


class Directory(PlainHandler):
    configured: tuple[str, dict[str, str]] | None = None

    def configure(self, configs: Mapping[str, str], mechanism: str, jaas_options: Mapping[str, str]) -> None:
        Directory.configured = (mechanism, dict(jaas_options))

    def authenticate(self, username: str, password: str) -> bool:
        if username == "broken":
            raise OSError(f"no directory for {password}")
        return (username, password) == ("dave", "from the directory")


class Truthy(PlainHandler):
    def authenticate(self, username: str, password: str) -> bool:
        return "yes"  # type: ignore[return-value]


class Slow(PlainHandler):
    """Decides when a test lets it."""

    may_decide = threading.Event()
    asked: ClassVar[list[str]] = []

    def authenticate(self, username: str, password: str) -> bool:
        Slow.asked.append(username)
        return Slow.may_decide.wait(TIMEOUT_S)


class Vault(ScramHandler):
    def credential(self, username: str) -> ScramCredential | None:
        return ScramCredential.of_password("SCRAM-SHA-256", "vaulted", b"salt", 4096) if username == "erin" else None


class Provider(OAuthHandler):
    def validate(self, token: str) -> OAuthToken | None:
        return OAuthToken("frank", 1_005_000) if token == "good" else None


async def authenticate(client: Client, token: bytes) -> SaslAuthenticateResponse:
    return await client.ask(SaslAuthenticateRequest(token), SaslAuthenticateResponse, 2)


async def connected(mechanism: str, handler: str, **settings: str) -> Client:
    name = f"{PREFIX}{mechanism.lower()}{HANDLER}"
    client = Server({"sasl.enabled.mechanisms": mechanism, name: f"{HERE}.{handler}"} | settings).connect()
    await client.ask(SaslHandshakeRequest(mechanism), SaslHandshakeResponse, 1)
    return client


def no_class() -> None:
    raise AssertionError("a setting made the broker call a function")


def test_a_handler_of_plain_decides_about_passwords() -> None:
    async def run() -> None:
        client = await connected("PLAIN", "Directory")
        assert (await authenticate(client, b"\0dave\0from the directory")).error_code == 0
        assert client.session.principal.name == "dave"
        client = await connected("PLAIN", "Directory")
        assert (await authenticate(client, b"\0alice\0secret")).error_message == "Authentication failed: Invalid username or password"

    asyncio.run(run())


def test_a_handler_gets_the_options_of_the_jaas_text() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required server="ldap://directory";'

    async def run() -> None:
        Server(
            {
                "sasl.enabled.mechanisms": "PLAIN",
                f"{PREFIX}plain{HANDLER}": f"{HERE}.Directory",
                f"{PREFIX}plain.sasl.jaas.config": jaas,
            }
        )

    asyncio.run(run())
    assert Directory.configured == ("PLAIN", {"server": "ldap://directory"})


def test_a_handler_that_fails_lets_nobody_in_and_its_text_goes_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        response = await authenticate(await connected("PLAIN", "Directory"), b"\0broken\0my password")
        assert response == SaslAuthenticateResponse(58, "Authentication failed: credentials for user could not be verified")

    asyncio.run(run())
    assert "my password" not in caplog.text
    assert "OSError" in caplog.text


def test_clients_that_wait_for_a_slow_handler_take_no_place_in_the_queue_of_requests() -> None:
    """Otherwise clients without credentials could keep the requests of all others waiting. One that has gone is not asked about."""

    async def run() -> None:
        Slow.may_decide.clear()
        Slow.asked.clear()
        server = Server({"sasl.enabled.mechanisms": "PLAIN", f"{PREFIX}plain{HANDLER}": f"{HERE}.Slow"})
        clients = [server.connect() for _ in range(3)]
        exchanges = []
        for client, user in zip(clients, ("one", "gone", "two"), strict=True):
            await client.ask(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse, 1)
            request = SaslAuthenticateRequest(f"\0{user}\0secret".encode())
            api = APIS[api_keys.SASL_AUTHENTICATE]
            exchanges.append(client.begin(b"".join(request_frame(request, api, 2, 17, "test"))[SIZE_PREFIX:]))
        await asyncio.sleep(0)
        assert [client.requests_in_queue for client in clients] == [0, 0, 0]
        exchanges[1].abandon()
        Slow.may_decide.set()
        for exchange in exchanges:
            while exchange.response is None:
                await asyncio.sleep(0.001)
        assert Slow.asked == ["one", "two"]
        assert [client.is_authenticated for client in clients] == [True, False, True]

    asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))


def test_only_true_is_a_yes() -> None:
    async def run() -> None:
        assert (await authenticate(await connected("PLAIN", "Truthy"), b"\0alice\0secret")).error_code == 58

    asyncio.run(run())


def test_a_handler_of_scram_has_the_credentials() -> None:
    async def run() -> None:
        client, scram = await connected("SCRAM-SHA-256", "Vault"), ScramClient("SCRAM-SHA-256", "erin", "vaulted")
        token: bytes | None = scram.begin()
        while token is not None:
            token = scram.answer((await authenticate(client, token)).auth_bytes)
        assert client.session.principal.name == "erin"

    asyncio.run(run())


def test_a_handler_of_oauthbearer_checks_tokens() -> None:
    async def run() -> None:
        client = await connected("OAUTHBEARER", "Provider")
        response = await authenticate(client, b"n,,\x01auth=Bearer good\x01\x01")
        assert (response.error_code, response.session_lifetime_ms) == (0, 5000)
        assert client.session.principal.name == "frank"
        client = await connected("OAUTHBEARER", "Provider")
        assert (await authenticate(client, b"n,,\x01auth=Bearer bad\x01\x01")).auth_bytes == b'{"status":"invalid_token"}'

    asyncio.run(run())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no.such.module.Handler", "no Python class can be made of it"),
        (f"{HERE}.Missing", "no Python class can be made of it"),
        (f"{HERE}.Vault", "the class must derive from barnabas.broker.security.sasl.callbacks.PlainHandler"),
        ("builtins.dict", "the class must derive from"),
        (f"{HERE}.no_class", "the class must derive from"),
        ("Handler", "no Python class can be made of it"),
    ],
)
def test_a_handler_that_cannot_be_made_stops_the_start(name: str, text: str) -> None:
    async def run() -> None:
        Server({"sasl.enabled.mechanisms": "PLAIN", f"{PREFIX}plain{HANDLER}": name})

    with pytest.raises(InvalidConfig, match=f"{PREFIX}plain{HANDLER}") as refused:
        asyncio.run(run())
    assert text in str(refused.value)


def test_kafkas_own_handler_is_the_one_of_the_broker() -> None:
    async def run() -> None:
        name = "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler"
        client = Server({f"{PREFIX}plain{HANDLER}": name}).connect()
        await client.ask(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse, 1)
        assert (await authenticate(client, b"\0alice\0secret")).error_code == 0

    asyncio.run(run())
