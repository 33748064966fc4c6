"""Where the keys come from, and when they are read again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from barnabas.broker.security.sasl.oauthbearer import jwks_cache
from barnabas.broker.security.sasl.oauthbearer.jwks_cache import JwksCache, _reader
from barnabas.broker.security.sasl.oauthbearer.key_set import InvalidKeySet, KeySet
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.config_def import InvalidConfig
from tests.unit.broker.security.sasl.oauthbearer.tokens import ec_jwk, jwks, rsa_jwk

TIMEOUT_S = 60


class Source:
    """A key set that a test replaces. `read` waits for nothing."""

    def __init__(self, *texts: bytes | Exception) -> None:
        self.texts = list(texts)
        self.reads = 0
        self.now_ms = 0

    def read(self) -> bytes:
        self.reads += 1
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        if isinstance(text, Exception):
            raise text
        return text

    def cache(self, refresh_ms: int = 3_600_000) -> JwksCache:
        backoff = ExponentialBackoff(1, 2, random=Random(0))
        return JwksCache("file:/keys", self.read, ThreadPoolExecutor(1), lambda: self.now_ms, refresh_ms, backoff)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.001)


def test_a_set_that_cannot_be_read_stops_the_start_after_some_attempts() -> None:
    source = Source(OSError("connection refused"))
    with pytest.raises(InvalidConfig, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url, file:/keys, cannot be used: connection refused"):
        asyncio.run(source.cache().load())
    assert source.reads == jwks_cache.START_ATTEMPTS


def test_a_set_that_is_none_stops_the_start_at_once() -> None:
    source = Source(b"<html>")
    with pytest.raises(InvalidConfig, match="not a JSON Web Key Set"):
        asyncio.run(source.cache().load())
    assert source.reads == 1


def test_a_server_that_starts_a_little_later_is_waited_for() -> None:
    source = Source(OSError("connection refused"), jwks(rsa_jwk("one")))
    asyncio.run(source.cache().load())


def test_an_unknown_key_makes_the_set_be_read_again_but_not_each_time() -> None:
    async def run() -> None:
        source = Source(jwks(rsa_jwk("one")), jwks(rsa_jwk("one"), rsa_jwk("two")))
        cache = source.cache()
        await cache.load()
        refreshing = asyncio.ensure_future(cache.keep_fresh())
        for _ in range(100):
            assert cache.key("two", "RS256") is None
        await asyncio.sleep(0)
        assert source.reads == 1  # it has been read just now
        source.now_ms += 10_000
        assert cache.key("two", "RS256") is None
        await until(lambda: cache.key("two", "RS256") is not None)
        assert source.reads == 2
        refreshing.cancel()

    asyncio.run(run())


def test_the_previous_set_stays_in_use_while_a_new_one_cannot_be_read() -> None:
    async def run() -> None:
        source = Source(jwks(rsa_jwk("one")), OSError("gone"), b"{}", jwks(ec_jwk("two")))
        cache = source.cache(refresh_ms=1)
        await cache.load()
        refreshing = asyncio.ensure_future(cache.keep_fresh())
        await until(lambda: source.reads >= 3)
        await until(lambda: cache.key("two", "ES256") is not None)
        assert cache.key("one", "RS256") is None
        refreshing.cancel()

    asyncio.run(run())


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "https://issuer/other",
        "ftp://issuer/keys",
        "/etc/passwd",
        "file://host/keys",
        "",
        "https://issuer/keys#x",
    ],
)
def test_a_url_that_is_not_in_the_allow_list_is_refused(url: str) -> None:
    """CVE-2025-27817."""
    with pytest.raises(InvalidConfig, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url is"):
        _reader(url, ("https://issuer/keys",))


def test_a_file_needs_no_allow_list(tmp_path: Path) -> None:
    path = tmp_path / "the keys.json"  # %20 in the URL
    path.write_bytes(jwks(rsa_jwk("one")))
    assert _reader(path.as_uri(), ())() == path.read_bytes()


def test_a_set_larger_than_the_bound_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(b" " * (jwks_cache.KEY_SET_BYTES_MAX + 1))
    with pytest.raises(InvalidKeySet, match="more than"):
        _reader(path.as_uri(), ())()


class Provider(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/garbage":
            self.wfile.write(b"no HTTP\r\n\r\n")
            return
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/keys")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(jwks(rsa_jwk("one")))

    def log_message(self, format: str, *args: object) -> None:
        """Not to stderr."""


@pytest.fixture
def provider() -> object:
    server = HTTPServer(("127.0.0.1", 0), Provider)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_allowed_url_is_read_and_its_redirects_are_not_followed(provider: str) -> None:
    allowed = (f"{provider}/keys", f"{provider}/moved")
    assert KeySet.parse(_reader(allowed[0], allowed)()).key("one", "RS256") is not None
    with pytest.raises(OSError, match="302"):
        _reader(allowed[1], allowed)()


def test_a_response_that_is_not_http_is_an_error_after_which_the_set_is_read_again(provider: str) -> None:
    url = f"{provider}/garbage"
    with pytest.raises(OSError, match="no HTTP response: BadStatusLine"):
        _reader(url, (url,))()


def test_only_keys_for_signatures_are_used() -> None:
    keys = KeySet.parse(jwks(rsa_jwk("enc", use="enc"), rsa_jwk("one", use="sig"), {"kty": "RSA", "kid": "broken"}))
    assert keys.key("one", "RS256") is not None
    assert keys.key("enc", "RS256") is None
    assert keys.key("broken", "RS256") is None
    assert keys.key("one", "ES256") is None


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"keys": 7}', b'{"keys": [7]}', b'{"keys": []}', b'{"keys": [{"kty": "oct", "k": "AA"}]}']
)
def test_a_text_without_keys_is_no_set(text: bytes) -> None:
    with pytest.raises(InvalidKeySet):
        KeySet.parse(text)


def test_without_a_key_id_the_only_fitting_key_is_used() -> None:
    keys = KeySet.parse(jwks(rsa_jwk("one"), ec_jwk("two")))
    assert keys.key(None, "RS256") is keys.key("one", "RS256")
    assert keys.key(None, "ES384") is None
