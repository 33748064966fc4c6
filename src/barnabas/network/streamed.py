# Compiled by mypyc: src/compiled.toml lists this module.
"""A response that is sent as its peer accepts it: its parts in order; parts on disk are sent in pieces.

Where possible a piece goes from the page cache to the socket without being copied to memory. Otherwise the connection reads the next piece
whenever its peer has accepted the previous one, so that a slow reader costs one piece of memory and not a whole response. A stream must be
emptied or cleared: its sources keep files open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.network.direct_socket import DirectSocket
from barnabas.protocol.slices import Streamed

PIECE_BYTES: Final = 262144
SENT_PIECE_BYTES: Final = 1048576  # of a piece that is not read, and so costs no memory
BUFFERS_AT_ONCE: Final = 64  # far below the limit of one system call
UNSENDABLE: Final = -1

Buffer = bytes | bytearray | memoryview


class ResponseStream:
    """Parts to be sent, of one frame or several."""

    __slots__ = ("_at", "_parts")

    def __init__(self, parts: Iterable[Buffer | Streamed]) -> None:
        self._parts = deque(parts)
        self._at = 0  # how many bytes of the first part are taken

    @property
    def is_empty(self) -> bool:
        return not self._parts

    def add(self, parts: Iterable[Buffer | Streamed]) -> None:
        self._parts.extend(parts)

    def take(self) -> list[Buffer]:
        """The next bytes, about a piece; empty if they have to be read from disk first. Raises the errors of the source."""
        taken: list[Buffer] = []
        room = PIECE_BYTES
        while self._parts and room > 0:
            part = self._parts[0]
            if isinstance(part, Streamed):
                piece = part.source.read_nowait(self._at, min(part.size - self._at, room))
                if piece is None:
                    break
                self._advance(part, len(piece))
                taken.append(piece)
                room -= len(piece)
            else:
                rest = memoryview(part)[self._at :] if self._at else part
                self._parts.popleft()
                self._at = 0
                taken.append(rest)
                room -= len(rest)
        return taken

    def send(self, direct: DirectSocket) -> int:
        """Sends the next bytes, up to a piece, without reading those on disk. Returns how many the kernel accepted, 0 if the socket is not
        writable, UNSENDABLE if they have to be read first. Raises the errors of the file or the socket."""
        part = self._parts[0]
        if not isinstance(part, Streamed):
            return self._send_buffers(direct)
        size = min(part.size - self._at, SENT_PIECE_BYTES)
        location = part.source.in_file(self._at, size)
        if location is None:
            return UNSENDABLE
        descriptor, position = location
        sent = direct.send_file(descriptor, position, size)
        self._advance(part, sent)
        return sent

    def _send_buffers(self, direct: DirectSocket) -> int:
        buffers: list[Buffer] = []
        for part in self._parts:
            if isinstance(part, Streamed) or len(buffers) == BUFFERS_AT_ONCE:
                break
            buffers.append(memoryview(part)[self._at :] if self._at and not buffers else part)
        sent = direct.send(buffers, more=len(buffers) < len(self._parts))
        unaccounted = sent
        for buffer in buffers:
            if unaccounted < len(buffer):
                self._at += unaccounted
                return sent
            unaccounted -= len(buffer)
            self._parts.popleft()
            self._at = 0
        return sent

    def take_later(self, on_done: Callable[[bytes | None, Exception | None], None]) -> None:
        """Reads the bytes that `take` could not return at once. Nothing else may be taken before `on_done` is called."""
        part = self._parts[0]
        assert isinstance(part, Streamed)

        def done(piece: bytes | None, error: Exception | None) -> None:
            if piece is not None and self._parts:  # else the stream was cleared meanwhile
                self._advance(part, len(piece))
            on_done(piece, error)

        part.source.read_later(self._at, min(part.size - self._at, PIECE_BYTES), done)

    def clear(self) -> None:
        discard(self._parts)
        self._parts.clear()

    def _advance(self, part: Streamed, size: int) -> None:
        self._at += size
        if self._at == part.size:
            self._at = 0
            self._parts.popleft()
            part.source.close()


def discard(parts: Iterable[Buffer | Streamed]) -> None:
    """These parts will not be sent: closes their sources."""
    for part in parts:
        if isinstance(part, Streamed):
            part.source.close()
