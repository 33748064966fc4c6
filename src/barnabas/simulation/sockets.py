"""The endpoints of simulated connections: listening sockets, connected ones, and the transports that asyncio's protocols receive.

A transport sends as much as its peer's window allows and buffers the rest. Above the high-water mark it pauses its protocol. The window
grows again when the peer's protocol has consumed data.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.simulation.conversations import Conversation
from barnabas.simulation.loop import ProcessLoop
from barnabas.simulation.network import Lane, SimulatedNetwork

WINDOW_BYTES: Final = 262_144
HIGH_WATER_BYTES: Final = 65_536
TAKEN_BYTES: Final = WINDOW_BYTES // 4  # the receiver announces consumed bytes in steps of this size
SPLIT_CHANCE: Final = 0.2  # the probability that bytes written together arrive in two pieces

Buffer = bytes | bytearray | memoryview


class SimulatedSocket:
    """The part of `socket.socket` that the code under test uses."""

    def __init__(self, network: SimulatedNetwork, process: ProcessLoop, number: int) -> None:
        self.network = network
        self.process = process
        self.on_readable: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        self.transport: SimulatedTransport | None = None
        self._number = number
        self._name = (process.host, 0)
        self._peer_name: tuple[str, int] | None = None
        self._accepted: deque[SimulatedSocket] = deque()
        self._peer: SimulatedSocket | None = None
        self._lane: Lane | None = None
        self._conversation: Conversation | None = None
        self._is_client = False  # whether this is the client's end
        self._unattached: list[tuple[Callable[..., None], tuple[Any, ...]]] = []  # messages that arrived before there was a protocol
        self._is_closed = False

    def fileno(self) -> int:
        return self._number

    def setsockopt(self, *_: Any) -> None: ...

    def setblocking(self, _: bool) -> None: ...

    def getsockname(self) -> tuple[str, int]:
        return self._name

    def getpeername(self) -> tuple[str, int] | None:
        return self._peer_name

    def bind(self, address: tuple[str, int]) -> None:
        host = self.process.host if address[0] in ("", "::", "0.0.0.0") else self.network.address_of(address[0], self.process)
        self._name = (host, address[1] or self.network.free_port())
        if self._name in self.network.listening:
            raise OSError(errno.EADDRINUSE, "Address already in use")

    def listen(self, _: int = 0) -> None:
        self.network.listening[self._name] = self

    def accept(self) -> tuple[SimulatedSocket, tuple[str, int]]:
        if not self._accepted:
            raise BlockingIOError(errno.EAGAIN, "Nobody has connected")
        accepted = self._accepted.popleft()
        assert accepted._peer_name is not None
        return accepted, accepted._peer_name

    def notify_readable(self) -> None:
        if self.on_readable is not None and self._accepted:
            callback, args = self.on_readable
            self.process.call_soon(callback, *args)

    async def connect(self, address: tuple[str, int]) -> None:
        target = (self.network.address_of(address[0], self.process), address[1])
        self._name = (self.process.host, self.network.free_port())
        self._peer_name = target
        self._lane = Lane(self.network, self.process.host, target[0])
        connected: asyncio.Future[None] = self.process.create_future()
        self._lane.send(self._arrive_connect, target, connected)
        await connected

    def _arrive_connect(self, target: tuple[str, int], connected: asyncio.Future[None]) -> None:
        """Runs at the target host, which may or may not have a listening socket."""
        listening = self.network.listening.get(target)
        back = Lane(self.network, target[0], self.process.host)
        if listening is None or not listening.process.is_alive:
            back.send(self._complete_connect, connected, ConnectionRefusedError(errno.ECONNREFUSED, f"Nobody listens at {target}"))
            return
        accepted = self.network.socket(listening.process)
        accepted._name, accepted._peer_name = target, self._name
        accepted._peer, self._peer = self, accepted
        accepted._lane = back
        self._is_client = True
        self._conversation = accepted._conversation = self.network.conversations.begin(self.process.name, listening.process.name)
        listening._accepted.append(accepted)
        listening.notify_readable()
        back.send(self._complete_connect, connected, None)

    def _complete_connect(self, connected: asyncio.Future[None], error: OSError | None) -> None:
        def complete() -> None:
            if connected.done():
                return
            if error is None:
                connected.set_result(None)
            else:
                connected.set_exception(error)

        self.process.call_soon(complete)

    def attach(self, protocol: Any) -> SimulatedTransport:
        self.transport = SimulatedTransport(self, protocol)
        self.process.call_soon(protocol.connection_made, self.transport)
        for handle, args in self._unattached:
            self.process.call_soon(handle, *args)
        self._unattached.clear()
        return self.transport

    def send(self, what: str, *args: Any) -> None:
        """Sends a message to the other end: "data", "taken", "end" or "reset"."""
        if self._peer is not None and self._lane is not None:
            self._note(what, *args)
            self._lane.send_to(self._peer.process if self._peer.process.is_alive else self.network.kernel, self._peer.arrive, what, *args)

    def _note(self, what: str, *args: Any) -> None:
        conversation = self._conversation
        assert conversation is not None
        if what == "data" and self._is_client:
            conversation.client_sent(args[0])
        elif what == "data":
            conversation.server_sent(args[0])
        elif what != "taken" and self._is_client:
            conversation.closed_by_client()
        elif what != "taken":
            conversation.closed_by_server()

    def arrive(self, what: str, *args: Any) -> None:
        if self._is_closed or not self.process.is_alive:
            if what == "data":
                self.send("reset")
            return
        if self.transport is None:
            self._unattached.append((self._arrive_attached, (what, *args)))
        else:
            self._arrive_attached(what, *args)

    def _arrive_attached(self, what: str, *args: Any) -> None:
        assert self.transport is not None
        self.transport.arrived(what, *args)

    def reset(self) -> None:
        """As a kernel does for a process that has ended."""
        if not self._is_closed:
            self.close()
            self.send("reset")

    def break_off(self) -> None:
        """Both ends see that the connection is lost."""
        if not self._is_closed and self._peer is not None and self.transport is not None:
            self.transport.abort()

    def close(self) -> None:
        self._is_closed = True
        if self.network.listening.get(self._name) is self:
            del self.network.listening[self._name]
            for unaccepted in self._accepted:
                unaccepted.reset()


class SimulatedTransport(asyncio.Transport):
    def __init__(self, its_socket: SimulatedSocket, protocol: Any) -> None:
        super().__init__()
        self._socket = its_socket
        self._process = its_socket.process
        self._protocol = protocol
        self._unsent = bytearray()
        self._in_flight = 0
        self._received = bytearray()
        self._taken = 0
        self._has_ended = False  # the peer sends no more
        self._is_reading = True
        self._is_closing = False
        self._is_lost = False
        self._is_paused = False  # pause_writing was called
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4

    # Writing

    def write(self, data: Buffer) -> None:
        if self._is_closing or self._is_lost:
            return
        self._unsent += data
        self._send_what_fits()
        if len(self._unsent) > self._high and not self._is_paused:
            self._is_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        parts: Sequence[Buffer] = list_of_data
        self.write(b"".join(parts))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH_WATER_BYTES if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def _send_what_fits(self) -> None:
        room = WINDOW_BYTES - self._in_flight
        if room <= 0 or not self._unsent:
            return
        piece = bytes(self._unsent[:room])
        del self._unsent[:room]
        self._in_flight += len(piece)
        random = self._process.world.random
        at = random.randrange(1, len(piece)) if len(piece) > 1 and random.random() < SPLIT_CHANCE else 0
        for part in (piece[:at], piece[at:]) if at else (piece,):
            self._socket.send("data", part)

    # Messages from the other end

    def arrived(self, what: str, *args: Any) -> None:
        if self._is_lost:
            return
        if what == "data":
            self._received += args[0]
            self._deliver()
        elif what == "taken":
            self._in_flight -= args[0]
            self._send_what_fits()
            if self._is_paused and len(self._unsent) <= self._low:
                self._is_paused = False
                self._protocol.resume_writing()
            self._maybe_end()
        elif what == "end":
            self._has_ended = True
            self._deliver()
        else:
            self._lose(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))

    def _deliver(self) -> None:
        while self._is_reading and self._received and not self._is_closing and not self._is_lost:
            taken = self._give(bytes(self._received))
            del self._received[:taken]
            self._taken += taken
            if self._taken >= TAKEN_BYTES:
                self._socket.send("taken", self._taken)
                self._taken = 0
        if self._has_ended and not self._received and not self._is_lost:
            keep_open = self._protocol.eof_received() if hasattr(self._protocol, "eof_received") else False
            if not keep_open:
                self.close()

    def _give(self, data: bytes) -> int:
        if not hasattr(self._protocol, "get_buffer"):
            self._protocol.data_received(data)
            return len(data)
        buffer = self._protocol.get_buffer(len(data))
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        self._protocol.buffer_updated(size)
        return size

    # The rest of asyncio's interface

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        info = {"peername": self._socket.getpeername(), "sockname": self._socket.getsockname()}
        return info.get(name, default)

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_closing or self._is_lost

    def is_reading(self) -> bool:
        return self._is_reading and not self.is_closing()

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self._process.call_soon(self._deliver)

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._maybe_end()

    def abort(self) -> None:
        if not self._is_lost:
            self._socket.send("reset")
            self._lose(None)

    def _maybe_end(self) -> None:
        """Ends the connection once it is closed and all written bytes are sent."""
        if self._is_closing and not self._unsent and not self._is_lost:
            self._socket.send("end")
            self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        self._is_lost = True
        self._unsent.clear()
        self._received.clear()
        self._socket.close()
        self._process.call_soon(self._protocol.connection_lost, error)
