"""One connection to one ZooKeeper server: sends and receives frames and reports its end. It has no notion of sessions."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final, cast

from barnabas.metadata.zookeeper import wire
from barnabas.metadata.zookeeper.address import Server

_SIZE_BYTES: Final = 4


class ZooKeeperLink(asyncio.Protocol):
    """`on_frame` receives every frame in order; its exception ends the connection. `ended` is done when the connection is closed."""

    def __init__(self, server: Server, on_frame: Callable[[ZooKeeperLink, bytes], None]) -> None:
        self.server = server
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Exception | None] = loop.create_future()
        self.sent_at = self.received_at = loop.time()
        self._loop = loop
        self._on_frame = on_frame
        self._unread = bytearray()
        self._transport: asyncio.Transport | None = None
        self._failure: Exception | None = None

    @classmethod
    async def open(cls, server: Server, on_frame: Callable[[ZooKeeperLink, bytes], None], tls: ssl.SSLContext | None) -> ZooKeeperLink:
        loop = asyncio.get_running_loop()
        if server.is_local:
            _, link = await loop.create_unix_connection(lambda: cls(server, on_frame), server.host)
        else:
            _, link = await loop.create_connection(lambda: cls(server, on_frame), server.host, server.port, ssl=tls)
        return link

    def send(self, frames: bytes) -> None:
        if self._transport is not None:
            self.sent_at = self._loop.time()
            self._transport.write(frames)

    def end(self, failure: Exception | None = None) -> None:
        self._failure = self._failure or failure
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received_at = self._loop.time()
        self._unread += data
        try:
            self._take_frames()
        except Exception as error:
            self.end(error)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if not self.ended.done():
            self.ended.set_result(self._failure or error)

    def _take_frames(self) -> None:
        at, unread = 0, self._unread
        while len(unread) - at >= _SIZE_BYTES:
            size = int.from_bytes(unread[at : at + _SIZE_BYTES], "big", signed=True)
            if not 0 <= size <= wire.FRAME_BYTES_MAX:
                raise wire.Malformed(f"{self.server} sent a frame of {size} bytes: it is no ZooKeeper server, or speaks TLS")
            end = at + _SIZE_BYTES + size
            if end > len(unread):
                break
            frame = bytes(unread[at + _SIZE_BYTES : end])
            at = end
            self._on_frame(self, frame)
        del unread[:at]
