"""Simulated time, processes and network: the real network layer runs on them, and one seed is one history."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.endpoint import EndPoint
from barnabas.network.config import NetworkConfig
from barnabas.network.exchange import Exchange
from barnabas.network.server import SocketServer
from barnabas.simulation.loop import ProcessLoop
from barnabas.simulation.network import SimulatedNetwork
from barnabas.simulation.world import Stuck, World

PORT = 9092


class Places:
    """A server and a client, each on a host of its own."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.network = SimulatedNetwork(self.world)
        self.server = self.process("server")
        self.client = self.process("client")

    def process(self, name: str) -> ProcessLoop:
        return ProcessLoop(self.world, self.network, name, self.network.add_host(name))


class Echo:
    def is_pipelinable(self, frame: bytes) -> bool:
        return False

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        exchange.respond([struct.pack(">i", len(frame)), frame])

    def took_long(self, taken_ns: int) -> None:
        """Real time, which passes on a busy machine, has no effect."""


async def serve(process: ProcessLoop) -> SocketServer:
    server = SocketServer(NetworkConfig(), Echo(), monotonic_ms=lambda: int(process.time() * 1000))
    await server.start([EndPoint("PLAINTEXT", "", PORT)])
    server.start_processing_requests()
    return server


class Asking(asyncio.Protocol):
    """Sends frames and notes what comes back."""

    def __init__(self) -> None:
        self.received = b""
        self.lost: list[Exception | None] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)

    def ask(self, *bodies: bytes) -> None:
        for body in bodies:
            self.transport.write(struct.pack(">i", len(body)) + body)


def connected(places: Places) -> Asking:
    async def connect() -> Asking:
        _, protocol = await places.client.create_connection(Asking, "server", PORT)
        return protocol  # type: ignore[no-any-return]

    places.server.run_until_complete(serve(places.server))
    client: Asking = places.client.run_until_complete(connect())
    return client


def until(places: Places, condition: Callable[[], bool], limit_s: float = 100) -> None:
    places.world.run_until(condition, limit_s)


def test_time_jumps_to_what_happens_next() -> None:
    places = Places()
    noted: list[float] = []

    async def sleep() -> None:
        for seconds in (1000, 0.5):
            await asyncio.sleep(seconds)
            noted.append(asyncio.get_running_loop().time())

    places.client.run_until_complete(sleep())
    assert noted == [1000, 1000.5]


def test_asyncios_timeouts_and_locks_work_in_it() -> None:
    places = Places()

    async def wait() -> str:
        lock = asyncio.Lock()
        async with lock:
            try:
                async with asyncio.timeout(5):
                    await lock.acquire()
            except TimeoutError:
                return f"late at {asyncio.get_running_loop().time():g}"
        return "never"

    assert places.client.run_until_complete(wait()) == "late at 5"


def test_what_goes_to_a_thread_comes_back_later() -> None:
    places = Places()

    async def compute() -> int:
        return await asyncio.get_running_loop().run_in_executor(None, sum, [1, 2, 3])

    assert places.client.run_until_complete(compute()) == 6
    assert places.world.now > 0


def test_frames_go_through_the_real_network_layer() -> None:
    places = Places()
    asking = connected(places)
    bodies = [b"%d" % number * 1000 for number in range(50)]
    asking.ask(*bodies)
    expected = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    until(places, lambda: len(asking.received) == len(expected))
    assert asking.received == expected


def test_a_large_frame_passes_though_windows_are_small() -> None:
    places = Places()
    asking = connected(places)
    asking.ask(bytes(range(256)) * 8000)
    until(places, lambda: len(asking.received) == 4 + 256 * 8000)
    assert asking.received[4:] == bytes(range(256)) * 8000


