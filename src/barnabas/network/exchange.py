# Compiled by mypyc: src/compiled.toml lists this module.
"""A request with its pending response, and the interface of the dispatcher that answers it.

The rest of the broker uses only this of the network layer: frames arrive through `Dispatcher.dispatch`, responses leave through `Exchange`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from barnabas.network.streamed import Buffer, discard
from barnabas.protocol.slices import Streamed


class Peer(Protocol):
    """The connection of a request, as the dispatcher sees it. `session` belongs to the dispatcher: the identity of the peer and the state
    of its authentication."""

    id: str
    remote_ip: str
    session: object

    @property
    def listener_name(self) -> str: ...

    def extra_info(self, name: str) -> Any:
        """The extra info of asyncio's transport: `peername`, `peercert`, `ssl_object` …"""

    def authenticated(self) -> None:
        """The peer of a listener with SASL has a session: it may send requests of any size, and has no deadline any more."""

    def request_left_queue(self, size: int) -> None: ...

    def answered(self) -> None: ...

    def pipelining_resumed(self) -> None: ...


class Dispatcher(Protocol):
    """Receives the requests. It runs on the loop: it answers the exchange at once, or keeps it and answers later."""

    def is_pipelinable(self, frame: bytes) -> bool:
        """Whether this request may be dispatched while another pipelinable one of its connection is in process. Reads only the header."""

    def dispatch(self, exchange: Exchange, frame: bytes) -> None:
        """Handles a request. An exception closes the connection: a KafkaError logs one line, any other its traceback."""

    def took_long(self, taken_ns: int) -> None:
        """A turn of a connection took this long; the last dispatched requests are the cause."""


class Exchange:
    """One request with its pending response. Exactly one of `respond`, `no_response` and `close_connection` has to be called, at any
    time."""

    __slots__ = ("_in_queue", "_is_abandoned", "closes", "connection", "is_pipelinable", "received_ns", "response", "size")

    def __init__(self, connection: Peer, size: int, is_pipelinable: bool, received_ns: int) -> None:
        self.connection = connection
        self.size = size
        self.is_pipelinable = is_pipelinable
        self.received_ns = received_ns  # of time.perf_counter_ns
        self.response: Sequence[Buffer | Streamed] | None = None
        self.closes = False  # whether to close the connection after the response
        self._in_queue = True
        self._is_abandoned = False

    def respond(self, buffers: Sequence[Buffer | Streamed], close: bool = False) -> None:
        """Sends the response, a whole frame with its size, after all earlier responses; then closes the connection if `close`. The
        buffers must not change afterwards. Streamed parts are read as the peer accepts them, and closed in any case."""
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
        """The request is done and the peer expects no response: Produce with acks=0."""
        self.respond(())

    def close_connection(self) -> None:
        """Closes the connection in the order of the responses: this reports an error to a peer that expects no response."""
        self.respond((), close=True)

    def abandon(self) -> None:
        """The connection has ended: discards the response, whether it exists already or not."""
        self._is_abandoned = True
        if self.response is not None:
            discard(self.response)

    def hold_next(self) -> None:
        """The next request of the connection is not dispatched until `release_next` is called or this one is answered: it would overtake
        this one, whose work takes several turns of the loop."""
        self.is_pipelinable = False

    def release_next(self) -> None:
        """The part whose order matters is done; this request may still wait for replicas while the next one is handled."""
        if not self.is_pipelinable and self.response is None:
            self.is_pipelinable = True
            if not self._is_abandoned:
                self.connection.pipelining_resumed()

    def leave_queue(self) -> None:
        """From here on the request waits for an event and not for the broker: it no longer counts against queued.max.requests."""
        if self._in_queue:
            self._in_queue = False
            self.connection.request_left_queue(self.size)
