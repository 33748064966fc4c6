"""Bounds how many batches are decompressed at the same time. Client addresses take turns, and so do the connections of one address.

A client that sends batches which take long to decompress, on however many connections, delays those of another address by one batch. The
batches of one connection are decompressed in their order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class DecompressionSlots:
    """At most `at_once` batches are decompressed at the same time."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once  # more than 0 only while none waits
        self._waiting: dict[str, dict[str, deque[asyncio.Future[None]]]] = {}  # by address and by connection, the next turn first

    @asynccontextmanager
    async def turn_of(self, address: str, connection: str) -> AsyncIterator[None]:
        """A context in which one batch may be decompressed."""
        await self._enter(address, connection)
        try:
            yield
        finally:
            self._leave(address, connection)

    async def _enter(self, address: str, connection: str) -> None:
        if self._free > 0:
            self._free -= 1
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(address, {}).setdefault(connection, deque()).append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # the turn was given in the same iteration of the loop
                self._leave(address, connection)
            raise

    def _leave(self, address: str, connection: str) -> None:
        self._move_back(address, connection)  # behind those that began to wait since
        while self._waiting:
            future = self._pop()
            if not future.done():  # a done one was cancelled with its task
                future.set_result(None)
                return
        self._free += 1

    def _pop(self) -> asyncio.Future[None]:
        address, connections = next(iter(self._waiting.items()))
        connection, futures = next(iter(connections.items()))
        future = futures.popleft()
        if not futures:
            del connections[connection]
        if not connections:
            del self._waiting[address]
        self._move_back(address, connection)
        return future

    def _move_back(self, address: str, connection: str) -> None:
        connections = self._waiting.pop(address, None)
        if connections is None:
            return
        self._waiting[address] = connections
        futures = connections.pop(connection, None)
        if futures is not None:
            connections[connection] = futures