@pytest.mark.parametrize("seed", range(5))
def test_one_seed_is_one_history(seed: int) -> None:
    def history() -> tuple[int, int, float]:
        places = Places(seed)
        asking = connected(places)
        asking.ask(*[b"x" * number for number in range(1, 200)])
        until(places, lambda: len(asking.received) == sum(number + 4 for number in range(1, 200)))
        return places.world.trace, places.world.steps, places.world.now

    assert history() == history()


def test_two_seeds_are_two_histories() -> None:
    traces = set()
    for seed in range(5):
        places = Places(seed)
        asking = connected(places)
        asking.ask(b"a", b"b")
        until(places, lambda asking=asking: len(asking.received) == 10)  # type: ignore[misc]
        traces.add(places.world.trace)
    assert len(traces) == 5


def test_nobody_listens_means_refused() -> None:
    places = Places()
    with pytest.raises(ConnectionRefusedError):
        places.client.run_until_complete(places.client.create_connection(Asking, "server", PORT))


def test_a_cut_link_holds_everything_back_until_it_is_healed() -> None:
    places = Places()
    asking = connected(places)
    places.network.cut(places.client.host, places.server.host)
    asking.ask(b"held")
    places.world.run_for(60)
    assert asking.received == b""
    places.network.heal()
    until(places, lambda: asking.received == b"\0\0\0\4held")


def test_a_link_can_be_cut_one_way() -> None:
    places = Places()
    asking = connected(places)
    places.network.cut(places.server.host, places.client.host)
    asking.ask(b"heard")
    places.world.run_for(60)
    assert asking.received == b""
    places.network.heal()
    until(places, lambda: asking.received == b"\0\0\0\5heard")


def test_a_process_that_crashes_resets_its_connections() -> None:
    places = Places()
    asking = connected(places)
    places.server.crash()
    until(places, lambda: asking.lost != [])
    assert isinstance(asking.lost[0], ConnectionResetError)
    with pytest.raises(ConnectionRefusedError):
        places.client.run_until_complete(places.client.create_connection(Asking, "server", PORT))


def test_what_a_crashed_process_had_planned_never_happens() -> None:
    places = Places()
    done: list[int] = []
    places.server.call_later(5, done.append, 1)
    places.server.call_soon(done.append, 2)
    places.server.crash()
    places.world.run_for(10)
    assert done == []


def test_a_process_may_come_back_on_its_host() -> None:
    places = Places()
    connected(places)
    places.server.crash()
    places.server = places.process("server")
    asking = connected(places)
    asking.ask(b"again")
    until(places, lambda: asking.received == b"\0\0\0\5again")


def test_where_nothing_can_happen_any_more_it_says_so() -> None:
    places = Places(7)
    with pytest.raises(Stuck, match="seed 7: no event is left"):
        until(places, lambda: False)


def test_what_no_process_catches_is_a_failure_of_the_world() -> None:
    places = Places()

    def fail() -> None:
        raise ValueError("oh")

    places.client.call_soon(fail)
    places.world.run_for(1)
    assert [(name, str(error)) for name, error in places.world.failures] == [("client", "oh")]


def test_a_process_that_sleeps_finds_out_when_it_wakes_up() -> None:
    places = Places()
    noted: list[float] = []
    places.client.call_later(1, lambda: noted.append(places.world.now))
    places.client.sleep(5)
    places.world.run_for(4)
    assert noted == []
    places.world.run_for(2)
    assert noted == [5]


def test_both_ends_hear_that_a_connection_was_broken_off() -> None:
    places = Places()
    asking = connected(places)
    places.network.break_off(places.server)
    until(places, lambda: bool(asking.lost))
    assert isinstance(asking.lost[0], ConnectionResetError)


def test_a_link_that_was_slow_is_as_fast_as_before_when_it_is_healed() -> None:
    places = Places()
    places.network.set_delay(places.client.host, places.server.host, 1.0, 2.0)
    assert places.network.delay(places.client.host, places.server.host) >= 1.0
    places.network.heal()
    assert places.network.delay(places.client.host, places.server.host) < 1.0
