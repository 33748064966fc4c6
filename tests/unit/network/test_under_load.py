"""The bounds together: whatever is full, throttled, late or hostile, every good client gets all its answers in order."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import tracemalloc

import pytest

from barnabas.network.connection import Connection
from barnabas.network.exchange import Exchange
from barnabas.network.server import SocketServer
from tests.unit.network.harness import Echo, Keeper, client_of, framed, serving, until


class Capricious(Keeper):
    """Answers at once, later or out of order, throttles, and lets some requests leave the queue: all by chance."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        choice = self.chance.random()
        if choice < 0.05:
            assert isinstance(exchange.connection, Connection)
            exchange.connection.throttle(exchange.connection.context.monotonic_ms() + self.chance.randrange(5))
        if choice < 0.3:
            exchange.respond([framed(frame)])
            return
        if choice < 0.5:
            exchange.leave_queue()
        self.kept.append((exchange, frame))

    async def answer_all(self) -> None:
        while True:
            for _ in range(self.chance.randrange(4)):
                if self.kept:
                    exchange, frame = self.kept.pop(self.chance.randrange(len(self.kept)))
                    exchange.respond([framed(frame)])
            await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(5))
async def test_every_client_gets_all_answers_in_order_whatever_is_at_its_bound(seed: int) -> None:
    chance = random.Random(seed)
    capricious = Capricious(chance)
    limits = {
        "queued_max_requests": chance.choice([1, 2, 5]),
        "queued_max_request_bytes": chance.choice([-1, 3000]),
        "pipelined_requests_max": chance.choice([1, 3, 5]),
        "receive_buffer_bytes": chance.choice([64, 4096]),
        "write_high_water_bytes": chance.choice([0, 1000, 65536]),
    }
    async with serving(capricious, **limits) as server:
        answering = asyncio.create_task(capricious.answer_all())
        await asyncio.gather(*[one_client(server, random.Random(f"{seed}/{number}")) for number in range(12)])
        answering.cancel()
        assert (server.data_plane.requests, server.data_plane.request_bytes, server.data_plane.waiting) == (0, 0, 0)


async def one_client(server: SocketServer, chance: random.Random) -> None:
    bodies = [chance.choice([b"P", b"x"]) + chance.randbytes(chance.choice([0, 10, 2000])) for _ in range(100)]
    async with client_of(server) as client:
        sent = received = 0
        while received < len(bodies):
            count = chance.randrange(1, 20)
            client.send(*bodies[sent : sent + count])
            sent = min(len(bodies), sent + count)
            while received < sent and chance.random() < 0.9:
                assert await client.receive() == bodies[received]
                received += 1


async def test_after_a_storm_of_garbage_the_server_is_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # a line in memory for every peer would be what grows
    async with serving(Echo(), socket_request_max_bytes=5000) as server, client_of(server) as good:
        assert await good.ask(b"before") == b"before"
        await storm(server, random.Random(1), 300)  # what is made once, as caches, is made here
        grown = [await grown_by_a_storm(server, seed) for seed in (2, 3, 4)]
        assert await good.ask(b"after") == b"after"
        assert (server.quotas.total, len(server.idle), server.data_plane.requests) == (1, 1, 0)
        assert min(grown) < 100_000  # what a server kept of its peers, it would keep of every storm; other threads allocate now and then


async def grown_by_a_storm(server: SocketServer, seed: int) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        await storm(server, random.Random(seed), 750)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


async def storm(server: SocketServer, chance: random.Random, peers: int) -> None:
    """Peers that send noise, half frames, huge sizes and good frames, and then hang up in some way."""
    for _ in range(peers // 50):
        await asyncio.gather(*[garbage(server, random.Random(chance.random())) for _ in range(50)])
    await until(lambda: len(server.connections) == 1)


async def garbage(server: SocketServer, chance: random.Random) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port("PLAINTEXT"))
    for _ in range(chance.randrange(4)):
        kind = chance.randrange(4)
        good = framed(chance.randbytes(chance.randrange(3000)))
        writer.write([good, good[: chance.randrange(len(good))], chance.randbytes(50), b"\x7f\xff\xff\xff"][kind])
    if chance.random() < 0.5:
        writer.transport.abort()
    else:
        writer.close()
    try:
        await writer.wait_closed()
    except OSError:
        pass
