"""Where tokens of OAUTHBEARER come from, and when the next one is got."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

from barnabas.client.errors import SaslAuthentication
from barnabas.client.network.sasl import authenticator
from barnabas.client.network.sasl.tokens import Token, TokenLogin, token_of, token_source
from barnabas.config_def import InvalidConfig
from tests.client_network import config_of, on_loop
from tests.unit.client.clocks import ManualClock

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SECOND = 1000


def settings(**given: object) -> dict[str, object]:
    named = {name.replace("_", "."): value for name, value in given.items()}
    base = {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.retry.backoff.ms": 1,
    }
    return base | named


def login(clock: ManualClock, source: Any, **given: object) -> TokenLogin:
    config = config_of(settings(sasl_login_callback_handler_class=source, **given))
    return TokenLogin(config, token_source(config, clock), clock, Random(1))


def jwt(**claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"head.{body}.sign"


class Source:
    """Gives tokens that last a while, and counts them."""

    def __init__(self, clock: ManualClock, life_ms: int, failures: int = 0) -> None:
        self.clock, self.life_ms, self.failures, self.count = clock, life_ms, failures, 0

    async def __call__(self) -> Token:
        self.count += 1
        if self.failures:
            self.failures -= 1
            raise OSError("not now")
        now_ms = self.clock.now_ms()
        return Token(f"token-{self.count}", now_ms + self.life_ms, now_ms)


def test_a_token_is_kept_until_most_of_its_life_is_over() -> None:
    async def run() -> None:
        clock = ManualClock()
        source = Source(clock, 3600 * SECOND)
        kept = login(clock, source)
        assert await kept.token() == "token-1"
        clock.advance(int(0.79 * 3600 * SECOND))
        assert await kept.token() == "token-1" and source.count == 1
        clock.advance(int(0.07 * 3600 * SECOND))
        assert await kept.token() == "token-1", "the old one still serves while the next is got"
        while await kept.token() != "token-2":
            await asyncio.sleep(0)
        assert source.count == 2

    on_loop(run)


def test_a_token_that_has_ended_is_waited_for() -> None:
    async def run() -> None:
        clock = ManualClock()
        kept = login(clock, Source(clock, 10 * SECOND))
        assert await kept.token() == "token-1"
        clock.advance(10 * SECOND)
        assert await kept.token() == "token-2"

    on_loop(run)


def test_a_source_that_fails_is_asked_again_and_then_given_up() -> None:
    async def run() -> None:
        clock = ManualClock()
        assert await login(clock, Source(clock, SECOND, failures=2)).token() == "token-3"
        with pytest.raises(SaslAuthentication, match="not now"):
            await login(clock, Source(clock, SECOND, failures=99)).token()

    on_loop(run)


def test_tokens_as_text_with_an_expiry_and_as_jwt() -> None:
    async def run() -> None:
        clock = ManualClock(0)
        assert await login(clock, lambda: jwt(exp=100, iat=0)).token() == jwt(exp=100, iat=0)
        assert await login(clock, lambda: ("opaque", 100.0)).token() == "opaque"
        with pytest.raises(InvalidConfig):
            await login(clock, lambda: 5).token()

    on_loop(run)
    assert token_of(jwt(exp=100, iat=1.5)) == Token(jwt(exp=100, iat=1.5), 100_000, 1500)
    assert token_of("opaque\n") == Token("opaque")
    assert token_of("a.b.c") == Token("a.b.c")
    assert "opaque" not in repr(token_of("opaque"))


def test_a_token_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{jwt(exp=100)}\n")

    async def run() -> None:
        clock = ManualClock(0)
        config = config_of(settings(sasl_oauthbearer_token_endpoint_url=f"file://{tmp_path}/token"))
        assert (await token_source(config, clock)()).expires_ms == 100_000

    on_loop(run)


def test_an_unsigned_token_for_tests_and_extensions() -> None:
    async def run() -> None:
        jaas = f'{MODULE} required unsecuredLoginStringClaim_sub="alice" unsecuredLoginLifetimeSeconds="60" extension_pool="a";'
        config = config_of(settings(sasl_jaas_config=jaas))
        clock = ManualClock(5000)
        token = await token_source(config, clock)()
        head, claims, signature = token.value.split(".")
        assert json.loads(base64.urlsafe_b64decode(claims + "==")) == {"sub": "alice", "iat": 5.0, "exp": 65.0}
        assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "none"} and signature == ""
        assert token.expires_ms == 65_000
        assert TokenLogin(config, token_source(config, clock), clock).extensions == {"pool": "a"}

    on_loop(run)


class Endpoint(BaseHTTPRequestHandler):
    """Answers as the test's server says, and keeps what it was asked."""

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append((self.headers.get("Authorization"), asked))  # type: ignore[attr-defined]
        code, body = self.server.answers.pop(0)  # type: ignore[attr-defined]
        self.send_response(code)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def endpoint(*answers: tuple[int, str]) -> Generator[Any, None, None]:
    server: Any = HTTPServer(("127.0.0.1", 0), Endpoint)
    server.answers, server.asked = list(answers), []
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def from_endpoint(server: Any, **given: object) -> str:
    credentials = {
        "sasl_oauthbearer_client_credentials_client_id": "me:1",
        "sasl_oauthbearer_client_credentials_client_secret": "my secret",
    }
    url = f"http://127.0.0.1:{server.server_port}/token"
    config = config_of(settings(sasl_oauthbearer_token_endpoint_url=url, **credentials | given))
    clock = ManualClock(0)
    return on_loop(TokenLogin(config, token_source(config, clock), clock).token)


