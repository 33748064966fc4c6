# Compiled by mypyc: src/compiled.toml lists this module.
"""The segments of one log, in order of their base offsets.

Segments are added at the end and looked up by floor, so two parallel lists and a binary search do what Kafka's skip list does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from barnabas.storage.segments.segment import Segment


class Segments:
    def __init__(self) -> None:
        self._bases: list[int] = []
        self._segments: list[Segment] = []

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __contains__(self, base_offset: int) -> bool:
        return self.get(base_offset) is not None

    def add(self, segment: Segment) -> None:
        """Adds a segment; it replaces one with the same base offset."""
        at = bisect_left(self._bases, segment.base_offset)
        if at < len(self._bases) and self._bases[at] == segment.base_offset:
            self._segments[at] = segment
        else:
            self._bases.insert(at, segment.base_offset)
            self._segments.insert(at, segment)

    def remove(self, base_offset: int) -> None:
        at = bisect_left(self._bases, base_offset)
        if at < len(self._bases) and self._bases[at] == base_offset:
            del self._bases[at]
            del self._segments[at]

    def clear(self) -> None:
        self._bases.clear()
        self._segments.clear()

    def get(self, base_offset: int) -> Segment | None:
        at = bisect_left(self._bases, base_offset)
        return self._segments[at] if at < len(self._bases) and self._bases[at] == base_offset else None

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def base_offsets(self) -> list[int]:
        return list(self._bases)

    def floor(self, offset: int) -> Segment | None:
        """The segment that contains an offset: the last that begins at or before it."""
        at = bisect_right(self._bases, offset) - 1
        return self._segments[at] if at >= 0 else None

    def higher(self, base_offset: int) -> Segment | None:
        """The first segment that begins strictly after an offset."""
        at = bisect_right(self._bases, base_offset)
        return self._segments[at] if at < len(self._segments) else None

    def lower(self, base_offset: int) -> Segment | None:
        at = bisect_left(self._bases, base_offset) - 1
        return self._segments[at] if at >= 0 else None

    def between(self, start: int, end: int) -> list[Segment]:
        """The segments that may hold offsets in [start, end), the one that contains `start` included."""
        if end <= start:
            return []
        low = max(0, bisect_right(self._bases, start) - 1)
        return self._segments[low : bisect_left(self._bases, end)]

    def from_base(self, base_offset: int) -> list[Segment]:
        """The segments that begin at or after an offset."""
        return self._segments[bisect_left(self._bases, base_offset) :]

    def close(self) -> None:
        for segment in self._segments:
            segment.close()

    def close_handlers(self) -> None:
        for segment in self._segments:
            segment.close_handlers()
