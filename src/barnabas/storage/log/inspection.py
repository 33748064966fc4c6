"""Whether the segments of a log are whole, told by where each ends: neither names nor sizes tell, and reading all of them takes too long.

Of a segment that is not written any more only the part behind its last index entry is read, a few kilobytes. A broker looks at all of them
after its start, on a thread, so that a start takes no longer for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from barnabas.errors import CorruptRecord
from barnabas.storage.disk.files import AnyFile, AnyFiles
from barnabas.storage.indexes.offset_index import OffsetIndex
from barnabas.storage.log.log import Log
from barnabas.storage.segments.scan import scan

SEGMENTS_AT_ONCE: Final = 50
TAIL_BYTES: Final = 64 * 1024  # read at once
TAIL_BYTES_MAX: Final = 16 * 1024 * 1024  # a segment with more behind its last index entry has lost its index: it is left alone


class Closed(NamedTuple):
    """A segment that is not written any more, and where the next one begins."""

    path: str
    index_path: str
    base_offset: int
    next_base_offset: int


class Inspection:
    """Some segments of a log. `run` may be called on any thread; `doubtful` are the base offsets of those that do not look whole."""

    def __init__(self, files: AnyFiles, log: Log, segments: Sequence[Closed]) -> None:
        self.log = log
        self.doubtful: list[int] = []
        self._files = files
        self._segments = segments

    def run(self) -> None:
        gaps_are_losses = self.log.gaps_are_losses
        for segment in self._segments:
            try:
                if not self._is_whole(segment, gaps_are_losses):
                    self.doubtful.append(segment.base_offset)
            except OSError:  # deleted meanwhile; an error of the disk is found by those who read
                continue

    def _is_whole(self, segment: Closed, gaps_are_losses: bool) -> bool:
        file = self._files.open(segment.path, writable=False)
        try:
            position = self._last_indexed(segment)
            if file.size - position > TAIL_BYTES_MAX:
                return True
            if file.size and position >= file.size:
                return False
            end = _end_of(file, position, segment.base_offset)
            return end is not None and (end >= segment.next_base_offset or not gaps_are_losses)
        finally:
            file.close()

    def _last_indexed(self, segment: Closed) -> int:
        """The position of the last batch that the offset index knows."""
        index = self._files.open(segment.index_path, writable=False)
        try:
            entry = index.pread(OffsetIndex.entry_size, max(0, index.size - OffsetIndex.entry_size))
        finally:
            index.close()
        position: int = OffsetIndex.layout.unpack(entry)[1] if len(entry) == OffsetIndex.entry_size else 0
        return max(0, position)


def inspections_of(log: Log) -> Iterator[Inspection]:
    segments = list(log.segments)
    closed = [
        Closed(segment.file.path, segment.offset_index.path, segment.base_offset, following.base_offset)
        for segment, following in pairwise(segments)
    ]
    for first in range(0, len(closed), SEGMENTS_AT_ONCE):
        yield Inspection(log.files, log, closed[first : first + SEGMENTS_AT_ONCE])


def _end_of(file: AnyFile, position: int, base_offset: int) -> int | None:
    """The offset after the last batch; None where something else stands at the end of the file."""
    end = base_offset
    try:
        for chunk in scan(file, position, file.size, TAIL_BYTES):
            last = chunk.batches[-1]
            end, position = int(last.last_offset) + 1, chunk.position + int(last.end)
    except CorruptRecord:
        return None
    return end if position == file.size else None