def test_the_client_credentials_grant() -> None:
    with endpoint((200, json.dumps({"access_token": jwt(exp=100)}))) as server:
        assert from_endpoint(server, sasl_oauthbearer_scope="read write") == jwt(exp=100)
        basic = "Basic " + base64.b64encode(b"me:1:my secret").decode()
        assert server.asked == [(basic, "grant_type=client_credentials&scope=read+write")]


def test_credentials_may_be_url_encoded() -> None:
    with endpoint((200, json.dumps({"access_token": "opaque"}))) as server:
        from_endpoint(server, sasl_oauthbearer_header_urlencode=True)
        assert server.asked[0][0] == "Basic " + base64.b64encode(b"me%3A1:my+secret").decode()


def test_an_assertion_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "assertion").write_text("signed\n")
    with endpoint((200, json.dumps({"access_token": "opaque"}))) as server:
        from_endpoint(server, sasl_oauthbearer_assertion_file=str(tmp_path / "assertion"))
        assert server.asked == [(None, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=signed")]


def test_an_endpoint_that_fails_is_asked_again() -> None:
    with endpoint((503, "busy"), (200, json.dumps({"access_token": "opaque"}))) as server:
        assert from_endpoint(server) == "opaque"


@pytest.mark.parametrize(
    ("answer", "words"),
    [((401, "who are you"), "401: who are you"), ((200, "<html>"), "JSON"), ((200, "{}"), "without an access_token")],
)
def test_an_endpoint_that_refuses_is_not_asked_again(answer: tuple[int, str], words: str) -> None:
    with endpoint(answer) as server:
        with pytest.raises(SaslAuthentication, match=words):
            from_endpoint(server)
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sasl_oauthbearer_token_endpoint_url": "ftp://x"}, "must be https://, http:// or file://"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://x"}, r"client\.id and \.client\.secret"),
        ({}, r"sasl\.login\.callback\.handler\.class"),
        ({"sasl_mechanism": "DIGEST-MD5"}, "set it to one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        ({"sasl_mechanism": "PLAIN"}, "set sasl.username and sasl.password"),
        ({"sasl_mechanism": "PLAIN", "sasl_username": "a"}, "set together"),
        ({"sasl_mechanism": "PLAIN", "sasl_jaas_config": f"{MODULE} required;"}, "username and password"),
        (
            {"sasl_oauthbearer_token_endpoint_url": "https://x", "sasl_oauthbearer_assertion_private_key_file": "/key"},
            r"sasl\.oauthbearer\.assertion\.file",
        ),
    ],
)
def test_settings_that_cannot_serve(given: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        authenticator(config_of(settings(**given)), ManualClock())
