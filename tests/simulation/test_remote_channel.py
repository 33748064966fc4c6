"""The controller's channel in a simulated network: in order, one at a time, until there is a response or the broker is removed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.broker.cluster.local_channel import LocalChannel
from barnabas.broker.cluster.remote_channel import RemoteChannel
from barnabas.broker.links.broker_links import BrokerLinks
from barnabas.endpoint import EndPoint
from barnabas.metadata.znodes.cluster import BrokerRegistration
from barnabas.network.config import NetworkConfig
from barnabas.network.exchange import Exchange
from barnabas.network.server import SocketServer
from barnabas.protocol.framing import parse_request, response_frame
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions_response import ApiVersionsResponse
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest
from barnabas.protocol.messages.update_metadata_response import UpdateMetadataResponse
from barnabas.simulation.cluster import PORT, SimulatedClock
from barnabas.simulation.loop import ProcessLoop
from barnabas.simulation.network import SimulatedNetwork
from barnabas.simulation.world import World

OTHER = 2


class Listening:
    """A broker that notes the controller epochs of what it is told."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    def is_pipelinable(self, frame: bytes) -> bool:
        return False

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        request = parse_request(frame)
        message: Any = request.message()
        answer: Message = ApiVersionsResponse()
        if isinstance(message, UpdateMetadataRequest):
            self.heard.append(message.controller_epoch)
            answer = UpdateMetadataResponse()
        header_version = request.api.response_header_version(request.version)
        exchange.respond(response_frame(answer, request.correlation_id, request.version, header_version))

    def took_long(self, taken_ns: int) -> None:
        pass


class Places:
    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.network = SimulatedNetwork(self.world)
        self.controller = self.process("broker-1")
        self.listening = Listening()
        self.answers: list[int] = []
        self.channel: RemoteChannel = self.controller.run_until_complete(self._channel())

    def process(self, name: str) -> ProcessLoop:
        return ProcessLoop(self.world, self.network, name, self.network.add_host(name))

    async def _channel(self) -> RemoteChannel:
        links = BrokerLinks("controller", SimulatedClock(self.controller), self.world.random)
        return RemoteChannel(1, LocalChannel({}), links, "PLAINTEXT")

    def start_other(self) -> ProcessLoop:
        async def serve() -> None:
            server = SocketServer(NetworkConfig(), self.listening, monotonic_ms=lambda: int(other.time() * 1000))
            await server.start([EndPoint("PLAINTEXT", "", PORT)])
            server.start_processing_requests()

        other = self.process("broker-2")
        other.run_until_complete(serve())
        return other

    def add_other(self) -> None:
        self.in_controller(self.channel.add_broker, OTHER, BrokerRegistration((EndPoint("PLAINTEXT", "broker-2", PORT),), 0))

    def send(self, epoch: int) -> None:
        request = UpdateMetadataRequest(controller_id=1, controller_epoch=epoch)
        self.in_controller(self.channel.send, OTHER, request, lambda _: self.answers.append(epoch))

    def in_controller(self, call: Any, *args: Any) -> None:
        async def run() -> None:
            call(*args)

        self.controller.run_until_complete(run())


@pytest.mark.parametrize("seed", range(5))
def test_requests_arrive_in_their_order(seed: int) -> None:
    places = Places(seed)
    places.start_other()
    places.add_other()
    for epoch in range(20):
        places.send(epoch)
    places.world.run_until(lambda: len(places.answers) == 20)
    assert places.listening.heard == places.answers == list(range(20))


@pytest.mark.parametrize("seed", range(10))
def test_a_broker_that_dies_and_comes_back_hears_all_of_it_in_order(seed: int) -> None:
    places = Places(seed)
    other = places.start_other()
    places.add_other()
    for epoch in range(20):
        places.send(epoch)
    places.world.run_for(places.world.random.random() * 0.02)
    other.crash()
    places.world.run_for(3)
    places.start_other()
    places.world.run_until(lambda: len(places.answers) == 20, limit_s=60)
    assert places.answers == list(range(20))
    assert places.listening.heard == sorted(places.listening.heard)  # one may be told twice, none too early
    assert set(places.listening.heard) == set(range(20))


def test_what_was_meant_for_a_broker_that_was_removed_is_dropped() -> None:
    places = Places(1)
    places.add_other()  # and nobody is there
    places.send(1)
    places.world.run_for(5)
    places.in_controller(places.channel.remove_broker, OTHER)
    places.start_other()
    places.world.run_for(5)
    assert places.listening.heard == []
    places.send(2)  # to who is not known any more
    places.add_other()
    places.send(3)
    places.world.run_until(lambda: places.answers == [3])


def test_nothing_is_left_behind_when_it_shuts_down() -> None:
    places = Places(1)
    places.start_other()
    places.add_other()
    places.send(1)
    places.in_controller(places.channel.shutdown)
    places.world.run_for(5)
    assert places.channel._workers == {}
    assert [error for _, error in places.world.failures if not isinstance(error, asyncio.CancelledError)] == []
