"""A response that is read while it is sent: its parts in order, of which those on disk are taken in pieces.

A connection asks for the next run of bytes whenever its peer has taken those before, so that a slow reader costs one piece of memory and
not a whole response. What has been begun must be emptied or cleared: its sources keep files open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.protocol.slices import Streamed

PIECE_BYTES: Final = 262144

Buffer = bytes | bytearray | memoryview


class ResponseStream:
    """Parts that wait to be sent, one frame or several."""

    __slots__ = ("_at", "_parts")

    def __init__(self, parts: Iterable[Buffer | Streamed]) -> None:
        self._parts = deque(parts)
        self._at = 0  # how much of the first part has been taken, if that one is streamed

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
                self._parts.popleft()
                taken.append(part)
                room -= len(part)
        return taken

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
