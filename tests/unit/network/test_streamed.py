"""Responses that are read while they are sent, through real sockets."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import struct
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from barnabas.endpoint import EndPoint, SecurityProtocol
from barnabas.network.exchange import Exchange
from barnabas.network.streamed import PIECE_BYTES
from barnabas.protocol.slices import Streamed
from tests.unit.network.harness import Echo, client_of, framed, server_tls, serving, the_connection, until

LARGE = random.Random(3).randbytes(5_000_000)


class Kept:
    """Bytes to be read in pieces. Those at `cold` positions come later, and at `fails_at` there is an error."""

    def __init__(self, data: bytes = LARGE, cold: bool = False, fails_at: int = 2**62) -> None:
        self.data = data
        self.cold = cold
        self.fails_at = fails_at
        self.read = 0
        self.closed = 0

    @property
    def part(self) -> Streamed:
        return Streamed(len(self.data), self)

    def read_nowait(self, at: int, size: int) -> bytes | None:
        if at >= self.fails_at:
            raise OSError("gone")
        return None if self.cold else self._piece(at, size)

    def read_later(self, at: int, size: int, on_done: Callable[[bytes | None, Exception | None], None]) -> None:
        asyncio.get_running_loop().call_soon(on_done, self._piece(at, size), None)

    def in_file(self, at: int, size: int) -> tuple[int, int] | None:
        return None

    def close(self) -> None:
        self.closed += 1

    def _piece(self, at: int, size: int) -> bytes:
        assert not self.closed
        self.read += size
        return self.data[at : at + size]


class KeptInFile(Kept):
    """Bytes that the kernel can send, except those of the pieces that begin at `unsendable` positions, which are read."""

    def __init__(self, path: Path, data: bytes = LARGE, unsendable: Collection[int] = ()) -> None:
        super().__init__(data)
        path.write_bytes(data)
        self.file = path.open("rb")
        self.unsendable = unsendable
        self.sent_to = 0

    def in_file(self, at: int, size: int) -> tuple[int, int] | None:
        if at in self.unsendable:
            return None
        self.sent_to = at + size
        return self.file.fileno(), at

    def close(self) -> None:
        super().close()
        self.file.close()


class Streaming(Echo):
    """Answers 'large' with what is kept, everything else with itself."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        if frame != b"large":
            super().dispatch(exchange, frame)
            return
        exchange.respond([struct.pack(">i", len(self.kept.data) + 6), b"abc", self.kept.part, b"xyz"])


def silent_peer(port: int) -> socket.socket:
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.connect(("127.0.0.1", port))
    return peer


@pytest.mark.parametrize("cold", [False, True])
async def test_what_is_streamed_arrives_whole_between_its_neighbours(cold: bool) -> None:
    kept = Kept(cold=cold)
    async with serving(Streaming(kept)) as server, client_of(server, limit=1 << 23) as client:
        assert await client.ask(b"large") == b"abc" + LARGE + b"xyz"
        assert kept.closed == 1


@pytest.mark.linux
async def test_what_lies_in_a_file_is_sent_without_being_read(tmp_path: Path) -> None:
    kept = KeptInFile(tmp_path / "kept")
    async with serving(Streaming(kept)) as server, client_of(server, limit=1 << 23) as client:
        assert await client.ask(b"large") == b"abc" + LARGE + b"xyz"
        assert (kept.read, kept.closed) == (0, 1)
        assert server.listeners["PLAINTEXT"].context.metrics.bytes_out == len(LARGE) + 10


async def test_pieces_that_have_to_be_read_and_such_that_have_not_keep_their_order(tmp_path: Path) -> None:
    kept = KeptInFile(tmp_path / "kept", unsendable={0, PIECE_BYTES, 8 * PIECE_BYTES})
    async with serving(Streaming(kept)) as server, client_of(server, limit=1 << 23) as client:
        for _ in range(2):
            client.send(b"before", b"large")
            assert await client.receive() == b"before"
            assert await client.receive() == b"abc" + LARGE + b"xyz"
            kept.file, kept.closed = (tmp_path / "kept").open("rb"), 0
        kept.close()


async def test_on_a_tls_connection_a_file_is_read(tmp_path: Path, certificate: Path) -> None:
    kept, trusting = KeptInFile(tmp_path / "kept"), ssl.create_default_context(cafile=str(certificate))
    async with (
        serving(Streaming(kept), EndPoint("SSL", "127.0.0.1", 0, SecurityProtocol.SSL), tls=server_tls(certificate)) as server,
        client_of(server, "SSL", ssl=trusting, limit=1 << 23) as client,
    ):
        assert await client.ask(b"large") == b"abc" + LARGE + b"xyz"
        assert kept.read == len(LARGE)


@pytest.mark.linux
async def test_a_slow_reader_of_a_file_costs_nothing_and_is_waited_for(tmp_path: Path) -> None:
    kept = KeptInFile(tmp_path / "kept", LARGE * 10)
    async with serving(Streaming(kept)) as server:
        with silent_peer(server.port("PLAINTEXT")) as peer:
            peer.sendall(framed(b"large"))
            connection = await the_connection(server)
            await until(lambda: connection._awaits_peer)
            assert connection._transport is not None
            assert (kept.read, connection._transport.get_write_buffer_size()) == (0, 0)
            assert kept.sent_to < len(kept.data)
            peer.setblocking(False)
            received = bytearray()
            while len(received) < len(kept.data) + 10:
                received += await asyncio.get_running_loop().sock_recv(peer, 1 << 20)
            assert received[7:-3] == kept.data
            await until(lambda: kept.closed == 1)


