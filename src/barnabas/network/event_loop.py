"""The event loop of a broker: uvloop's, or asyncio's if uvloop is not installed; and the adapters each needs for sockets and protocols."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any, TypeVar

from barnabas.network.connection import Connection

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, on the fastest available loop."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()  # Any to mypy where uvloop is not installed, as in an isolated build
    return loop


def new_socket(loop: asyncio.AbstractEventLoop, family: int) -> socket.socket:
    """A socket of the system, or of the simulation if the loop is a simulated one."""
    make = getattr(loop, "new_socket", socket.socket)
    made: socket.socket = make(family, socket.SOCK_STREAM)
    return made


def protocol_of(connection: Connection, loop: asyncio.AbstractEventLoop) -> Any:
    """The connection as the protocol object that the loop accepts."""
    return _Derived(connection) if isinstance(loop, asyncio.BaseEventLoop) else connection


class _Derived(asyncio.BufferedProtocol):
    """asyncio's own loop passes buffers only to subclasses of BufferedProtocol; uvloop only checks for the methods."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def connection_made(self, transport: Any) -> None:
        self._connection.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._connection.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.buffer_updated(nbytes)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
