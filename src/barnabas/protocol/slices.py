"""A run of record batches inside bytes that belong to someone else.

Produce finds its batches in the frame they came in, and Fetch sends them from the buffer they were read into: records pass through the
protocol as a position and never as a copy. Nothing here looks into them.
"""

from __future__ import annotations

from typing import final


@final
class Records:
    """The batches in `data[start:end]`."""

    __slots__ = ("data", "start", "end")  # noqa: RUF023 - in the order of the constructor

    def __init__(self, data: bytes, start: int = 0, end: int = -1) -> None:
        self.data = data
        self.start = start
        self.end = len(data) if end < 0 else end

    @property
    def size(self) -> int:
        return self.end - self.start

    def to_bytes(self) -> bytes:
        """The batches as bytes of their own; no copy where they are all there is."""
        return self.data if self.size == len(self.data) else self.data[self.start : self.end]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records) and self.to_bytes() == other.to_bytes()

    def __repr__(self) -> str:
        return f"Records({self.size} bytes)"