@pytest.mark.linux
async def test_a_reader_of_a_file_that_goes_lets_go_of_it(tmp_path: Path) -> None:
    kept = KeptInFile(tmp_path / "kept", LARGE * 10)
    async with serving(Streaming(kept)) as server:
        with silent_peer(server.port("PLAINTEXT")) as peer:
            peer.sendall(framed(b"large"))
            connection = await the_connection(server)
            await until(lambda: connection._awaits_peer)
        await until(lambda: not server.connections)
        assert (kept.closed, connection._direct) == (1, None)


@pytest.mark.linux
async def test_a_file_that_was_cut_while_it_was_sent_closes_the_connection(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = KeptInFile(tmp_path / "kept")
    (tmp_path / "kept").write_bytes(LARGE[:1000])
    async with serving(Streaming(kept)) as server, client_of(server, limit=1 << 23) as client:
        client.send(b"large")
        with pytest.raises(asyncio.IncompleteReadError):
            await client.receive()
    assert "truncated while it was being sent" in caplog.text
    assert kept.closed == 1


async def test_responses_around_a_streamed_one_keep_their_order() -> None:
    kept = Kept()
    async with serving(Streaming(kept)) as server, client_of(server, limit=1 << 23) as client:
        client.send(b"before", b"large", b"after")
        assert await client.receive() == b"before"
        assert await client.receive() == b"abc" + LARGE + b"xyz"
        assert await client.receive() == b"after"


async def test_a_slow_reader_costs_about_a_piece() -> None:
    kept = Kept(bytes(50_000_000))
    async with serving(Streaming(kept)) as server:
        with silent_peer(server.port("PLAINTEXT")) as peer:
            peer.sendall(framed(b"large") + framed(b"next"))
            connection = await the_connection(server)
            await until(lambda: kept.read and not connection.is_reading)
            transport: Any = connection._transport
            assert transport.get_write_buffer_size() < 2 * PIECE_BYTES
            assert kept.read < 5_000_000
            assert server.listeners["PLAINTEXT"].context.metrics.requests == 1
            async with client_of(server) as other:
                assert await other.ask(b"still here") == b"still here"


async def test_a_reader_that_goes_lets_go_of_what_was_not_sent() -> None:
    kept = Kept(bytes(50_000_000))
    async with serving(Streaming(kept)) as server:
        with silent_peer(server.port("PLAINTEXT")) as peer:
            peer.sendall(framed(b"large"))
            await until(lambda: kept.read)
        await until(lambda: not server.connections)
        assert kept.closed == 1


async def test_a_source_that_fails_in_the_middle_closes_the_connection_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept(fails_at=PIECE_BYTES)
    async with serving(Streaming(kept)) as server, client_of(server) as client, client_of(server) as other:
        client.send(b"large")
        with pytest.raises(asyncio.IncompleteReadError):
            await client.receive()
        assert kept.closed == 1
        assert await other.ask(b"fine") == b"fine"
    lines = [record.getMessage() for record in caplog.records if record.name == "barnabas.network.connection"]
    assert len(lines) == 1 and "in the middle of a response: gone" in lines[0]


async def test_a_connection_that_is_closed_sends_the_stream_to_its_end() -> None:
    kept = Kept()
    async with serving(Streaming(kept)) as server, client_of(server, limit=1 << 23) as client:
        client.send(b"large")
        await until(lambda: kept.read)
        server.connections[0].close()
        assert await client.receive() == b"abc" + LARGE + b"xyz"
        assert await client.is_closed_by_server()


async def test_a_clean_shutdown_sends_the_stream_to_its_end() -> None:
    kept = Kept()
    async with serving(Streaming(kept)) as server, client_of(server, limit=1 << 23) as client:
        client.send(b"large")
        await until(lambda: kept.read)
        ending = asyncio.ensure_future(server.shutdown(20_000))
        assert await client.receive() == b"abc" + LARGE + b"xyz"
        assert await ending


async def test_a_quick_shutdown_cuts_the_stream_and_lets_it_go() -> None:
    kept = Kept(bytes(50_000_000))
    async with serving(Streaming(kept)) as server:
        with silent_peer(server.port("PLAINTEXT")) as peer:
            peer.sendall(framed(b"large"))
            metrics = server.listeners["PLAINTEXT"].context.metrics
            await until(lambda: kept.read and metrics.connections_accepted)
            assert not await server.shutdown(0)
        assert kept.closed == 1


async def test_an_answer_after_the_client_has_gone_lets_go_of_its_parts() -> None:
    class Later(Echo):
        exchange: Exchange | None = None

        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            self.exchange = exchange

    later, kept = Later(), Kept()
    async with serving(later) as server:
        async with client_of(server) as client:
            client.send(b"large")
            await until(lambda: later.exchange)
        await until(lambda: not server.connections)
        assert later.exchange is not None
        later.exchange.respond([kept.part])
        assert (kept.closed, kept.read) == (1, 0)


async def test_many_small_parts_go_out_together() -> None:
    parts = [Kept(bytes([index]) * 3000) for index in range(100)]

    class Many(Echo):
        def dispatch(self, exchange: Exchange, frame: bytes) -> None:
            exchange.respond([struct.pack(">i", 300_000), *(part.part for part in parts)])

    async with serving(Many()) as server, client_of(server, limit=1 << 20) as client:
        assert await client.ask(b"?") == b"".join(part.data for part in parts)
        assert [part.closed for part in parts] == [1] * 100
