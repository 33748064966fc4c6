"""A server on loopback with a dispatcher the test controls, and clients that speak frames."""

from __future__ import annotations

import asyncio
import ssl
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from barnabas.endpoint import EndPoint
from barnabas.network.config import NetworkConfig
from barnabas.network.connection import Connection
from barnabas.network.exchange import Exchange
from barnabas.network.server import SocketServer

_OF_SERVER = ("inter_broker_listener", "control_plane_listener", "monotonic_ms", "descriptors", "address_rates")
LOOPBACK = EndPoint("PLAINTEXT", "127.0.0.1", 0)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Echo:
    """Answers every request at once with itself. A frame that begins with P may be pipelined."""

    def is_pipelinable(self, frame: bytes) -> bool:
        return frame[:1] == b"P"

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        exchange.respond([struct.pack(">i", len(frame)), frame])

    def took_long(self, taken_ns: int) -> None:
        pass


class Keeper(Echo):
    """Keeps every request until the test answers it."""

    def __init__(self) -> None:
        self.kept: list[tuple[Exchange, bytes]] = []

    @property
    def frames(self) -> list[bytes]:
        return [frame for _, frame in self.kept]

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        self.kept.append((exchange, frame))

    def answer(self, frame: bytes) -> None:
        """Answers the oldest request with this frame."""
        index = self.frames.index(frame)
        exchange, _ = self.kept.pop(index)
        exchange.respond([struct.pack(">i", len(frame)), frame])


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@asynccontextmanager
async def serving(dispatcher: Any, *endpoints: EndPoint, **settings: Any) -> AsyncIterator[SocketServer]:
    """A server in service; what is not a setting of the network goes to the server itself."""
    of_server = {name: settings.pop(name) for name in _OF_SERVER if name in settings}
    tls = settings.pop("tls", None)
    server = SocketServer(NetworkConfig(**settings), dispatcher, **of_server)
    await server.start(endpoints or [LOOPBACK], tls)
    server.start_processing_requests()
    try:
        yield server
    finally:
        await server.shutdown(0)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *bodies: bytes) -> None:
        self.writer.write(b"".join(framed(body) for body in bodies))

    async def receive(self) -> bytes:
        size = struct.unpack(">i", await self.reader.readexactly(4))[0]
        return await self.reader.readexactly(size)

    async def ask(self, body: bytes) -> bytes:
        self.send(body)
        return await self.receive()

    async def is_closed_by_server(self) -> bool:
        """Waits for the end of the stream; True if nothing came before it."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except (ConnectionError, OSError):
            pass


@asynccontextmanager
async def client_of(server: SocketServer, listener: str = "PLAINTEXT", host: str = "127.0.0.1", **options: Any) -> AsyncIterator[Client]:
    client = Client(*await asyncio.open_connection(host, server.port(listener), **options))
    try:
        yield client
    finally:
        await client.close()


async def until(condition: Callable[[], Any], seconds: float = 20) -> None:
    """Lets the loop run until it is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not become so in time"
        await asyncio.sleep(0)


async def the_connection(server: SocketServer) -> Connection:
    await until(lambda: len(server.connections) == 1)
    return server.connections[0]


def server_tls(certificate: Path) -> dict[str, ssl.SSLContext]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, f"{certificate}.key")
    return {"SSL": context}
