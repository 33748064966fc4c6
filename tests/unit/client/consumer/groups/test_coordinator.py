"""Looking for the coordinator of a group, with a network that answers as it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from barnabas.client.clock import SystemClock
from barnabas.client.cluster import Node
from barnabas.client.consumer.membership.coordinator import CoordinatorRequestManager
from barnabas.client.errors import (
    CoordinatorNotAvailable,
    Disconnected,
    GroupAuthorization,
    KafkaError,
    NotCoordinator,
    Timeout,
    UnknownServerError,
)
from barnabas.client.network.backoff import ExponentialBackoff
from barnabas.client.network.network_client import NetworkClient
from barnabas.protocol.message import Message
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse

CLOCK = SystemClock()
NODE = Node(7, "h", 9092)


class Versions:
    def choose(self, api_key: int, *, highest: int | None = None) -> int:
        return 4


class Network:
    """The surface of a NetworkClient that a coordinator is reached by."""

    def __init__(self, *found: Node | KafkaError) -> None:
        self.found = list(found) or [NODE]
        self.lookups = 0
        self.connections: list[int] = []
        self.disconnected: list[int] = []
        self.failed = False
        self.delay = 0
        self.connected = True
        self.answer: Message | KafkaError = HeartbeatResponse()
        self.request_timeout_ms = 50
        self.gate: asyncio.Event | None = None

    def timeout(self, message: str) -> Timeout:
        return Timeout(message)

    async def find_coordinator(self, key: str, key_type: int, *, own_connection: bool) -> Node:
        self.lookups += 1
        if self.gate is not None:
            await self.gate.wait()
        found = self.found.pop(0) if len(self.found) > 1 else self.found[0]
        if isinstance(found, KafkaError):
            raise found
        return found

    def connection_failed(self, node_id: int) -> bool:
        return self.failed

    def delay_ms(self, node_id: int) -> int:
        return self.delay

    def ready(self, node_id: int) -> bool:
        self.connections.append(node_id)
        return self.connected

    def versions(self, node_id: int) -> Versions | None:
        return Versions() if self.connected else None

    def authentication_error(self, node_id: int) -> None:
        return None

    def disconnect(self, node_id: int) -> None:
        self.disconnected.append(node_id)

    async def wait_for_change(self, timeout_ms: int) -> None:
        await asyncio.sleep(timeout_ms / 1000)

    async def send(self, node_id: int, request: Message, *, timeout_ms: int | None, version: int) -> Message:
        if isinstance(self.answer, KafkaError):
            raise self.answer
        return self.answer


def coordinator(network: Network, backoff_ms: int = 1) -> CoordinatorRequestManager:
    return CoordinatorRequestManager(
        cast("NetworkClient", network), "g", clock=CLOCK, backoff=ExponentialBackoff(backoff_ms, backoff_ms * 2, jitter=0.0)
    )


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        return await work()

    return asyncio.run(main())


def in_ms(delay: int) -> int:
    return CLOCK.monotonic_ms() + delay


def send(one: CoordinatorRequestManager) -> Coroutine[Any, Any, HeartbeatResponse]:
    return one.send(HeartbeatRequest, lambda version: HeartbeatRequest(), HeartbeatResponse)


def test_the_coordinator_is_found_and_connected_to() -> None:
    network = Network()
    one = coordinator(network)
    calls: list[str] = []
    one.on_found.append(lambda: calls.append("found"))
    assert run(lambda: one.ensure_ready(in_ms(5000)))
    assert (one.node, one.is_unknown, network.connections, calls) == (NODE, False, [7], ["found"])


def test_looking_goes_on_while_there_is_none() -> None:
    network = Network(CoordinatorNotAvailable("not yet"), CoordinatorNotAvailable("not yet"), NODE)
    assert run(lambda: coordinator(network).ensure_ready(in_ms(5000)))
    assert network.lookups == 3


def test_looking_ends_at_the_deadline() -> None:
    network = Network(CoordinatorNotAvailable("not yet"))
    assert not run(lambda: coordinator(network).ensure_ready(in_ms(20)))


def test_polls_that_do_not_wait_do_not_ask_all_the_time() -> None:
    network = Network(CoordinatorNotAvailable("not yet"))
    one = coordinator(network, backoff_ms=10_000)

    async def work() -> None:
        for _ in range(50):
            assert not await one.ensure_ready(CLOCK.monotonic_ms())
            await asyncio.sleep(0)

    run(work)
    assert network.lookups == 1


def test_a_search_under_way_is_shared_and_outlives_who_began_it() -> None:
    network = Network()
    one = coordinator(network)

    async def work() -> None:
        network.gate = asyncio.Event()
        assert not await one.ensure_ready(in_ms(5))
        network.gate.set()
        assert await one.ensure_ready(in_ms(5000))

    run(work)
    assert network.lookups == 1


@pytest.mark.parametrize(
    ("problem", "raised"), [(UnknownServerError("no"), UnknownServerError), (GroupAuthorization("no"), GroupAuthorization)]
)
def test_what_makes_looking_pointless_is_raised(problem: KafkaError, raised: type[KafkaError]) -> None:
    with pytest.raises(raised):
        run(lambda: coordinator(Network(problem)).ensure_ready(in_ms(5000)))


def test_a_coordinator_that_is_none_any_more_is_left() -> None:
    network = Network()
    one = coordinator(network)
    run(lambda: one.ensure_ready(in_ms(5000)))
    one.note(NotCoordinator("elsewhere"))
    assert (one.node, network.disconnected) == (None, [7])


def test_other_errors_say_nothing_about_the_coordinator() -> None:
    one = coordinator(Network())
    run(lambda: one.ensure_ready(in_ms(5000)))
    one.note(UnknownServerError("what"))
    assert one.node == NODE


def test_a_broken_connection_that_must_wait_is_as_good_as_no_coordinator() -> None:
    network = Network()
    one = coordinator(network)
    run(lambda: one.ensure_ready(in_ms(5000)))
    network.failed, network.delay = True, 50
    assert one.node is None


def test_a_broken_connection_that_may_be_tried_again_is_tried_again() -> None:
    network = Network()
    one = coordinator(network)
    run(lambda: one.ensure_ready(in_ms(5000)))
    network.failed = True
    assert one.node == NODE


def test_a_coordinator_that_is_found_but_not_reached_yet_is_waited_for() -> None:
    network = Network()
    network.failed, network.delay = True, 50
    one = coordinator(network, backoff_ms=5)

    async def work() -> bool:
        ready = asyncio.ensure_future(one.ensure_ready(in_ms(5000)))
        while network.lookups < 3:
            await asyncio.sleep(0.001)
        network.delay = 0
        return await ready

    assert run(work)
    assert network.lookups < 10


def test_an_answer_comes_back() -> None:
    one = coordinator(Network())
    run(lambda: one.ensure_ready(in_ms(5000)))
    assert isinstance(run(lambda: send(one)), HeartbeatResponse)


def test_nothing_is_sent_while_the_coordinator_is_not_known() -> None:
    with pytest.raises(CoordinatorNotAvailable):
        run(lambda: send(coordinator(Network())))


def test_a_lost_connection_makes_the_coordinator_unknown() -> None:
    network = Network()
    one = coordinator(network)
    run(lambda: one.ensure_ready(in_ms(5000)))
    network.answer = Disconnected("gone")
    with pytest.raises(Disconnected):
        run(lambda: send(one))
    assert one.node is None


def test_a_connection_that_does_not_come_about_times_out() -> None:
    network = Network()
    one = coordinator(network)
    run(lambda: one.ensure_ready(in_ms(5000)))
    network.connected = False
    with pytest.raises(Timeout):
        run(lambda: send(one))
