"""What a peer may do before it is authenticated, on a listener that requires it: small requests, for a limited time."""

from __future__ import annotations

import struct

import pytest

from barnabas.network.config import ListenerLimits
from barnabas.network.exchange import Exchange
from tests.unit.network.harness import Echo, client_of, serving, the_connection, until

LIMITS = {"PLAINTEXT": ListenerLimits(unauthenticated_request_max_bytes=100)}


class Door(Echo):
    """The request `let me in` authenticates the connection."""

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        if frame == b"let me in":
            exchange.connection.authenticated()
        super().dispatch(exchange, frame)


async def test_a_large_request_closes_the_connection_before_its_bytes_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    """CVE-2022-34917."""
    async with serving(Door(), listener_limits=LIMITS) as server, client_of(server) as client:
        assert await client.ask(b"x" * 100) == b"x" * 100
        connection = await the_connection(server)
        client.writer.write(struct.pack(">i", 101) + b"x" * 50)
        assert await client.is_closed_by_server()
        assert connection._frames.held == 0
    assert "sasl.server.max.receive.size" in caplog.text


async def test_after_authentication_requests_may_be_as_large_as_on_any_listener() -> None:
    async with serving(Door(), listener_limits=LIMITS, socket_request_max_bytes=300) as server, client_of(server) as client:
        await client.ask(b"let me in")
        assert await client.ask(b"x" * 300) == b"x" * 300
        client.send(b"x" * 301)
        assert await client.is_closed_by_server()


async def test_a_listener_without_authentication_has_no_such_bound() -> None:
    async with serving(Door(), authentication_timeout_ms=1) as server, client_of(server) as client:
        assert await client.ask(b"x" * 1000) == b"x" * 1000


async def test_a_peer_that_is_not_authenticated_in_time_is_disconnected(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with serving(Door(), listener_limits=LIMITS, authentication_timeout_ms=20) as server, client_of(server) as client:
        assert await client.is_closed_by_server()
        await until(lambda: not server.connections)
    assert "not authenticated within barnabas.connection.authentication.timeout.ms" in caplog.text


async def test_an_authenticated_peer_has_no_deadline() -> None:
    async with serving(Door(), listener_limits=LIMITS, authentication_timeout_ms=600_000) as server, client_of(server) as client:
        await client.ask(b"hello")
        connection = await the_connection(server)
        timer = connection._authentication_timer
        assert timer is not None
        await client.ask(b"let me in")
        assert timer.cancelled()
        assert connection._authentication_timer is None
