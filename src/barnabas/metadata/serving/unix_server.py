"""The Unix socket of the served tree: accepts connections, cuts frames, and lets sessions expire.

Only the user of this process can connect: the socket has mode 0600, from before the first connection on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final, cast

from barnabas import system
from barnabas.metadata.errors import StoreUnusable
from barnabas.metadata.serving import server_wire
from barnabas.metadata.serving.tree_server import TICK_MS, TreeServer
from barnabas.metadata.zookeeper.wire import Malformed

log = logging.getLogger(__name__)

PATH_BYTES_MAX: Final = 100  # of the path of a Unix socket: 107 on Linux, 103 on macOS
_SIZE_BYTES: Final = 4
_OWNER_ONLY: Final = 0o177  # the umask under which the socket is made
_BACKLOG: Final = 128


class UnixServer:
    """Must be used on one event loop. `monotonic_ms` is the clock of the sessions."""

    def __init__(self, server: TreeServer, path: str, monotonic_ms: Callable[[], int]) -> None:
        self.path = path
        self._server = server
        self._monotonic_ms = monotonic_ms
        self._listening: asyncio.Server | None = None
        self._ticking: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Replaces a socket that a killed process has left: the caller holds the lock of the directory. Raises StoreUnusable."""
        if len(os.fsencode(self.path)) > PATH_BYTES_MAX:
            raise StoreUnusable(f"{self.path} is too long for a socket, which has at most {PATH_BYTES_MAX} bytes: use a shorter directory")
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(_OWNER_ONLY)
        try:
            with suppress(FileNotFoundError):
                os.unlink(self.path)
            listening.bind(self.path)
        except OSError as error:
            listening.close()
            raise StoreUnusable(
                f"The socket {self.path} cannot be made: {error.strerror}. This user must be able to write there"
            ) from error
        finally:
            os.umask(before)
        listening.setblocking(False)
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_unix_server(
            lambda: _Connection(self._server, self._monotonic_ms), sock=listening, backlog=_BACKLOG
        )
        self._tick()

    async def close(self) -> None:
        """Ends all sessions and removes the socket."""
        if self._ticking is not None:
            self._ticking.cancel()
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        self._server.close()
        with suppress(OSError):
            os.unlink(self.path)

    def _tick(self) -> None:
        self._server.tick(self._monotonic_ms())
        self._ticking = asyncio.get_running_loop().call_later(TICK_MS / 1000, self._tick)


class _Connection(asyncio.Protocol):
    def __init__(self, server: TreeServer, monotonic_ms: Callable[[], int]) -> None:
        self.process: int | None = None
        self._server = server
        self._monotonic_ms = monotonic_ms
        self._unread = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.process = system.peer_process(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        self._unread += data
        try:
            frames = self._frames()
            self._server.received(self, frames, self._monotonic_ms())
        except Malformed as error:
            log.warning("The connection of process %s to the metadata store is closed: %s", self.process, error)
            self.end()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._server.lost(self)

    def send(self, frames: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frames)

    def end(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _frames(self) -> list[bytes]:
        frames: list[bytes] = []
        at, unread = 0, self._unread
        while len(unread) - at >= _SIZE_BYTES:
            size = int.from_bytes(unread[at : at + _SIZE_BYTES], "big", signed=True)
            if not 0 <= size <= server_wire.FRAME_BYTES_MAX:
                raise Malformed(f"A frame of {size} bytes")
            end = at + _SIZE_BYTES + size
            if end > len(unread):
                break
            frames.append(bytes(unread[at + _SIZE_BYTES : end]))
            at = end
        del unread[:at]
        return frames
