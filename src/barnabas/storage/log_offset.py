# Compiled by mypyc: src/compiled.toml lists this module.
"""An offset and, where known, its segment and its position in the file.

A fetch that waits for fetch.min.bytes computes the available bytes from two positions in one segment, without reading anything.
"""

from __future__ import annotations

from typing import Final, final

UNKNOWN: Final = -1


@final
class LogOffset:
    """An immutable value, but not a tuple: every append creates one, and a compiled class is created five times faster."""

    __slots__ = ("offset", "position", "segment_base")

    def __init__(self, offset: int, segment_base: int = UNKNOWN, position: int = UNKNOWN) -> None:
        self.offset = offset
        self.segment_base = segment_base
        self.position = position

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LogOffset):
            return NotImplemented
        return self.offset == other.offset and self.segment_base == other.segment_base and self.position == other.position

    def __hash__(self) -> int:
        return hash((self.offset, self.segment_base, self.position))

    def __repr__(self) -> str:
        return f"LogOffset({self.offset}, {self.segment_base}, {self.position})"

    @property
    def has_position(self) -> bool:
        return self.position != UNKNOWN

    def on_older_segment(self, other: LogOffset) -> bool:
        return self.has_position and other.has_position and self.segment_base < other.segment_base

    def on_same_segment(self, other: LogOffset) -> bool:
        return self.has_position and other.has_position and self.segment_base == other.segment_base

    def bytes_after(self, other: LogOffset) -> int:
        """The number of bytes between an earlier offset and this one, which must be in the same segment."""
        if not self.on_same_segment(other):
            raise ValueError(f"{self} and {other} are not known to be on the same segment")
        return self.position - other.position
