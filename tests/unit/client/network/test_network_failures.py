"""How the network of a client tells of what fails, and how it begins again with bootstrap.servers (KIP-899, KIP-1102)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client.errors import Disconnected, KafkaError, Timeout
from barnabas.client.network.network_client import NetworkClient
from barnabas.config_def import InvalidConfig
from barnabas.protocol.message import Message
from barnabas.protocol.messages.metadata_response import MetadataResponse
from tests.client_network import network, on_loop
from tests.unit.client.peer import ANSWER, ASK, Peer, closing, described, free_port, linked, silent, with_peer


def test_a_refused_connection_says_where() -> None:
    address = f"127.0.0.1:{free_port()}"

    async def run() -> None:
        async with network(address) as client:
            with pytest.raises(Disconnected, match=rf"^{address} \(bootstrap\.servers\) refused the connection: no broker"):
                await client.send(-1, ASK)
            assert client.connection_failed(-1)
            with pytest.raises(Timeout, match=f"no broker could be reached in time; the last connection error: {address}"):
                await client.send_to_any(ASK, timeout_ms=200)

    on_loop(run)


def test_a_name_without_an_address_is_a_wrong_setting() -> None:
    async def run() -> None:
        async with network("nosuchhost.invalid:9092"):
            pass

    with pytest.raises(InvalidConfig, match=r"^No resolvable bootstrap urls given in bootstrap\.servers: nosuchhost\.invalid:9092: the"):
        on_loop(run)


def test_names_are_made_canonical_where_that_is_wanted() -> None:
    async def run() -> None:
        async with Peer() as peer, network(peer.address, client_dns_lookup="resolve_canonical_bootstrap_servers_only") as client:
            assert [(node.host, node.port) for node in client.metadata.cluster.nodes] == [(socket.getfqdn("127.0.0.1"), peer.port)]

    on_loop(run)


def test_a_reset_while_waiting_is_a_disconnect() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.answers["DescribeCluster"] = silent
        await linked(client)
        waiting = asyncio.ensure_future(client.send(1, ASK))
        await peer.wait_for("DescribeCluster")
        peer.drop()
        with pytest.raises(Disconnected):
            await waiting
        assert client.connection_failed(1) and not client.is_ready(1)

    with_peer(test)


def test_a_connection_that_a_broker_closes_unused_is_no_reason_of_a_timeout() -> None:
    async def run() -> None:
        async with Peer() as bootstrap, Peer() as peer:
            bootstrap.brokers = [(1, peer.port)]
            async with network(bootstrap.address) as client:
                await linked(client)
                lost: asyncio.Future[KafkaError] = asyncio.get_running_loop().create_future()

                def note(node_id: int, error: KafkaError) -> None:
                    if node_id == 1 and not lost.done():
                        lost.set_result(error)

                client.on_disconnect.append(note)
                peer.drop()
                assert "was lost" in str(await lost)
                assert client.metadata.failures.last() is None

    on_loop(run)


def test_a_connection_that_a_broker_closes_before_it_answers_is_the_reason_of_a_timeout() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        peer.answers["DescribeCluster"] = closing
        with pytest.raises(Disconnected) as raised:
            await client.send(1, ASK)
        assert client.metadata.failures.last() is raised.value

    with_peer(test)


def test_no_answer_gives_the_connection_up_with_all_that_wait() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.answers["DescribeCluster"] = silent
        await linked(client)
        patient = asyncio.ensure_future(client.send(1, ASK, timeout_ms=30000))
        with pytest.raises(Timeout, match=r"v2 to 127\.0\.0\.1:[0-9]+ \(advertised\.listeners of broker 1\) was not answered within"):
            await client.send(1, ASK, timeout_ms=100)
        with pytest.raises(Disconnected):
            await patient

    with_peer(test)


def test_a_broker_that_accepts_and_says_nothing() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        with pytest.raises(Timeout, match="ApiVersions"):
            await client.send(-1, ASK, timeout_ms=10000)

    def prepare(peer: Peer) -> None:
        peer.answers["ApiVersions"] = silent

    with_peer(test, prepare, request_timeout_ms=100)


def foreign(words: bytes) -> Callable[[Peer], None]:
    def prepare(peer: Peer) -> None:
        peer.answers["ApiVersions"] = lambda request, version: words

    return prepare


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "answers with HTTP"),
        (bytes.fromhex("15030300020246"), "speaks TLS on this port; set security.protocol=SSL"),
        (b"\xff\xff\xff\xfe", "does not speak Kafka's protocol"),
        (b"\x00\x00\x00\x02\x00\x00", "does not speak Kafka's protocol"),
        (bytes.fromhex("0000000a 00000063 0000 00000000"), r"Correlation id for response \(99\) does not match request \(1\)"),
        (bytes.fromhex("00000006 00000001 0000"), "ApiVersions v4 that cannot be read"),
    ],
)
def test_what_is_no_answer_of_kafka_is_told_as_such(words: bytes, complaint: str) -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        with pytest.raises(Disconnected, match=complaint):
            await client.send(-1, ASK)

    with_peer(test, foreign(words))


def test_an_answer_nobody_asked_for_ends_the_connection() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        lost: asyncio.Future[KafkaError] = asyncio.get_running_loop().create_future()

        def note(node_id: int, error: KafkaError) -> None:
            if not lost.done():
                lost.set_result(error)

        client.on_disconnect.append(note)
        twice = bytes.fromhex("00000014") + bytes(20)
        peer.answers["DescribeCluster"] = lambda request, version: twice
        with pytest.raises(Disconnected):
            await client.send(1, ASK)
        assert isinstance(await lost, Disconnected)

    with_peer(test)


def test_a_size_that_is_only_promised_costs_no_memory() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        peer.answers["DescribeCluster"] = lambda request, version: (2**31 - 1).to_bytes(4, "big") + b"x"
        waiting = asyncio.ensure_future(client.send(1, ASK, timeout_ms=300))
        await peer.wait_for("DescribeCluster")
        with pytest.raises(Timeout):
            await waiting

    with_peer(test)


def test_a_node_nobody_has_heard_of() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        with pytest.raises(Disconnected, match="Node 77 is not known"):
            await client.send(77, ASK)
        assert not client.send_nowait(77, ASK, lambda answer, error: None)

    with_peer(test)


def test_a_callback_that_fails_harms_nobody_else() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)

        def fail(answer: Message | None, error: KafkaError | None) -> None:
            raise RuntimeError("in a callback")

        assert client.send_nowait(1, ASK, fail)
        assert await client.send(1, ASK) == ANSWER
        assert client.is_ready(1)

    with_peer(test)


# Begin again


def test_begins_again_with_bootstrap_when_no_known_broker_can_be_reached() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.brokers = [(1, free_port())]
        await client.metadata.wait_for_update(0, 5000)
        assert [node.id for node in client.metadata.cluster.nodes] == [1]
        peer.brokers = None
        peer.drop()
        while client.metadata.cluster.is_bootstrap or client.metadata.cluster.nodes[0].port != peer.port:
            await client.wait_for_change(100)
            client.ready(1)
        assert await client.send_to_any(ASK) == ANSWER

    with_peer(test, metadata_max_age_ms=50)


def test_does_not_begin_again_where_that_is_not_wanted() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.brokers = [(1, free_port())]
        await client.metadata.wait_for_update(0, 5000)
        peer.drop()
        with pytest.raises(Timeout):
            await client.send_to_any(ASK, timeout_ms=500)
        assert [node.id for node in client.metadata.cluster.nodes] == [1]

    with_peer(test, metadata_max_age_ms=50, metadata_recovery_strategy="none")


def test_begins_again_when_a_broker_asks_for_it() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        known, requests = peer.answers["Metadata"], []

        def once(request: Any, version: int) -> Message | bytes | None:
            requests.append(version)
            return MetadataResponse(error_code=129) if len(requests) == 1 else known(request, version)

        peer.answers["Metadata"] = once
        before = peer.connected
        version = client.metadata.request_update()
        await client.metadata.wait_for_update(version + 1, 5000)  # beginning again is a version, too
        assert peer.connected > before and not client.metadata.cluster.is_bootstrap

    with_peer(test)


def test_begins_again_when_nobody_has_answered_for_too_long() -> None:
    async def run() -> None:
        async with Peer() as peer, Peer() as mute:
            mute.answers["Metadata"] = silent
            peer.answers["DescribeCluster"] = described
            peer.brokers = [(1, mute.port)]
            settings: dict[str, Any] = {
                "metadata_max_age_ms": 100,
                "metadata_recovery_rebootstrap_trigger_ms": 300,
                "request_timeout_ms": 200,
            }
            async with network(peer.address, **settings) as client:
                await client.metadata.wait_for_update(0, 5000)
                peer.drop()
                await mute.wait_for("Metadata", 2)
                peer.brokers = None
                while client.metadata.cluster.nodes[0].port != peer.port or client.metadata.cluster.is_bootstrap:
                    await client.wait_for_change(50)

    on_loop(run)
