"""One connection to a broker: frames in both directions, with responses matched to requests in their order.

`NetworkClient` opens it, and passes requests with their versions. Memory grows only with the bytes received, never with a size that the
peer announces. When the connection ends for any reason, every pending request receives an error.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable
from struct import Struct
from time import perf_counter_ns
from typing import Any, Final, Protocol, cast

from barnabas.client.clock import Clock
from barnabas.client.errors import Disconnected, KafkaError, SslAuthentication, Timeout
from barnabas.protocol import api_keys
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.framing import SIZE_PREFIX, parse_response_header, request_frame
from barnabas.protocol.message import Message
from barnabas.protocol.registry import Api

_log = logging.getLogger(__name__)

RECEIVE_BUFFER_BYTES: Final = 65536
LARGE_ROOM_BYTES: Final = 1 << 20  # the first buffer for a frame that does not fit the receive buffer; it grows with the received bytes
ROOM_FACTOR: Final = 4
CORRELATION_ID_MAX: Final = 2**31 - 1
_TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")  # the first bytes of an alert and of a handshake record

_size_at = Struct(">i").unpack_from
Done = Callable[[Message | None, KafkaError | None], None]


class ClosedHere(Disconnected):
    """The client closed the connection itself; the broker has no fault."""


class Idle(ClosedHere):
    """The connection was unused for connections.max.idle.ms."""


class LostUnused(Disconnected):
    """The broker closed the connection while no request was pending, as it does after its own idle limit. No call failed."""


class InFlight:
    """A request that was written and has no response yet."""

    __slots__ = ("api", "correlation_id", "deadline_ms", "done", "sent_ms", "timeout_ms", "version")

    def __init__(self, api: Api, version: int, correlation_id: int, done: Done, sent_ms: int, timeout_ms: int) -> None:
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.done = done
        self.sent_ms = sent_ms
        self.timeout_ms = timeout_ms
        self.deadline_ms = sent_ms + timeout_ms


class Traffic(Protocol):
    """Receives the events of a connection with their times; the network client turns them into metrics."""

    def sent(self, size: int, now_ms: int) -> None: ...

    def received(self, size: int, now_ms: int) -> None: ...

    def answered(self, latency_ms: int, now_ms: int) -> None: ...

    def io_begins(self, now_ns: int) -> None:
        """The thread starts I/O on a socket. A second call before `io_ended` belongs to the same turn."""

    def io_ended(self, now_ns: int, now_ms: int, *, reading: bool) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """`on_lost` is called once with the error that ended the connection, after all pending requests have received it."""

    def __init__(
        self,
        name: str,
        *,
        client_id: str,
        clock: Clock,
        idle_ms: int,
        traffic: Traffic,
        host: str = "",
        on_lost: Callable[[Connection, KafkaError], None],
        on_room: Callable[[], None] = lambda: None,
        on_writable: Callable[[], None] = lambda: None,
        on_throttle: Callable[[int], None] = lambda throttle_ms: None,
    ) -> None:
        self.name = name
        self.host = host  # of the broker, as the client was given it: Kerberos names the service by it
        self.traffic = traffic
        self.is_open = False
        self.is_writable = True
        self.on_room = on_room  # after a response: another request may be sent
        self.on_writable = on_writable  # the peer was slow to read and has caught up
        self.on_throttle = on_throttle  # the broker is to receive no request for so many milliseconds
        self.last_active_ms = clock.monotonic_ms()
        self._client_id = client_id
        self._clock = clock
        self._idle_ms = idle_ms
        self._on_lost = on_lost
        self._in_flight: deque[InFlight] = deque()
        self._answers = 0
        self._is_tls = False
        self._correlation_id = 0
        self._transport: asyncio.Transport | None = None
        self._error: KafkaError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._buffer = bytearray(RECEIVE_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._used = 0
        self._turned_ns = 0  # when the loop last called us because there is data to read
        self._large: bytearray | None = None  # a frame that does not fit the receive buffer, without its size
        self._large_size = 0
        self._large_used = 0

    @property
    def in_flight_count(self) -> int:
        return len(self._in_flight)

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def send(self, api: Api, version: int, request: Message, done: Done, timeout_ms: int) -> None:
        """Writes a request. `done` is called with the response or an error, never before this method returns.

        A Produce with acks=0 has no response: `done(None, None)` is called when it is written. Raises UnsupportedVersion if the request has
        a field that the version does not support; then nothing was written.
        """
        began_ns = perf_counter_ns()
        self._correlation_id = self._correlation_id + 1 if self._correlation_id < CORRELATION_ID_MAX else 0
        buffers = request_frame(request, api, version, self._correlation_id, self._client_id)
        now_ms = self._clock.monotonic_ms()
        self.last_active_ms = now_ms
        if api.key == api_keys.PRODUCE and request.acks == 0:  # type: ignore[attr-defined]
            asyncio.get_running_loop().call_soon(done, None, None)
        else:
            waiting = InFlight(api, version, self._correlation_id, done, now_ms, timeout_ms)
            self._in_flight.append(waiting)
            self._watch(waiting.deadline_ms, now_ms)
        traffic = self.traffic
        traffic.io_begins(began_ns)
        try:
            self.transport.writelines(cast("list[bytes | bytearray | memoryview[Any]]", buffers))
            traffic.sent(sum(map(len, buffers)), now_ms)
        finally:
            traffic.io_ended(perf_counter_ns(), now_ms, reading=False)

    async def request(self, api: Api, version: int, request: Message, timeout_ms: int) -> Message:
        """Sends a request and awaits its response."""
        future: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        self.send(api, version, request, completing(future), timeout_ms)
        answer = await future
        assert answer is not None
        return answer

    def close(self, error: KafkaError) -> None:
        """Closes the connection; pending requests receive the error."""
        if self._error is not None:
            return
        self._error = error
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
        self._fail(error)

    def _fail(self, error: KafkaError) -> None:
        waiting, self._in_flight = self._in_flight, deque()
        for request in waiting:
            _call_done(request.done, None, error)
        self._on_lost(self, error)

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self._error is not None:
            self._transport.abort()
            return
        self.is_open = True
        self._is_tls = transport.get_extra_info("ssl_object") is not None
        now_ms = self.last_active_ms = self._clock.monotonic_ms()
        if self._idle_ms >= 0:
            self._watch(now_ms + self._idle_ms, now_ms)

    def connection_lost(self, exc: Exception | None) -> None:
        self.close(self._loss(exc))

    def _loss(self, exc: Exception | None) -> KafkaError:
        if self._answers == 0 and self._in_flight and not self._is_tls and not isinstance(exc, ssl.SSLError):
            # A TLS listener reacts like this to a plaintext request, unless it sends an alert first.
            return Disconnected(
                f"{self.name} closed the connection before it answered ApiVersions: "
                "if the broker speaks TLS on this port set security.protocol=SSL, otherwise it may be stopping, or no Kafka broker"
            )
        reason = "the broker closed it" if exc is None else str(exc) or type(exc).__name__
        if isinstance(exc, ssl.SSLError) and self._answers == 0:
            # With TLS 1.3, a broker reports only after the handshake that it rejects the client's certificate.
            return SslAuthentication(
                f"The TLS handshake with {self.name} failed: {getattr(exc, 'reason', None) or exc}; "
                "if the broker requires a client certificate, set ssl.keystore.*"
            )
        if self._answers <= 1 and self._in_flight:
            # A broker responds to ApiVersions before authentication, and closes the connection if it then receives another request instead
            # of SASL.
            reason += "; if that listener requires SASL or TLS, set security.protocol"
            if self._is_tls:
                reason += "; if it requires a client certificate, set ssl.keystore.*"
        kind = Disconnected if self._in_flight else LostUnused
        return kind(f"Connection to {self.name} was lost: {reason}")

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.is_writable = False

    def resume_writing(self) -> None:
        self.is_writable = True
        self.on_writable()

    def get_buffer(self, sizehint: int) -> memoryview:
        self._turned_ns = perf_counter_ns()
        if self._large is None:
            return self._view[self._used :]
        if self._large_used == len(self._large):
            more = min(self._large_size, ROOM_FACTOR * self._large_used) - self._large_used
            self._large += bytes(more)
        return memoryview(self._large)[self._large_used :]

    def buffer_updated(self, nbytes: int) -> None:
        now_ms = self.last_active_ms = self._clock.monotonic_ms()
        self.traffic.io_begins(self._turned_ns)
        try:
            self.traffic.received(nbytes, now_ms)
            self._take(nbytes)
        finally:
            self.traffic.io_ended(perf_counter_ns(), now_ms, reading=True)

    def _take(self, nbytes: int) -> None:
        if self._large is not None:
            self._large_used += nbytes
            if self._large_used < self._large_size:
                return
            frame, self._large = bytes(self._large), None
            self._answer(frame)
            return
        self._used += nbytes
        self._cut_frames()

    def _cut_frames(self) -> None:
        at = 0
        while self._used - at >= SIZE_PREFIX and self._error is None:
            size: int = _size_at(self._buffer, at)[0]
            if size < SIZE_PREFIX:
                self.close(Disconnected(_complaint(self.name, bytes(self._buffer[at : at + SIZE_PREFIX]))))
                return
            start, end = at + SIZE_PREFIX, at + SIZE_PREFIX + size
            if end > self._used:
                if not self._in_flight or _looks_foreign(self._buffer[at : at + SIZE_PREFIX]):
                    self.close(Disconnected(_complaint(self.name, bytes(self._buffer[at : at + SIZE_PREFIX]))))
                    return
                if SIZE_PREFIX + size > RECEIVE_BUFFER_BYTES:
                    self._begin_large(start, size)
                    return
                break
            at = end
            self._answer(bytes(self._view[start:end]))
        remaining = self._used - at
        if at and remaining:
            self._view[:remaining] = bytes(self._view[at : self._used])
        self._used = remaining

    def _begin_large(self, start: int, size: int) -> None:
        received = self._view[start : self._used]
        self._large = bytearray(min(size, max(LARGE_ROOM_BYTES, ROOM_FACTOR * len(received))))
        self._large[: len(received)] = received
        self._large_size, self._large_used = size, len(received)
        self._used = 0

    def _answer(self, frame: bytes) -> None:
        if not self._in_flight:
            self.close(Disconnected(f"{self.name} sent a response without a request"))
            return
        waiting = self._in_flight[0]
        try:
            correlation_id, reader = parse_response_header(frame, waiting.api.response_header_version(waiting.version))
            if correlation_id != waiting.correlation_id:
                raise MalformedMessage(f"Correlation id for response ({correlation_id}) does not match request ({waiting.correlation_id})")
            # A broker that does not support the version of ApiVersions responds in version 0; the error code is its first field.
            version = 0 if waiting.api.key == api_keys.API_VERSIONS and frame[4:6] == b"\x00\x23" else waiting.version
            message = waiting.api.response.read(reader, version)
        except KafkaError as error:
            self.close(Disconnected(f"{self.name} sent a response to {waiting.api.name} v{waiting.version} that cannot be read: {error}"))
            return
        self._in_flight.popleft()
        self._answers += 1
        self.traffic.answered(self.last_active_ms - waiting.sent_ms, self.last_active_ms)
        throttle_ms: int = getattr(message, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self.on_throttle(throttle_ms)
        _call_done(waiting.done, message, None)
        self.on_room()

    # Time

    def _watch(self, at_ms: int, now_ms: int) -> None:
        """Checks the time no later than `at_ms`. One timer serves all requests: usually it finds nothing to do, and is set again."""
        if self._timer is not None:
            if self._timer_ms <= at_ms:
                return
            self._timer.cancel()
        self._timer_ms = at_ms
        self._timer = asyncio.get_running_loop().call_later(max(at_ms - now_ms, 0) / 1000 + 0.001, self._look)

    def _look(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        for waiting in self._in_flight:
            if waiting.deadline_ms <= now_ms:
                self._time_out(waiting)
                return
        if 0 <= self._idle_ms <= now_ms - self.last_active_ms:
            self.close(Idle(f"Connection to {self.name} was idle for {self._idle_ms} ms (connections.max.idle.ms)"))
            return
        next_ms = [waiting.deadline_ms for waiting in self._in_flight]
        if self._idle_ms >= 0:
            next_ms.append(self.last_active_ms + self._idle_ms)
        if next_ms:
            self._watch(min(next_ms), now_ms)

    def _time_out(self, late: InFlight) -> None:
        """Times out a request. The broker may be gone without notice: the connection is closed, and with it all other pending requests."""
        self._in_flight.remove(late)
        message = f"{late.api.name} v{late.version} to {self.name} was not answered within {late.timeout_ms} ms"
        _call_done(late.done, None, Timeout(message))
        self.close(Disconnected(f"Connection to {self.name} was given up: {message}"))


def _call_done(done: Done, message: Message | None, error: KafkaError | None) -> None:
    """Calls the callback. An exception in it is not the connection's fault, and must not end the connection."""
    try:
        done(message, error)
    except Exception:
        _log.exception("A callback of a request failed")


def completing(future: asyncio.Future[Message | None]) -> Done:
    """A `done` that completes a future, unless the future was cancelled."""

    def done(message: Message | None, error: KafkaError | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(message)
        else:
            future.set_exception(error)

    return done


def _looks_foreign(start: bytes | bytearray) -> bool:
    return start == b"HTTP" or start[:2] in _TLS_RECORDS


def _complaint(name: str, start: bytes) -> str:
    if start == b"HTTP":
        return f"{name} answers with HTTP: that port does not speak Kafka's protocol; check the port"
    if start[:2] in _TLS_RECORDS:
        return f"{name} speaks TLS on this port; set security.protocol=SSL, or SASL_SSL if it also asks for a password"
    return f"{name} does not speak Kafka's protocol (it sent {start.hex(' ')}); check host and port, and security.protocol"
