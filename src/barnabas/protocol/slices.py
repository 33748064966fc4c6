# Compiled by mypyc: src/compiled.toml lists this module.
"""Record batches as a slice of other bytes.

The batches of a Produce request are a slice of its frame. A Fetch response sends them from the buffer into which they were read, or
directly from a file. So records pass through the protocol without a copy, and without being parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, final


class RecordSource(Protocol):
    """Records that are in a file and are read in pieces while they are sent."""

    def read_nowait(self, at: int, size: int) -> bytes | None:
        """The whole piece from `at` on, or None if reading it would wait. A failure raises OSError or ValueError."""

    def read_later(self, at: int, size: int, on_done: Callable[[bytes | None, Exception | None], None]) -> None:
        """Reads the piece on a thread and calls `on_done` on the event loop, with the bytes or an error; also after `close`."""

    def in_file(self, at: int, size: int) -> tuple[int, int] | None:
        """An open descriptor and a position from which the kernel can send the piece without waiting; None if it must be read."""

    def close(self) -> None:
        """Ends reading. Must be called exactly once."""


@final
class Streamed:
    """A part of a frame that is read from its source while it is sent."""

    __slots__ = ("size", "source")

    def __init__(self, size: int, source: RecordSource) -> None:
        self.size = size
        self.source = source


@final
class Records:
    """The batches in `data[start:end]`; or, with a `source`, that many bytes that are not in memory and can only be sent."""

    __slots__ = ("data", "start", "end", "source")  # noqa: RUF023 - in the order of the constructor

    def __init__(self, data: bytes, start: int = 0, end: int = -1, source: RecordSource | None = None) -> None:
        self.data = data
        self.start = start
        self.end = len(data) if end < 0 else end
        self.source = source

    @property
    def size(self) -> int:
        return self.end - self.start

    def to_bytes(self) -> bytes:
        """The batches as bytes; a copy unless they are all of `data`."""
        if self.source is not None:
            raise ValueError(f"{self.size} bytes of records are not in memory: they are read while they are sent")
        return self.data if self.size == len(self.data) else self.data[self.start : self.end]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records) and self.to_bytes() == other.to_bytes()

    def __repr__(self) -> str:
        return f"Records({self.size} bytes)"
