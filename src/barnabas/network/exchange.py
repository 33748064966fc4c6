# Compiled by mypyc: src/compiled.toml lists this module.
"""A request with its pending response, and the interface of the dispatcher that answers it.

The rest of the broker uses only this of the network layer: frames arrive through `Dispatcher.dispatch`, responses leave through `Exchange`.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any, Protocol

from mypy_extensions import i64

from barnabas.network.request_metrics import RequestMetrics
from barnabas.network.streamed import Buffer, discard
from barnabas.protocol.message import Message
from barnabas.protocol.slices import Streamed


class Peer(Protocol):
    """The connection of a request, as the dispatcher sees it. `session` and `client_software` belong to the dispatcher: the identity of the
    peer and the state of its authentication, and the name and version of its software, if it sent them in ApiVersions."""

    id: str
    remote_ip: str
    session: object
    client_software: tuple[str, str] | None

    @property
    def listener_name(self) -> str: ...

    def extra_info(self, name: str) -> Any:
        """The extra info of asyncio's transport: `peername`, `peercert`, `ssl_object` …"""

    def authenticated(self) -> None:
        """The peer of a listener with SASL has a session: it may send requests of any size, and has no deadline any more."""

    def throttle(self, until_ms: int) -> None:
        """Reads no request of the peer until then, by the monotonic clock of the broker. Responses are still sent."""

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


class Watcher(Protocol):
    """Watches one exchange, for the request log."""

    def response_made(self, response: Message) -> None:
        """Called before the response is written to bytes; not called for a response that exists only as bytes, or for none."""

    def completed(self, exchange: Exchange, handled_ns: int, complete_ns: int, sending_ns: int, sent_ns: int) -> None:
        """Called once, after the response was sent or discarded."""


class Exchange:
    """One request with its pending response. Exactly one of `respond`, `no_response` and `close_connection` has to be called, at any
    time.

    Its times are of time.perf_counter_ns. The request is received, dequeued when its turn comes, dispatched when the call of the dispatcher
    has returned, and complete when it has a response. `dispatched_ns` is 0 until then. `complete_ns` is 0 for a response during the
    call, whose time is `dispatched_ns`: so most requests read the clock once. With `is_task` the work goes on after the call has returned,
    and ends with the response. `metrics` is where the dispatcher has the times recorded, `version` the version that it counts."""

    __slots__ = (
        "_in_queue",
        "_is_abandoned",
        "closes",
        "complete_ns",
        "connection",
        "dequeued_ns",
        "dispatched_ns",
        "is_pipelinable",
        "is_task",
        "metrics",
        "received_ns",
        "response",
        "size",
        "throttle_ms",
        "version",
        "watcher",
    )

    def __init__(self, connection: Peer, size: int, is_pipelinable: bool, received_ns: int, dequeued_ns: int = 0) -> None:
        self.connection = connection
        self.size = size
        self.is_pipelinable = is_pipelinable
        self.received_ns: i64 = received_ns
        self.dequeued_ns: i64 = dequeued_ns
        self.dispatched_ns: i64 = 0
        self.complete_ns: i64 = 0
        self.is_task = False
        self.metrics: RequestMetrics | None = None
        self.watcher: Watcher | None = None
        self.version = 0
        self.throttle_ms = 0  # how long a quota has the client wait
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
        if self.dispatched_ns != 0:
            self.complete_ns = perf_counter_ns()
        self.leave_queue()
        if self._is_abandoned:
            discard(buffers)
            self.record(self.complete_ns, self.complete_ns)
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

    @property
    def is_abandoned(self) -> bool:
        """Whether the connection has ended: work for the response is in vain."""
        return self._is_abandoned

    def record(self, sending_ns: i64, sent_ns: i64) -> None:
        """Records the request, whose response was written from `sending_ns` to `sent_ns`. Called once, after the response."""
        metrics, watcher = self.metrics, self.watcher
        if self.response is None or (metrics is None and watcher is None):
            return
        complete_ns: i64 = self.complete_ns if self.complete_ns != 0 else self.dispatched_ns
        if watcher is not None:
            watcher.completed(self, complete_ns if self.is_task else self.dispatched_ns, complete_ns, sending_ns, sent_ns)
        if metrics is None:
            return
        response_size: i64 = 0
        for part in self.response:
            response_size += part.size if isinstance(part, Streamed) else len(part)
        metrics.record(
            self.version,
            self.size,
            response_size,
            self.throttle_ms,
            self.received_ns,
            self.dequeued_ns,
            complete_ns if self.is_task else self.dispatched_ns,
            complete_ns,
            sending_ns,
            sent_ns,
        )

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
