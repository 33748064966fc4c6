# Compiled by mypyc: src/compiled.toml lists this module.
"""A response that is sent as its peer takes it: its parts in order, of which those on disk go out in pieces.

Where it can, a piece goes from the page cache to the socket and never comes into memory. Elsewhere a connection asks for the next run of
bytes whenever its peer has taken those before, so that a slow reader costs one piece of memory and not a whole response. What has been
begun must be emptied or cleared: its sources keep files open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.network.direct_socket import DirectSocket
from barnabas.protocol.slices import Streamed

PIECE_BYTES: Final = 262144
SENT_PIECE_BYTES: Final = 1048576  # of what is not read, and costs no memory
BUFFERS_AT_ONCE: Final = 64  # far below what a system takes in one call
UNSENDABLE: Final = -1

Buffer = bytes | bytearray | memoryview


class ResponseStream:
    """Parts that wait to be sent, one frame or several."""

    __slots__ = ("_at", "_parts")

    def __init__(self, parts: Iterable[Buffer | Streamed]) -> None:
        self._parts = deque(parts)
        self._at = 0  # how much of the first part has been taken

    @property
    def is_empty(self) -> bool:
        return not self._parts

    def add(self, parts: Iterable[Buffer | Streamed]) -> None:
        self._parts.extend(parts)

    def take(self) -> list[Buffer]:
        """The next bytes, about a piece; nothing where they have to be waited for. Raises what the source raises."""
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
        """Sends the next bytes, up to a piece, without reading those on disk. Gives how many the peer took, 0 if it has to be waited for,
        UNSENDABLE if they have to be read first. Raises what the file or the socket raises."""
        part = self._parts[0]
        if not isinstance(part, Streamed):
            return self._send_buffers(direct)
        size = min(part.size - self._at, SENT_PIECE_BYTES)
        found = part.source.in_file(self._at, size)
        if found is None:
            return UNSENDABLE
        descriptor, position = found
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
        left = sent
        for buffer in buffers:
            if left < len(buffer):
                self._at += left
                return sent
            left -= len(buffer)
            self._parts.popleft()
            self._at = 0
        return sent

    def take_later(self, on_done: Callable[[bytes | None, Exception | None], None]) -> None:
        """Reads what `take` would have had to wait for. Nothing else may be taken before it is told."""
        part = self._parts[0]
        assert isinstance(part, Streamed)

        def done(piece: bytes | None, error: Exception | None) -> None:
            if piece is not None and self._parts:  # else it was cleared meanwhile
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
    """These will not be sent: what they would have been read from is let go."""
    for part in parts:
        if isinstance(part, Streamed):
            part.source.close()
