"""The memory of requests that arrive: counted while they do, and bounded at the cost of whoever takes longest."""

from __future__ import annotations

import struct
from contextlib import AsyncExitStack

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.network.receive_memory import ReceiveMemory
from tests.unit.network.harness import Client, Echo, client_of, serving, until

MB = 1_000_000


class Receiver:
    def __init__(self) -> None:
        self.is_stopped = False

    def stop_receiving(self) -> None:
        self.is_stopped = True


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 300)), max_size=60))
def test_the_account_is_the_sum_and_within_the_limit_but_for_a_single_one(steps: list[tuple[int, int]]) -> None:
    memory = ReceiveMemory(500)
    receivers = [Receiver() for _ in range(6)]
    held: dict[int, int] = {}
    for number, size in steps:
        if size == 0:
            memory.release(receivers[number])
            held.pop(number, None)
        else:
            held[number] = size
            memory.hold(receivers[number], size)
            for stopped in [stopped for stopped in held if receivers[stopped].is_stopped]:
                del held[stopped]
                receivers[stopped] = Receiver()
        assert memory.used == sum(held.values())
        assert memory.used <= 500 or len(held) == 1


def test_the_oldest_is_stopped_first() -> None:
    memory = ReceiveMemory(100)
    first, second, third = Receiver(), Receiver(), Receiver()
    memory.hold(first, 40)
    memory.hold(second, 40)
    memory.hold(first, 50)  # it grows, and is still the oldest
    memory.hold(third, 20)
    assert (first.is_stopped, second.is_stopped, third.is_stopped) == (True, False, False)
    assert memory.used == 60 and memory.times_full == 1


def test_one_request_may_be_larger_than_the_limit() -> None:
    memory = ReceiveMemory(100)
    alone = Receiver()
    memory.hold(alone, 1_000)
    assert not alone.is_stopped


async def _send_part(client: Client, size: int, part: int) -> None:
    client.writer.write(struct.pack(">i", size) + bytes(part))
    await client.writer.drain()


async def test_peers_that_stop_in_the_middle_of_large_requests_are_closed_and_others_are_served() -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(Echo(), receiving_max_bytes=8 * MB))
        stalled = [await stack.enter_async_context(client_of(server)) for _ in range(10)]
        for client in stalled:
            await _send_part(client, 50 * MB, 2 * MB)
        assert await stalled[0].is_closed_by_server()
        assert server.receive_memory.used <= 8 * MB
        well_behaved = await stack.enter_async_context(client_of(server))
        assert await well_behaved.ask(bytes(3 * MB)) == bytes(3 * MB)
        for client in (*stalled, well_behaved):
            await client.close()
        await until(lambda: not server.connections)
        assert server.receive_memory.used == 0


async def test_nothing_is_held_when_requests_are_whole() -> None:
    async with serving(Echo()) as server, client_of(server) as client:
        for size in (10, 65_536, 65_540, 300_000, 3 * MB, 5 * MB + 17):
            assert len(await client.ask(bytes(size))) == size
            assert server.receive_memory.used == 0


async def test_what_has_come_of_a_request_counts_until_its_connection_ends() -> None:
    async with serving(Echo()) as server, client_of(server) as client:
        await _send_part(client, 5 * MB, 5 * MB - 10)  # the rest is too small to be received in place
        await until(lambda: server.receive_memory.used >= 4 * MB)
        await client.close()
        await until(lambda: server.receive_memory.used == 0)
