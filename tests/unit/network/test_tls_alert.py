"""A client whose TLS handshake fails gets the alert that says why, on both event loops."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

from barnabas.broker.security.tls.replacement import shake_hands
from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.network.exchange import Exchange
from barnabas.network.server import SocketServer
from tests.unit.network.harness import Echo, client_of, server_tls, serving

LISTENER = EndPoint("SSL", "127.0.0.1", 0, SecurityProtocol.SSL)


def _requiring(certificate: Path) -> dict[str, ssl.SSLContext]:
    contexts = server_tls(certificate)
    for context in contexts.values():
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificate)
    return contexts


def _client(certificate: Path, version: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certificate))
    context.minimum_version = context.maximum_version = version
    return context


def _known(certificate: Path) -> ssl.SSLContext:
    """Of a client that has a certificate."""
    context = _client(certificate, ssl.TLSVersion.TLSv1_3)
    context.load_cert_chain(certificate, f"{certificate}.key")
    return context


async def _refusal(server: SocketServer, context: ssl.SSLContext) -> Exception:
    """What a blocking client gets at its first request. In TLS 1.3 its handshake is finished before the server refuses it."""
    return await asyncio.get_running_loop().run_in_executor(None, _refused, server.port("SSL"), context)


def _refused(port: int, context: ssl.SSLContext) -> Exception:
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as tls,
        ):
            received = tls.recv(1)
    except OSError as error:
        return error
    raise AssertionError(f"the server has sent {received!r} and no alert")


async def test_a_missing_certificate_is_named_in_tls_13(certificate: Path) -> None:
    async with serving(Echo(), LISTENER, tls=_requiring(certificate)) as server:
        error = await _refusal(server, _client(certificate, ssl.TLSVersion.TLSv1_3))
    assert isinstance(error, ssl.SSLError) and error.reason == "TLSV13_ALERT_CERTIFICATE_REQUIRED"


async def test_a_missing_certificate_is_an_alert_in_tls_12(certificate: Path) -> None:
    async with serving(Echo(), LISTENER, tls=_requiring(certificate)) as server:
        error = await _refusal(server, _client(certificate, ssl.TLSVersion.TLSv1_2))
    assert isinstance(error, ssl.SSLError) and "ALERT" in str(error.reason)


async def test_a_version_that_is_not_served_is_named(certificate: Path) -> None:
    contexts = server_tls(certificate)
    for context in contexts.values():
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    async with serving(Echo(), LISTENER, tls=contexts) as server:
        error = await _refusal(server, _client(certificate, ssl.TLSVersion.TLSv1_2))
    assert isinstance(error, ssl.SSLError) and error.reason == "TLSV1_ALERT_PROTOCOL_VERSION"


class Checking(Echo):
    """Checks certificates with a handshake in memory before it answers, as a change of certificates does."""

    def __init__(self, server: ssl.SSLContext, refused: ssl.SSLContext) -> None:
        self._server = server
        self._refused = refused
        self.failures = 0

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        try:
            shake_hands(self._server, self._refused)
        except ssl.SSLError:
            self.failures += 1
        super().dispatch(exchange, frame)


async def test_a_handshake_in_memory_does_not_write_to_the_client_whose_request_makes_it(certificate: Path) -> None:
    contexts = _requiring(certificate)
    checking = Checking(contexts["SSL"], _client(certificate, ssl.TLSVersion.TLSv1_3))
    async with serving(checking, LISTENER, tls=contexts) as server, client_of(server, "SSL", ssl=_known(certificate)) as client:
        assert await client.ask(b"one") == b"one"
        assert await client.ask(b"two") == b"two"
    assert checking.failures == 2


async def test_a_refused_client_is_no_obstacle_for_the_next(certificate: Path) -> None:
    async with serving(Echo(), LISTENER, tls=_requiring(certificate)) as server:
        await _refusal(server, _client(certificate, ssl.TLSVersion.TLSv1_3))
        async with client_of(server, "SSL", ssl=_known(certificate)) as client:
            assert await client.ask(b"hello") == b"hello"
