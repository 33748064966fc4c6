"""An offset and, where known, its place in the files.

Two offsets in one segment are some bytes apart; a fetch that waits for fetch.min.bytes counts them this way, without reading anything.
"""

from __future__ import annotations

from typing import Final, NamedTuple

UNKNOWN: Final = -1


class LogOffset(NamedTuple):
    offset: int
    segment_base: int = UNKNOWN
    position: int = UNKNOWN

    @property
    def has_position(self) -> bool:
        return self.position != UNKNOWN

    def on_older_segment(self, other: LogOffset) -> bool:
        return self.has_position and other.has_position and self.segment_base < other.segment_base

    def on_same_segment(self, other: LogOffset) -> bool:
        return self.has_position and other.has_position and self.segment_base == other.segment_base

    def bytes_after(self, other: LogOffset) -> int:
        """How many bytes lie between an earlier offset and this one; only within a segment."""
        if not self.on_same_segment(other):
            raise ValueError(f"{self} and {other} are not known to be on the same segment")
        return self.position - other.position
