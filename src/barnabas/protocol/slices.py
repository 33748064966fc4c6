# Compiled by mypyc: src/compiled.toml lists this module.
"""A run of record batches inside bytes that belong to someone else.

Produce finds its batches in the frame they came in, and Fetch sends them from the buffer they were read into, or straight from where they
are kept: records pass through the protocol as a position and never as a copy. Nothing here looks into them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, final


class Source(Protocol):
    """Bytes that are kept elsewhere and read in pieces, when there is room for them."""

    def read_nowait(self, at: int, size: int) -> bytes | None:
        """The piece from `at` on, whole, or None where it would have to be waited for. What fails raises OSError or ValueError."""

    def read_later(self, at: int, size: int, on_done: Callable[[bytes | None, Exception | None], None]) -> None:
        """Reads the piece elsewhere and tells on the loop, with one of the two; also when it has been closed meanwhile."""

    def in_file(self, at: int, size: int) -> tuple[int, int] | None:
        """Where the kernel can send that piece from without waiting: an open descriptor and a position; None where it has to be read."""

    def close(self) -> None:
        """Nothing more will be read. To be called exactly once."""


@final
class Streamed:
    """A part of a frame that is read from its source while it is sent."""

    __slots__ = ("size", "source")

    def __init__(self, size: int, source: Source) -> None:
        self.size = size
        self.source = source


@final
class Records:
    """The batches in `data[start:end]`; or, with a `source`, so many bytes that are not in memory and can only be sent."""

    __slots__ = ("data", "start", "end", "source")  # noqa: RUF023 - in the order of the constructor

    def __init__(self, data: bytes, start: int = 0, end: int = -1, source: Source | None = None) -> None:
        self.data = data
        self.start = start
        self.end = len(data) if end < 0 else end
        self.source = source

    @property
    def size(self) -> int:
        return self.end - self.start

    def to_bytes(self) -> bytes:
        """The batches as bytes of their own; no copy where they are all there is."""
        if self.source is not None:
            raise ValueError(f"{self.size} bytes of records are not in memory: they are read while they are sent")
        return self.data if self.size == len(self.data) else self.data[self.start : self.end]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records) and self.to_bytes() == other.to_bytes()

    def __repr__(self) -> str:
        return f"Records({self.size} bytes)"
