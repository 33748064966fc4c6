# Compiled by mypyc: src/compiled.toml lists this module.
"""A request and its answer to come, and the interface of what answers it.

This is all the rest of the broker sees of the network: frames come through `Dispatcher.dispatch`, responses go back through the `Exchange`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from barnabas.network.streamed import Buffer, discard
from barnabas.protocol.slices import Streamed


class Peer(Protocol):
    """The connection a request came by, as far as whoever answers may know it. `session` belongs to the dispatcher: who is at the other
    end, and how far that is proven."""

    id: str
    remote_ip: str
    session: object

    @property
    def listener_name(self) -> str: ...

    def extra_info(self, name: str) -> Any:
        """What asyncio's transports tell: `peername`, `peercert`, `ssl_object` …"""

    def request_left_queue(self, size: int) -> None: ...

    def answered(self) -> None: ...

    def pipelining_resumed(self) -> None: ...


class Dispatcher(Protocol):
    """What requests are handed to. It runs on the loop: it answers the exchange at once, or keeps it and answers later."""

    def is_pipelinable(self, frame: bytes) -> bool:
        """Whether this request may be handed over while another such one of its connection is in process. Looks at the first bytes only."""

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        """Handles a request. What it raises closes the connection: a KafkaError with one line in the log, anything else with its trace."""

    def took_long(self, taken_ns: int) -> None:
        """The turn of a connection that has just ended took so long; the last requests that were dispatched are to blame."""


class Exchange:
    """One request and its answer to come. Exactly one of `respond`, `no_response` and `close_connection` has to be called, at any time."""

    __slots__ = ("_in_queue", "_is_abandoned", "closes", "connection", "is_pipelinable", "received_ns", "response", "size")

    def __init__(self, connection: Peer, size: int, is_pipelinable: bool, received_ns: int) -> None:
        self.connection = connection
        self.size = size
        self.is_pipelinable = is_pipelinable
        self.received_ns = received_ns  # of time.perf_counter_ns
        self.response: Sequence[Buffer | Streamed] | None = None
        self.closes = False  # the connection, after the response
        self._in_queue = True
        self._is_abandoned = False

    def respond(self, buffers: Sequence[Buffer | Streamed], close: bool = False) -> None:
        """Sends the response, a whole frame with its size, when those before it have been sent; then closes the connection, if asked to.
        The buffers must not change afterwards; streamed parts are read as the peer takes them, and let go whatever happens."""
        if self.response is not None:
            raise RuntimeError(f"A request of {self.connection.id} was answered twice")
        self.response = buffers
        self.closes = close
        self.leave_queue()
        if self._is_abandoned:
            discard(buffers)
        else:
            self.connection.answered()

    def no_response(self) -> None:
        """The request is done and the peer expects nothing: Produce with acks=0."""
        self.respond(())

    def close_connection(self) -> None:
        """Closes the connection in this request's turn: how a peer that expects no response learns of an error."""
        self.respond((), close=True)

    def abandon(self) -> None:
        """The connection has ended: there is nobody to send the response to, which may have come or not."""
        self._is_abandoned = True
        if self.response is not None:
            discard(self.response)

    def hold_next(self) -> None:
        """The next request of the connection is not handed over before `release_next` is called, or this one is answered: it would
        overtake this one, whose work takes some turns of the loop."""
        self.is_pipelinable = False

    def release_next(self) -> None:
        """What order matters for is done; this request may still wait for replicas while the next is handled."""
        if not self.is_pipelinable and self.response is None:
            self.is_pipelinable = True
            if not self._is_abandoned:
                self.connection.pipelining_resumed()

    def leave_queue(self) -> None:
        """From here on the request waits for an event and not for the broker: it no longer counts against queued.max.requests."""
        if self._in_queue:
            self._in_queue = False
            self.connection.request_left_queue(self.size)
