"""The network of a client, against a peer that says what the test wants: versions, attempts, connections, coordinators."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client.cluster import COORDINATOR_IDS
from barnabas.client.errors import CoordinatorNotAvailable, Disconnected, IllegalState, KafkaError, UnsupportedVersion
from barnabas.client.network.network_client import NetworkClient
from barnabas.protocol import api_keys
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.produce_request import ProduceRequest
from barnabas.protocol.slices import Records
from tests.client_network import network, on_loop
from tests.unit.client.peer import ANSWER, ASK, Peer, closing, described, free_port, linked, silent, with_peer

# Versions


def test_asks_for_versions_first_and_uses_the_highest_that_both_know() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.versions[api_keys.DESCRIBE_CLUSTER] = (0, 1)
        assert await client.send_to_any(ASK) == ANSWER
        assert peer.requests[0][:2] == ("ApiVersions", 4)
        assert ("DescribeCluster", 1, ASK) in peer.requests

    with_peer(test)


def test_a_version_may_be_given_or_limited() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        await client.send(1, ASK, version=0)
        await client.send(1, ASK, max_version=1)
        await client.send(1, ASK)
        assert [version for api, version, _ in peer.requests if api == "DescribeCluster"] == [0, 1, 2]

    with_peer(test)


def test_an_api_the_broker_lacks_raises_in_kafkas_words() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        with pytest.raises(UnsupportedVersion, match=r"^The node does not support DESCRIBE_CLUSTER$"):
            await client.send_to_any(ASK)
        with pytest.raises(UnsupportedVersion, match=r"with version in range \[0,1\]. The supported range is \[5,9\]\.$"):
            await client.send_to_any(ProduceRequest(acks=1), max_version=1)

    def prepare(peer: Peer) -> None:
        del peer.versions[api_keys.DESCRIBE_CLUSTER]
        peer.versions[api_keys.PRODUCE] = (5, 9)

    with_peer(test, prepare)


def test_an_api_the_broker_lacks_is_told_through_done() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        outcome: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
        assert client.send_nowait(1, ASK, lambda answer, error: outcome.set_result(error))
        assert isinstance(await outcome, UnsupportedVersion)

    def prepare(peer: Peer) -> None:
        del peer.versions[api_keys.DESCRIBE_CLUSTER]

    with_peer(test, prepare)


def test_a_broker_that_knows_only_old_versions_of_api_versions() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        assert await client.send_to_any(ASK) == ANSWER
        assert [version for api, version, _ in peer.requests if api == "ApiVersions"][:2] == [4, 2]

    def prepare(peer: Peer) -> None:
        known = peer.answers["ApiVersions"]

        def old(request: Any, version: int) -> Message | bytes | None:
            if version <= 2:
                return known(request, version)
            # Error 35 in version 0, with what there is: the correlation id of the first request is 1.
            refusal = bytes.fromhex("00000001 0023 00000001 0012 0000 0002")
            return len(refusal).to_bytes(4, "big") + refusal

        peer.answers["ApiVersions"] = old

    with_peer(test, prepare)


def test_versions_and_features_of_a_node() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        assert client.version_of(1, api_keys.FETCH) is None and client.features(1) is None
        await linked(client)
        assert client.version_of(1, api_keys.FETCH) == 18
        assert client.version_of(1, api_keys.LEADER_AND_ISR) is None
        features = client.features(1)
        assert features is not None and features.finalized == {}

    def prepare(peer: Peer) -> None:
        del peer.versions[api_keys.LEADER_AND_ISR]

    with_peer(test, prepare)


# Attempts


def test_attempts_are_spaced_by_the_back_off() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        began_ms = client.clock.monotonic_ms()
        while peer.connected < 4:
            await client.wait_for_change(1000)
        # 100, 200 and 400 ms, each a fifth less at worst.
        assert client.clock.monotonic_ms() - began_ms >= 0.8 * 700

    def prepare(peer: Peer) -> None:
        peer.answers["ApiVersions"] = closing

    with_peer(test, prepare, reconnect_backoff_ms=100, reconnect_backoff_max_ms=1000)


def test_send_waits_for_the_back_off_and_tries_again() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        port = peer.port
        await peer.stop()
        with pytest.raises(Disconnected):
            await client.send(1, ASK)
        await peer.listen(port)
        assert await client.send(1, ASK) == ANSWER

    with_peer(test, reconnect_backoff_ms=200, reconnect_backoff_max_ms=200, metadata_recovery_strategy="none")


def test_the_second_bootstrap_address_serves_where_the_first_is_dead() -> None:
    async def run() -> None:
        async with Peer() as peer:
            peer.answers["DescribeCluster"] = described
            async with network(f"127.0.0.1:{free_port()},{peer.address}") as client:
                assert await client.send_to_any(ASK) == ANSWER

    on_loop(run)


def test_on_ready_and_on_disconnect_tell() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        calls: list[object] = []
        client.on_ready.append(calls.append)
        client.on_disconnect.append(lambda node_id, error: calls.append((node_id, type(error))))
        assert not client.send_nowait(-1, ASK, lambda answer, error: None)
        while not calls:
            await client.wait_for_change(1000)
        peer.drop()
        while len(calls) < 2:
            await client.wait_for_change(1000)
        assert calls[:2] == [-1, (-1, Disconnected)]

    with_peer(test)


# Connections


def test_an_idle_connection_is_closed_and_opened_again() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        lost: asyncio.Future[KafkaError] = asyncio.get_running_loop().create_future()
        client.on_disconnect.append(lambda node_id, error: None if lost.done() else lost.set_result(error))
        assert "connections.max.idle.ms" in str(await lost)
        assert await client.send(1, ASK) == ANSWER

    with_peer(test, connections_max_idle_ms=100)


def test_no_more_in_flight_than_allowed() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.answers["DescribeCluster"] = silent
        await linked(client)
        sent = 0
        while client.send_nowait(1, ASK, lambda answer, error: None):
            sent += 1
        assert sent == client.in_flight_count(1) == client.in_flight_count() == 100
        assert not client.is_ready(1)

    with_peer(test)


def test_answers_come_in_order_however_they_are_cut() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        answers = await asyncio.gather(*(client.send(1, ASK, version=number % 3) for number in range(60)))
        assert all(answer == ANSWER for answer in answers)

    with_peer(test)


@pytest.mark.parametrize("size", [70_000, 1_500_000, 20_000_000])
@pytest.mark.parametrize("make_loop", [None, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_large_answers(size: int, make_loop: Callable[[], asyncio.AbstractEventLoop] | None) -> None:
    data = bytes(range(256)) * (size // 256)

    def fetched(request: Message, version: int) -> Message:
        part = PartitionData(partition_index=0, records=Records(data))
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])

    async def run() -> None:
        async with Peer() as peer, network(peer.address) as client:
            peer.answers["Fetch"] = fetched
            peer.answers["DescribeCluster"] = described
            await linked(client)
            ahead, response, behind = await asyncio.gather(
                client.send(1, ASK), client.send(1, FetchRequest(), version=12), client.send(1, ASK)
            )
            assert ahead == behind == ANSWER
            assert isinstance(response, FetchResponse)
            records = response.responses[0].partitions[0].records
            assert records is not None and records.to_bytes() == data

    on_loop(run) if make_loop is None else on_loop(run, make_loop=make_loop)


def test_a_produce_without_acks_is_done_when_it_is_written() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.answers["Produce"] = silent
        await linked(client)
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        assert client.send_nowait(1, ProduceRequest(acks=0), lambda answer, error: done.set_result((answer, error)))
        assert not done.done()
        assert await done == (None, None) and client.in_flight_count(1) == 0
        await peer.wait_for("Produce")
        assert await client.send(1, ASK) == ANSWER

    with_peer(test)


def test_a_throttled_node_is_left_alone_for_so_long() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.answers["DescribeCluster"] = lambda request, version: DescribeClusterResponse(throttle_time_ms=200)
        await linked(client)
        await client.send(1, ASK)
        began_ms = client.clock.monotonic_ms()
        assert not client.is_ready(1) and 0 < client.delay_ms(1) <= 200
        ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        client.on_ready.append(ready.set_result)
        assert await ready == 1
        await client.send(1, ASK)
        assert client.clock.monotonic_ms() - began_ms >= 195

    with_peer(test)


def test_the_node_with_least_to_do_is_asked() -> None:
    async def run() -> None:
        async with Peer() as one, Peer() as two:
            one.brokers = two.brokers = [(1, one.port), (2, two.port)]
            one.answers["DescribeCluster"] = two.answers["DescribeCluster"] = silent
            async with network(one.address) as client:
                await linked(client, 1)
                await linked(client, 2)
                for busy, idle in ((1, 2), (2, 1)):
                    for _ in range(busy):
                        assert client.send_nowait(busy, ASK, lambda answer, error: None)
                    assert {client.least_loaded_node() for _ in range(20)} == {idle}

    on_loop(run)


def test_the_cluster_is_asked_about_by_age() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await peer.wait_for("Metadata", 4)

    with_peer(test, metadata_max_age_ms=50)


def test_every_address_of_a_name_is_tried() -> None:
    async def run() -> None:
        async with Peer() as peer:
            peer.answers["DescribeCluster"] = described
            async with network(f"localhost:{peer.port}") as client:  # ::1 first, on most machines, where nobody listens
                assert await client.send_to_any(ASK) == ANSWER

    on_loop(run)


# Coordinators


@pytest.mark.parametrize("version", [3, 6])
def test_finding_a_coordinator_in_old_and_new_versions(version: int) -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.versions[api_keys.FIND_COORDINATOR] = (0, version)

        def found(request: Message, asked_version: int) -> Message:
            where = Coordinator("group", 1, "127.0.0.1", peer.port)
            if version >= 4:
                return FindCoordinatorResponse(coordinators=[where])
            return FindCoordinatorResponse(node_id=1, host="127.0.0.1", port=peer.port)

        peer.answers["FindCoordinator"] = found
        node = await client.find_coordinator("group")
        own = await client.find_coordinator("group", own_connection=True)
        assert (node.id, own.id, own.port) == (1, COORDINATOR_IDS - 1, peer.port)
        assert await client.send(own.id, ASK) == ANSWER

    with_peer(test)


def test_a_coordinator_that_is_not_there_raises() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.answers["FindCoordinator"] = lambda request, version: FindCoordinatorResponse(coordinators=[Coordinator("g", error_code=15)])
        with pytest.raises(CoordinatorNotAvailable):
            await client.find_coordinator("g")

    with_peer(test)


# The end


def test_closing_tells_those_who_wait() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        peer.answers["DescribeCluster"] = silent
        await linked(client)
        waiting = asyncio.ensure_future(client.send(1, ASK))
        await peer.wait_for("DescribeCluster")
        await client.close()
        with pytest.raises(Disconnected, match="closed"):
            await waiting
        with pytest.raises(IllegalState):
            await client.send(1, ASK)

    with_peer(test)


def test_closing_waits_for_answers_as_long_as_it_may() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        waiting = asyncio.ensure_future(client.send(1, ASK))
        await asyncio.sleep(0)  # it has been written
        await client.close(5)
        assert await waiting == ANSWER

    with_peer(test)


def test_closing_while_connecting() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        waiting = asyncio.ensure_future(client.send(-1, ASK))
        await peer.wait_for("ApiVersions")
        await client.close()
        with pytest.raises((Disconnected, IllegalState)):
            await waiting

    def prepare(peer: Peer) -> None:
        peer.answers["ApiVersions"] = silent

    with_peer(test, prepare)


def test_measures_under_kafkas_names() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        await client.send(1, ASK)

        def value(name: str, group: str, **tags: str) -> object:
            metric = client.metrics.find(name, group, **tags)
            assert metric is not None
            return metric.metric_value()

        assert value("connection-count", "client-metrics") == 2
        assert value("connection-creation-total", "client-metrics") == 2
        node = {"node_id": "node-1"}
        assert value("request-total", "client-node-metrics", **node) == value("response-total", "client-node-metrics", **node) == 2
        total = value("outgoing-byte-total", "client-metrics")
        assert isinstance(total, float) and total > 0

    with_peer(test)


def test_api_versions_tell_who_asks() -> None:
    async def test(peer: Peer, client: NetworkClient) -> None:
        await linked(client)
        assert peer.requests[0][2].client_software_name == "barnabas-python"  # type: ignore[attr-defined]

    with_peer(test)
