"""Brokers that fail in every way at random: each request is told of exactly once, and the client comes back."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from barnabas.client.errors import KafkaError
from barnabas.client.network.connection import Done
from barnabas.client.network.network_client import NetworkClient
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from tests.client_network import network, on_loop
from tests.unit.client.peer import Close, Peer

REQUESTS = 300
IN_FLIGHT = 3
ANSWER = DescribeClusterResponse(cluster_id="c")
GARBAGE = (b"\x00\x00\x00\x08garbage!", b"HTTP/1.1 500", b"\xff" * 8, b"\x00\x00")


class Moods:
    """What a peer does next."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.is_well = False

    def answer(self, request: Any, version: int) -> Message | bytes | None:
        mood = 1.0 if self.is_well else self.random.random()
        if mood < 0.02:
            raise Close
        if mood < 0.03:
            return self.random.choice(GARBAGE)
        if mood < 0.04:
            return None
        if mood < 0.06:
            return DescribeClusterResponse(throttle_time_ms=self.random.randrange(30))
        return ANSWER


@pytest.mark.parametrize("seed", range(4))
def test_every_request_is_told_of_once_and_the_client_comes_back(seed: int) -> None:
    outcomes: dict[int, list[KafkaError | None]] = {}

    def done_of(number: int) -> Done:
        outcomes[number] = []
        return lambda answer, error: outcomes[number].append(error)

    async def send_all(client: NetworkClient) -> None:
        for number in range(REQUESTS):
            done = done_of(number)
            while client.in_flight_count(1) >= IN_FLIGHT or not client.send_nowait(1, DescribeClusterRequest(), done):
                if client.metadata.cluster.node_by_id(1) is None:
                    client.metadata.request_update()
                await client.wait_for_change(max(client.delay_ms(1), 10))

    async def run() -> None:
        moods = Moods(seed)
        async with Peer() as peer:
            peer.answers["DescribeCluster"] = moods.answer
            settings: dict[str, Any] = {
                "request_timeout_ms": 100,
                "reconnect_backoff_ms": 2,
                "reconnect_backoff_max_ms": 5,
                "retry_backoff_ms": 2,
            }
            async with network(peer.address, **settings) as client:
                await client.metadata.wait_for_update(0, 5000)
                await send_all(client)
                while client.in_flight_count():
                    await client.wait_for_change(50)
                moods.is_well = True
                while True:
                    try:
                        assert await client.send_to_any(DescribeClusterRequest(), timeout_ms=2000) == ANSWER
                        break
                    except KafkaError as error:
                        assert error.retriable

    on_loop(run)
    assert {number: len(errors) for number, errors in outcomes.items()} == dict.fromkeys(range(REQUESTS), 1)
    assert any(error is None for errors in outcomes.values() for error in errors)


def test_cancelled_senders_leave_nothing_behind() -> None:
    async def run() -> None:
        async with Peer() as peer, network(peer.address) as client:
            peer.answers["DescribeCluster"] = lambda request, version: None
            await client.metadata.wait_for_update(0, 5000)
            tasks = [asyncio.ensure_future(client.send(1, DescribeClusterRequest())) for _ in range(20)]
            await peer.wait_for("DescribeCluster", 20)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert all(task.cancelled() for task in tasks)
            assert client.in_flight_count(1) == 20, "the answers may still come, and are thrown away"
            peer.drop()
            while client.in_flight_count(1):
                await client.wait_for_change(1000)

    on_loop(run)
