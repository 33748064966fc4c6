# Compiled by mypyc: src/compiled.toml lists this module.
"""One connection: receives bytes, passes whole frames to the dispatcher, sends responses in the order of the requests.

The layer between the event loop and the dispatcher. One request is in process at a time, except that requests the dispatcher calls
pipelinable (Produce) are dispatched up to a bound. The connection must never read on while the peer is at a bound, is throttled or does not
read its responses; and an error of a peer or of the dispatcher must never affect another connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any, Final, Protocol

from barnabas.errors import KafkaError
from barnabas.network.connection_context import ConnectionContext
from barnabas.network.direct_socket import DirectSocket, of_transport
from barnabas.network.exchange import Exchange
from barnabas.network.frames import InvalidFrame
from barnabas.network.streamed import UNSENDABLE, Buffer, ResponseStream, discard
from barnabas.protocol.slices import Streamed

# The number of small frames that a connection handles before others get their turn.
FRAMES_PER_TURN: Final = 64

# Large requests are received in pieces of this size. The context bounds what all connections of a listener receive in one iteration.
RECEIVED_AT_ONCE: Final = 256 << 10

# Up to this size, joining the buffers is cheaper than writing many.
JOIN_BYTES_MAX: Final = 16384

# A longer turn is reported to the dispatcher, because all other connections have waited meanwhile.
TURN_BUDGET_NS: Final = 50_000_000

# The number of pieces of a streamed response for a fast peer before others get their turn.
PIECES_PER_TURN: Final = 4

# The reasons to mute a connection. It is unmuted when none is left.
AT_BOUND: Final = 1  # its next request has to wait for one in process
WRITES_FULL: Final = 2  # the peer does not read its responses
THROTTLED: Final = 4  # by a quota
QUEUE_FULL: Final = 8  # queued.max.requests of the plane is reached
TURN_OVER: Final = 16  # other connections have their turn
CLOSING: Final = 32  # permanent: nothing more is read
STREAMING: Final = 64  # a response is being streamed from disk

_log = logging.getLogger(__name__)


class Transport(Protocol):
    """The part of asyncio's transports that is used; uvloop's transports do not derive from asyncio's."""

    def write(self, data: bytes) -> None: ...
    def writelines(self, list_of_data: Sequence[Buffer]) -> None: ...
    def set_write_buffer_limits(self, high: int | None = None) -> None: ...
    def get_write_buffer_size(self) -> int: ...
    def get_extra_info(self, name: str) -> Any: ...
    def is_closing(self) -> bool: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class Connection:
    """The protocol object of its transport. It works like an `asyncio.BufferedProtocol`, from which a compiled class cannot derive.

    `remote_ip` is the address in the quotas, while `is_counted`. `session` and `client_software` belong to the dispatcher: see `Peer`."""

    __slots__ = (
        "_authentication_timer",
        "_awaits_peer",
        "_corked",
        "_direct",
        "_frames",
        "_held",
        "_held_ns",
        "_holds_memory",
        "_in_flight",
        "_in_place",
        "_is_reading",
        "_muted",
        "_out",
        "_out_size",
        "_reads_piece",
        "_resume_scheduled",
        "_stream",
        "_stream_ns",
        "_throttle_timer",
        "_transport",
        "_unrecorded",
        "client_software",
        "context",
        "id",
        "is_counted",
        "remote_ip",
        "session",
        "throttled_until_ms",
    )

    def __init__(self, context: ConnectionContext, connection_id: str, remote_ip: str) -> None:
        self.context = context
        self.id = connection_id
        self.remote_ip = remote_ip
        self.is_counted = True
        self.session: object = None
        self.client_software: tuple[str, str] | None = None
        self.throttled_until_ms = 0
        self._transport: Transport | None = None
        self._frames = context.new_frame_reader()
        self._held: bytes | None = None  # a whole frame that may not be dispatched yet
        self._held_ns = 0  # when it began to wait for a place in the queue; 0 if it waits for the request before it
        self._in_place = False  # whether the loop receives into a frame
        self._holds_memory = False  # whether `receive_memory` counts an arriving request
        self._in_flight: list[Exchange] = []
        self._muted = 0
        self._is_reading = True
        self._resume_scheduled = False
        self._corked = False
        self._out: list[Buffer] = []
        self._out_size = 0
        self._unrecorded: list[Exchange] = []  # their responses are being sent; their times are recorded afterwards
        self._stream: ResponseStream | None = None  # must be sent before any other response
        self._stream_ns = 0  # when it began
        self._reads_piece = False
        self._direct: DirectSocket | None = None  # sends the stream with sendfile, where possible
        self._awaits_peer = False  # whether the loop calls back when the direct socket is writable
        self._throttle_timer: asyncio.TimerHandle | None = None
        self._authentication_timer: asyncio.TimerHandle | None = None  # runs until a peer of a SASL listener is authenticated

    # Public interface

    @property
    def listener_name(self) -> str:
        return self.context.listener_name

    @property
    def in_process(self) -> int:
        """The number of requests that are dispatched and whose responses are not sent yet."""
        return len(self._in_flight)

    @property
    def is_muted(self) -> bool:
        return self._muted != 0

    @property
    def is_reading(self) -> bool:
        """Whether the loop reads from the peer. A muted connection stops reading when the first bytes arrive that it may not handle."""
        return self._is_reading

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def extra_info(self, name: str) -> Any:
        """The extra info of asyncio's transport: `peername`, `peercert`, `ssl_object` …"""
        return None if self._transport is None else self._transport.get_extra_info(name)

    def authenticated(self) -> None:
        """The peer has a session: it may send requests of any size, and has no deadline any more."""
        self._frames.raise_bound(self.context.config.socket_request_max_bytes)
        self._stop_authentication_timer()

    def throttle(self, until_ms: int) -> None:
        """Mutes the connection until then, by the clock of the server. Responses are still sent."""
        self.throttled_until_ms = max(self.throttled_until_ms, until_ms)
        if self._throttle_timer is None and self._transport is not None:
            self._muted |= THROTTLED
            self._wait_for_throttle()

    def close(self) -> None:
        """Reads no more, and closes when the pending responses are sent, or when the peer has not read them for `linger_ms`."""
        self._muted |= CLOSING
        self._held = None
        self._frames.clear()
        self._release_memory()
        if self._transport is None or self._transport.is_closing():
            return
        self._flush()
        if self._stream is not None:
            self._abandon_in_flight()
        else:
            self._transport.close()
        if self._stream is not None or self._transport.get_write_buffer_size():
            self.context.loop.call_later(self.context.config.linger_ms / 1000, self.abort)

    def close_when_answered(self) -> None:
        """Reads no more, and closes when the requests in process are answered."""
        self._muted |= CLOSING
        if not self._in_flight:
            self.close()

    def stop_receiving(self) -> None:
        """Closes because the memory of arriving requests is full, and the request of this connection has been arriving for longest."""
        _log.warning(
            "Closing connection %s on listener %s: its request has been arriving for longest, and requests that arrive hold more than "
            "barnabas.requests.receiving.max.bytes",
            self.id,
            self.context.listener_name,
        )
        self.context.metrics.connections_closed_invalid += 1
        self._holds_memory = False
        self._muted |= CLOSING
        self.context.loop.call_soon(self.abort)  # the loop may be about to read from this connection

    def abort(self) -> None:
        """Closes at once, and drops unsent bytes."""
        self._muted |= CLOSING
        if self._transport is not None:
            self._transport.abort()

    # Called by the loop

    def connection_made(self, transport: Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=self.context.write_high_water_bytes)
        self.context.metrics.connections += 1
        self._note_activity()
        if self.context.requires_authentication:
            timeout_ms = self.context.config.authentication_timeout_ms
            self._authentication_timer = self.context.loop.call_later(timeout_ms / 1000, self._authentication_timed_out)
        self.context.opened(self)

    def eof_received(self) -> bool:
        """Whether to go on writing to a peer that has closed its side: no, as in Kafka."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._muted |= CLOSING
        self._held = None
        self._frames.clear()
        self._release_memory()
        self._out.clear()
        self._abandon_in_flight()
        self._drop_stream()
        if self._unrecorded:
            now_ns = perf_counter_ns()
            self._record_sent(now_ns, now_ns)
        self.context.gate.forget(self)
        if self._throttle_timer is not None:
            self._throttle_timer.cancel()
            self._throttle_timer = None
        self._stop_authentication_timer()
        self.context.metrics.connections -= 1
        self.context.metrics.connections_closed += 1
        self.context.closed(self)

    def get_buffer(self, size_hint: int) -> memoryview:
        # All connections share one buffer: between this call and buffer_updated the loop serves no other connection.
        room = self._frames.room()
        self._in_place = room is not None
        if room is not None and not self._muted & CLOSING:
            self._holds_memory = True
            self.context.receive_memory.hold(self, self._frames.held)
        return self.context.receive_view if room is None else room[:RECEIVED_AT_ONCE]

    def buffer_updated(self, size: int) -> None:
        self.context.metrics.bytes_in += size
        if self._muted & CLOSING:
            return
        self._note_activity()
        if self._in_place:
            is_turn_over = self.context.is_turn_over(size)
            if self._frames.received(size):
                self._release_memory()
                self.context.loop.call_soon(self._resume)  # the frame is complete, and can be taken once the loop has released it
            elif is_turn_over:
                self._end_turn()
            if self._muted:
                self._steer_reading()
        else:
            self._frames.feed(self.context.receive_view[:size])
            self._take_turn()

    def pause_writing(self) -> None:
        self._muted |= WRITES_FULL

    def resume_writing(self) -> None:
        self._note_activity()
        if self._stream is not None:
            self._muted &= ~WRITES_FULL
            self._send_pieces()
        else:
            self._unmute(WRITES_FULL)

    # Called by the gate and the exchanges

    def gate_opened(self) -> None:
        self._muted &= ~QUEUE_FULL
        if not self._muted:
            self._take_turn()

    def request_left_queue(self, size: int) -> None:
        self.context.gate.leave(size)

    @property
    def waiting_responses(self) -> int:
        """Responses that wait for an earlier one."""
        return sum([exchange.response is not None for exchange in self._in_flight])

    def answered(self) -> None:
        """One of its exchanges has been answered: sends the responses that are next in order."""
        if self._transport is None:
            return
        in_flight = self._in_flight
        while in_flight and (response := in_flight[0].response) is not None:
            exchange = in_flight.pop(0)
            if exchange.metrics is not None or exchange.watcher is not None:
                self._unrecorded.append(exchange)
            if response:
                self._send(response)
            if exchange.closes:
                self._abandon_in_flight()
                self.close()
                return
        if not self._corked:
            self._note_activity()
            self._flush()
            if self._unrecorded and self._stream is None:
                # The first is the one that was completed now; those behind it had to wait for it.
                self._record_sent(self._unrecorded[0].complete_ns, perf_counter_ns())
        if self._muted & CLOSING:
            self.close_when_answered()
        elif self._muted & AT_BOUND:
            self._unmute(AT_BOUND)

    def pipelining_resumed(self) -> None:
        """The last of its exchanges may be followed by another before it is answered, again."""
        if self._muted & AT_BOUND:
            self._unmute(AT_BOUND)

    def _authentication_timed_out(self) -> None:
        self._authentication_timer = None
        _log.info(
            "Closing connection %s on listener %s: not authenticated within barnabas.connection.authentication.timeout.ms",
            self.id,
            self.context.listener_name,
        )
        self.context.metrics.connections_closed_invalid += 1
        self.abort()

    def _stop_authentication_timer(self) -> None:
        if self._authentication_timer is not None:
            self._authentication_timer.cancel()
            self._authentication_timer = None

    # The path of a frame

    def _take_turn(self) -> None:
        """Dispatches the allowed frames, sends immediate responses in one write, and resumes or pauses reading."""
        started_ns = dispatched_ns = perf_counter_ns()
        self._corked = True
        try:
            dispatched_ns = self._dispatch_frames(started_ns)
        except Exception as error:
            self._give_up(error)
        self._corked = False
        self._frames.keep_rest()
        if self._holds_memory and self._frames.held == 0:
            self._release_memory()
        if self._out:
            self._flush()
        self._steer_reading()
        ended_ns = perf_counter_ns()
        if self._unrecorded and self._stream is None:
            self._record_sent(dispatched_ns, ended_ns)
        taken_ns = ended_ns - started_ns
        self.context.metrics.busy_ns += taken_ns
        if taken_ns > TURN_BUDGET_NS:
            self.context.dispatcher.took_long(taken_ns)

    def _release_memory(self) -> None:
        if self._holds_memory:
            self._holds_memory = False
            self.context.receive_memory.release(self)

    def _dispatch_frames(self, started_ns: int) -> int:
        """Returns when the last dispatch ended. The end of one is the begin of the next: the clock is read once for each request."""
        context = self.context
        dispatcher, gate, in_flight = context.dispatcher, context.gate, self._in_flight
        now_ns = started_ns
        for _ in range(FRAMES_PER_TURN):
            if self._muted:
                return now_ns
            frame = self._held if self._held is not None else self._frames.next_frame()
            if frame is None:
                return now_ns
            is_pipelinable = dispatcher.is_pipelinable(frame)
            if in_flight and not (is_pipelinable and in_flight[-1].is_pipelinable and len(in_flight) < context.pipelined_requests_max):
                self._hold(frame, AT_BOUND)
                return now_ns
            if not gate.enter(self, len(frame)):
                self._hold(frame, QUEUE_FULL)
                if self._held_ns == 0:
                    self._held_ns = started_ns
                return now_ns
            self._held = None
            context.metrics.requests += 1
            exchange = Exchange(self, len(frame), is_pipelinable, self._held_ns or started_ns, now_ns)
            self._held_ns = 0
            in_flight.append(exchange)
            try:
                dispatcher.dispatch(exchange, frame)
            except Exception:
                exchange.leave_queue()
                raise
            now_ns = exchange.dispatched_ns = perf_counter_ns()
        self._end_turn()
        return now_ns

    def _record_sent(self, sending_ns: int, sent_ns: int) -> None:
        unrecorded = self._unrecorded
        for exchange in unrecorded:
            exchange.record(sending_ns, sent_ns)
        unrecorded.clear()

    def _end_turn(self) -> None:
        """Other connections are served before this one continues, in the next iteration of the loop."""
        self._muted |= TURN_OVER
        self.context.loop.call_soon(self._unmute, TURN_OVER)

    def _hold(self, frame: bytes, reason: int) -> None:
        self._held = frame
        self._muted |= reason

    def _give_up(self, error: Exception) -> None:
        """The peer or the dispatcher failed: closes this connection, and no other is affected."""
        metrics, listener = self.context.metrics, self.context.listener_name
        if isinstance(error, (InvalidFrame, KafkaError)):
            metrics.connections_closed_invalid += 1
            _log.warning("Closing connection %s on listener %s: %s", self.id, listener, error)
        else:
            metrics.connections_closed_failed += 1
            _log.error("Closing connection %s on listener %s: handling a request failed", self.id, listener, exc_info=error)
        self.close()

    def _steer_reading(self) -> None:
        """Reading pauses only when bytes arrive that may not be handled: one request at a time costs no extra system call."""
        if self._transport is None or self._transport.is_closing():
            return
        should_read = not (self._muted and (self._held is not None or self._frames.unread))
        if should_read != self._is_reading:
            self._is_reading = should_read
            if should_read:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _unmute(self, reason: int) -> None:
        """Continues in a turn of its own, never inside the call that completed an exchange: that may be in the middle of another
        request."""
        if self._muted & reason:
            self._muted &= ~reason
            if not self._muted and not self._resume_scheduled:
                self._resume_scheduled = True
                self.context.loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._resume_scheduled = False
        if not self._muted:
            self._take_turn()

    def _wait_for_throttle(self) -> None:
        self._throttle_timer = None
        remaining_ms = self.throttled_until_ms - self.context.monotonic_ms()
        if remaining_ms > 0:
            self._throttle_timer = self.context.loop.call_later(remaining_ms / 1000, self._wait_for_throttle)
        else:
            self._unmute(THROTTLED)

    # The path of a response

    def _send(self, buffers: Sequence[Buffer | Streamed]) -> None:
        self.context.metrics.responses += 1
        if self._stream is not None:
            self._stream.add(buffers)
            return
        out = self._out
        for index, buffer in enumerate(buffers):
            if isinstance(buffer, Streamed):
                self._begin_stream(buffers[index:])
                return
            out.append(buffer)
            self._out_size += len(buffer)
        # Collected to be written together, up to the transport's own limit: only the transport detects a slow peer.
        if self._out_size >= self.context.write_high_water_bytes:
            self._flush()

    def _flush(self) -> None:
        if not self._out:
            return
        out, size = self._out, self._out_size
        self._out, self._out_size = [], 0
        if self._transport is None or self._transport.is_closing():
            return
        self.context.metrics.bytes_out += size
        if size <= JOIN_BYTES_MAX:
            self._transport.write(b"".join(out))
        else:
            self._transport.writelines(out)

    # The path of a streamed response

    def _begin_stream(self, parts: Sequence[Buffer | Streamed]) -> None:
        """Includes the responses collected before it. Until its end nothing more is read from the peer."""
        if self._transport is None or self._transport.is_closing():
            discard(parts)
            return
        self._stream = ResponseStream(self._out)
        self._stream.add(parts)
        self._out, self._out_size = [], 0
        self._muted |= STREAMING
        self._stream_ns = perf_counter_ns()
        self._direct = of_transport(self._transport)
        self._send_pieces()

    def _send_pieces(self) -> None:
        """Sends as many as the peer accepts. Continues when the peer is writable, when a piece is read from disk, or in a later turn."""
        stream = self._stream
        if stream is None or self._reads_piece or self._awaits_peer:
            return
        try:
            for _ in range(PIECES_PER_TURN):
                if self._muted & WRITES_FULL:
                    return
                sent = self._send_directly(stream)
                if sent == 0:
                    self._wait_for_peer()
                    return
                if sent == UNSENDABLE and not self._send_read(stream):
                    return
                if stream.is_empty:
                    self._end_stream()
                    return
        except ConnectionError:
            self.abort()  # the peer has disconnected, and the loop is about to report it
        except (OSError, ValueError) as error:
            self._stream_failed(error)
        else:
            self.context.loop.call_soon(self._send_pieces)

    def _send_directly(self, stream: ResponseStream) -> int:
        """Bypasses the transport, unless the transport still has bytes to send."""
        if self._direct is None or self._transport is None or self._transport.get_write_buffer_size():
            return UNSENDABLE
        sent = stream.send(self._direct)
        if sent > 0:
            self.context.metrics.bytes_out += sent
        return sent

    def _send_read(self, stream: ResponseStream) -> bool:
        """Sends one piece through the transport. False if it has to be read from disk first."""
        pieces = stream.take()
        if pieces:
            self._write_pieces(pieces)
        elif not stream.is_empty:
            self._reads_piece = True
            stream.take_later(self._piece_read)
            return False
        return True

    def _wait_for_peer(self) -> None:
        assert self._direct is not None
        self._awaits_peer = True
        self.context.loop.add_writer(self._direct.descriptor, self._peer_writable)

    def _peer_writable(self) -> None:
        self._stop_waiting()
        self._note_activity()
        self._send_pieces()

    def _stop_waiting(self) -> None:
        if self._awaits_peer and self._direct is not None:
            self._awaits_peer = False
            self.context.loop.remove_writer(self._direct.descriptor)

    def _write_pieces(self, pieces: Sequence[Buffer]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self.context.metrics.bytes_out += sum(map(len, pieces))
            self._transport.writelines(pieces)

    def _piece_read(self, piece: bytes | None, error: Exception | None) -> None:
        self._reads_piece = False
        if self._stream is None:  # the connection was closed meanwhile
            return
        if piece is None:
            self._stream_failed(error)
            return
        self._write_pieces((piece,))
        if self._stream.is_empty:
            self._end_stream()
        else:
            self._send_pieces()

    def _end_stream(self) -> None:
        self._stream = None
        self._close_direct()
        self._note_activity()
        if self._unrecorded and not self._corked:
            self._record_sent(self._stream_ns, perf_counter_ns())
        if self._muted & CLOSING:
            self.close_when_answered()
        else:
            self._unmute(STREAMING)

    def _stream_failed(self, error: Exception | None) -> None:
        """Half a frame has been sent, so nothing can follow it."""
        self._drop_stream()
        self.context.metrics.connections_closed_failed += 1
        _log.warning("Closing connection %s on listener %s in the middle of a response: %s", self.id, self.context.listener_name, error)
        self.close()

    def _drop_stream(self) -> None:
        if self._stream is not None:
            self._stream.clear()
            self._stream = None
        self._close_direct()

    def _close_direct(self) -> None:
        if self._direct is not None:
            self._stop_waiting()
            self._direct.close()
            self._direct = None

    def _abandon_in_flight(self) -> None:
        for exchange in self._in_flight:
            exchange.abandon()
        self._in_flight.clear()

    def _note_activity(self) -> None:
        self.context.idle.active(self, self.context.monotonic_ms())
