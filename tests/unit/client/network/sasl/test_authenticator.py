"""The SASL exchange over a connection, with a peer in the broker's place: agreements, refusals, and sessions that end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client.errors import (
    AuthenticationError,
    Disconnected,
    IllegalSaslState,
    SaslAuthentication,
    Timeout,
    UnsupportedSaslMechanism,
)
from barnabas.client.network.network_client import NetworkClient
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.client_network import network, on_loop
from tests.unit.client.peer import Close, Peer

ASK = DescribeClusterRequest()
PLAIN = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "secret"}


def with_peer(test: Callable[[Peer, NetworkClient], Any], **changes: Any) -> None:
    async def run() -> None:
        async with Peer() as peer:
            peer.answers["DescribeCluster"] = lambda request, version: DescribeClusterResponse(cluster_id="c")
            peer.answers["SaslHandshake"] = lambda request, version: SaslHandshakeResponse(0, ["PLAIN"])
            peer.answers["SaslAuthenticate"] = lambda request, version: SaslAuthenticateResponse()
            async with network(peer.address, **PLAIN | changes) as client:
                await test(peer, client)

    on_loop(run)


def test_versions_then_a_handshake_then_the_exchange_and_only_then_requests() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await client.send(-1, ASK)
        assert [api for api, _, _ in peer.requests[:3]] == ["ApiVersions", "SaslHandshake", "SaslAuthenticate"]
        assert peer.requests[1][2].mechanism == "PLAIN"  # type: ignore[attr-defined]
        assert peer.requests[2][2].auth_bytes == b"\0alice\0secret"  # type: ignore[attr-defined]

    with_peer(test)


def test_a_password_that_cannot_be_encoded_is_not_in_the_error() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        with pytest.raises(Disconnected, match=r"failed: UnicodeEncodeError$"):
            await client.send(-1, ASK)

    with_peer(test, sasl_password="secret\udcff")


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (33, UnsupportedSaslMechanism, r"'PLAIN' not enabled in the server, enabled mechanisms are \['SCRAM-SHA-512'\]"),
        (34, IllegalSaslState, r"security\.protocol"),
        (42, Exception, "malformed"),
    ],
)
def test_a_handshake_that_is_refused(code: int, kind: type[Exception], words: str) -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.answers["SaslHandshake"] = lambda request, version: SaslHandshakeResponse(code, ["SCRAM-SHA-512"])
        with pytest.raises(kind, match=words):
            await client.send(-1, ASK)
        assert peer.count("SaslAuthenticate") == 0

    with_peer(test)


def test_a_refusal_is_told_at_once_to_everyone_who_asks() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.answers["SaslAuthenticate"] = lambda request, version: SaslAuthenticateResponse(58, "Authentication failed: who?")
        for ask in (client.send(-1, ASK), client.send_to_any(ASK), client.metadata.wait_for_update(0, 5000)):
            with pytest.raises(SaslAuthentication, match=r"^Authentication failed: who\?$"):
                await ask
        assert client.authentication_error(-1) is not None

    with_peer(test)


def test_credentials_that_are_put_right_serve_the_next_attempt() -> None:
    passwords = ["wrong", "right"]

    async def test(peer: Peer, client: NetworkClient) -> None:
        def check(request: Any, version: int) -> Message:
            return SaslAuthenticateResponse(0 if request.auth_bytes.endswith(b"right") else 58)

        peer.answers["SaslAuthenticate"] = check
        with pytest.raises(SaslAuthentication):
            await client.send(-1, ASK)
        while True:
            try:
                await client.send(-1, ASK)
                break
            except AuthenticationError:
                await client.wait_for_change(20)

    with_peer(test, sasl_client_callback_handler_class=lambda: ("alice", passwords.pop(0) if len(passwords) > 1 else passwords[0]))


def test_an_exchange_that_does_not_end_is_given_up() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.answers["SaslAuthenticate"] = lambda request, version: SaslAuthenticateResponse(0, None, b'{"status":"again"}')
        with pytest.raises(SaslAuthentication):
            await client.send(-1, ASK)

    with_peer(test, sasl_mechanism="OAUTHBEARER", sasl_login_callback_handler_class=lambda: "token")


def test_a_broker_that_closes_or_stays_silent_in_the_middle() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        def close(request: Any, version: int) -> Message:
            raise Close

        peer.answers["SaslAuthenticate"] = close
        with pytest.raises(Disconnected):
            await client.send(-1, ASK)
        peer.answers["SaslAuthenticate"] = lambda request, version: None
        with pytest.raises(Timeout, match="SaslAuthenticate"):
            await client.send(-1, ASK, timeout_ms=5000)

    with_peer(test, request_timeout_ms=200)


def test_a_session_is_renewed_before_it_ends_and_requests_wait_meanwhile() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        life_ms = 400
        peer.answers["SaslAuthenticate"] = lambda request, version: SaslAuthenticateResponse(0, None, b"", life_ms)
        await client.metadata.wait_for_update(0, 5000)
        await client.send(1, ASK)
        began = peer.count("SaslAuthenticate")
        until_ms = client.clock.monotonic_ms() + 3 * life_ms
        while client.clock.monotonic_ms() < until_ms:
            await asyncio.gather(*(client.send(1, ASK) for _ in range(20)))
            await client.wait_for_change(5)
        assert peer.count("SaslAuthenticate") > began and peer.connected == 2
        apis = [api for api, _, _ in peer.requests]
        exchanges = [number for number, api in enumerate(apis) if api == "SaslHandshake"]
        # Two connections speak at once, each alone while it authenticates.
        assert all("SaslAuthenticate" in apis[number + 1 : number + 60] for number in exchanges)
        metric = client.metrics.find("successful-reauthentication-total")
        assert metric is not None
        until_ms = client.clock.monotonic_ms() + 5000
        while metric.metric_value() != peer.count("SaslAuthenticate") - 2 and client.clock.monotonic_ms() < until_ms:
            await client.wait_for_change(5)  # some are under way
        assert metric.metric_value() == peer.count("SaslAuthenticate") - 2

    with_peer(test)


def test_a_renewal_that_is_refused_closes_the_connection() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        answers = [SaslAuthenticateResponse(0, None, b"", 200), SaslAuthenticateResponse(58, "no longer")]
        peer.answers["SaslAuthenticate"] = lambda request, version: answers.pop(0) if len(answers) > 1 else answers[0]
        lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        client.on_disconnect.append(lambda node_id, error: None if lost.done() else lost.set_result(error))
        await client.send(-1, ASK)
        assert "no longer" in str(await lost) and isinstance(await lost, SaslAuthentication)

    with_peer(test)
