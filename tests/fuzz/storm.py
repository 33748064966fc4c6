"""Sends the frames of a seed to a broker over several connections, and judges every answer.

A request that is whole must be answered, in its turn, with a response that can be read and holds no UNKNOWN_SERVER_ERROR; a damaged one may
be answered, or its connection closed. Which frames are sent depends on the seed alone; how they interleave does not.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import parse_response_header
from barnabas.protocol.message import Message
from barnabas.protocol.registry import BY_NAME
from barnabas.uuid import Uuid
from tests.fuzz import noise, sasl
from tests.fuzz.frames import Frame, make_frame
from tests.fuzz.target import HOST, Target

CONNECTIONS = 8
LIFE = 40  # so many frames of the seed are one connection's, as long as nothing closes it
SHARE = 8  # every eighth life is one that knows no schema, and another one is spent on the SASL listener
NOISE, SASL = 7, 6
ANSWER_TIMEOUT_S = 30
SILENCE_S = 0.05  # how long to wait for an answer that need not come
FINDINGS_MAX = 50


@dataclass
class Outcome:
    frames: int = 0
    answered: int = 0
    closed: int = 0
    silent: int = 0
    connections: int = 0
    by_api: Counter[str] = field(default_factory=Counter)
    errors: Counter[int] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    sent_by_port: dict[int, deque[Frame]] = field(default_factory=dict)  # to find the frame that a line of the broker's log is about


def storm(target: Target, seed: int, numbers: range, ids: Mapping[str, Uuid]) -> Outcome:
    """Sends these frames of the seed."""
    outcome = Outcome()
    lives = iter([numbers[at : at + LIFE] for at in range(0, len(numbers), LIFE)])
    lock = threading.Lock()
    workers = [threading.Thread(target=_work, args=(target, seed, lives, lock, ids, outcome)) for _ in range(CONNECTIONS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return outcome


def _work(target: Target, seed: int, lives: Iterator[range], lock: threading.Lock, ids: Mapping[str, Uuid], outcome: Outcome) -> None:
    while len(outcome.findings) < FINDINGS_MAX:
        with lock:
            numbers = next(lives, None)
        if numbers is None:
            return
        own = Outcome()
        try:
            kind = numbers[0] // LIFE % SHARE
            if kind == NOISE:
                own.frames += noise.live(target.port, seed, numbers)
            elif kind == SASL:
                own.findings += sasl.live(target.sasl_port, seed, numbers, ids)
                own.frames += len(numbers)
            else:
                _Life(target.port, own).live([make_frame(seed, number, ids) for number in numbers])
        except Exception as error:
            own.findings.append(f"frames {numbers[0]} to {numbers[-1]}: {error!r}")
        with lock:
            _add(outcome, own)


def _add(outcome: Outcome, own: Outcome) -> None:
    for name in ("frames", "answered", "closed", "silent", "connections"):
        setattr(outcome, name, getattr(outcome, name) + getattr(own, name))
    outcome.by_api += own.by_api
    outcome.errors += own.errors
    outcome.findings += own.findings
    outcome.sent_by_port |= own.sent_by_port


class _Closed(Exception):
    pass


class _Life:
    """One connection after the other, until all its frames have been sent."""

    def __init__(self, port: int, outcome: Outcome) -> None:
        self.port = port
        self.outcome = outcome
        self.socket: socket.socket | None = None
        self.received = bytearray()
        self.after_no_answer = False  # the broker may still be about to close the connection for what it could not answer

    def live(self, frames: list[Frame]) -> None:
        whole: list[Frame] = []
        for frame in frames:
            self.outcome.frames += 1
            self.outcome.by_api[frame.api] += 1
            if frame.is_whole and not frame.may_wait and not frame.has_no_answer:
                whole.append(frame)
                continue
            self._ask(whole)
            whole = []
            self._provoke(frame)
        self._ask(whole)
        self._close()

    def _ask(self, frames: list[Frame]) -> None:
        """Sends them in one go and reads an answer to each, in their order."""
        waiting = deque(frames)
        while waiting:
            fresh = self.socket is None
            try:
                self._exchange(b"".join([frame.data for frame in waiting]), waiting)
                self.after_no_answer = False
            except _Closed:
                self._close()
                if self.after_no_answer and not fresh:
                    self.after_no_answer = False
                    continue
                self._found(f"{waiting[0]} is whole, but the connection was closed")
                waiting.popleft()

    def _exchange(self, data: bytes, waiting: deque[Frame]) -> None:
        connection = self._connected(waiting)
        unsent = memoryview(data)
        until = time.monotonic() + ANSWER_TIMEOUT_S
        while waiting:
            readable, writable, _ = select.select([connection], [connection] if unsent else [], [], max(0, until - time.monotonic()))
            if not readable and not writable:
                self._found(f"{waiting[0]} got no answer within {ANSWER_TIMEOUT_S} s")
                self._close()
                waiting.popleft()
                return
            if writable:
                try:
                    unsent = unsent[connection.send(unsent) :]
                except OSError as error:
                    raise _Closed from error
            if readable:
                self._receive()
                while waiting and (response := self._response()) is not None:
                    self._judge(waiting.popleft(), response)
                    until = time.monotonic() + ANSWER_TIMEOUT_S

    def _provoke(self, frame: Frame) -> None:
        """Sends one that may be answered, or refused, or neither."""
        connection = self._connected([frame])
        try:
            connection.setblocking(True)
            connection.sendall(frame.data)
            if frame.has_no_answer:
                self.after_no_answer = True
                self.outcome.silent += 1
                return
            while (response := self._response()) is None:
                if not select.select([connection], [], [], SILENCE_S)[0]:
                    self.outcome.silent += 1
                    self._close()
                    return
                self._receive()
            self.after_no_answer = False
            self._judge(frame, response)
        except (_Closed, OSError):
            self.outcome.closed += 1
            self._close()

    def _judge(self, frame: Frame, response: bytes) -> None:
        self.outcome.answered += 1
        if not frame.is_whole:
            return
        api = BY_NAME[frame.api]
        try:
            correlation_id, reader = parse_response_header(response, api.response_header_version(frame.version))
            message = api.response.read(reader, frame.version)
            reader.finish()
        except Exception as error:
            self._found(f"{frame}: its answer cannot be read: {error!r}")
            return
        if correlation_id != frame.number:
            self._found(f"{frame}: the answer is to {correlation_id}")
        codes = set(error_codes(message))
        self.outcome.errors.update(codes)
        if ErrorCode.UNKNOWN_SERVER_ERROR in codes and not frame.may_be_unknown:
            self._found(f"{frame}: UNKNOWN_SERVER_ERROR in {repr(message)[:1000]}")

    def _connected(self, frames: list[Frame] | deque[Frame]) -> socket.socket:
        if self.socket is None:
            self.outcome.connections += 1
            self.socket = socket.create_connection((HOST, self.port), ANSWER_TIMEOUT_S)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.outcome.sent_by_port.setdefault(self.socket.getsockname()[1], deque(maxlen=200)).extend(frames)
        return self.socket

    def _receive(self) -> None:
        assert self.socket is not None
        try:
            data = self.socket.recv(1 << 20)
        except OSError as error:
            raise _Closed from error
        if not data:
            raise _Closed
        self.received += data

    def _response(self) -> bytes | None:
        if len(self.received) < 4:
            return None
        end = 4 + int.from_bytes(self.received[:4], "big")
        if len(self.received) < end:
            return None
        frame = bytes(self.received[4:end])
        del self.received[:end]
        return frame

    def _close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None
        self.received.clear()

    def _found(self, finding: str) -> None:
        self.outcome.findings.append(finding)


def error_codes(message: Message) -> Iterator[int]:
    """Every error code in a response, however deep."""
    for name in message.field_names():
        value = getattr(message, name)
        if name == "error_code":
            yield value
        elif isinstance(value, Message):
            yield from error_codes(value)
        elif isinstance(value, list) and value and isinstance(value[0], Message):
            for element in value:
                yield from error_codes(element)
