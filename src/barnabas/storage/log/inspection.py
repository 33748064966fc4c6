"""Checks whether the closed segments of a log are whole, by their last offsets.

Names and sizes do not show that, and reading all records takes too long. An inspection reads only the part of a segment behind its last
index entry, a few kilobytes. The broker inspects all segments on a thread after its start, so that the start takes no longer.
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
TAIL_BYTES_MAX: Final = 16 * 1024 * 1024  # a segment with more behind its last index entry has lost its index and is not inspected


class ClosedSegment(NamedTuple):
    """A segment that is no longer written, and the base offset of the next one."""

    path: str
    index_path: str
    base_offset: int
    next_base_offset: int


class Inspection:
    """Inspects some segments of a log. `run` may be called on any thread; `doubtful` holds the base offsets of incomplete segments."""

    def __init__(self, files: AnyFiles, log: Log, segments: Sequence[ClosedSegment]) -> None:
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
            except OSError:  # deleted meanwhile; a read by a client detects an error of the disk
                continue

    def _is_whole(self, segment: ClosedSegment, gaps_are_losses: bool) -> bool:
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

    def _last_indexed(self, segment: ClosedSegment) -> int:
        """The position in the last entry of the offset index."""
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
        ClosedSegment(segment.file.path, segment.offset_index.path, segment.base_offset, following.base_offset)
        for segment, following in pairwise(segments)
    ]
    for first in range(0, len(closed), SEGMENTS_AT_ONCE):
        yield Inspection(log.files, log, closed[first : first + SEGMENTS_AT_ONCE])


def inspect_segment(log: Log, base_offset: int) -> None:
    """Logs the records that are missing at the end of a segment that is no longer written."""
    segment, following = log.segments.get(base_offset), log.segments.higher(base_offset)
    if segment is None or following is None:
        return
    next_base, path = following.base_offset, segment.file.path
    try:
        end = segment.next_offset()
    except CorruptRecord as e:
        log.note_loss(next_base, f"Segment {path} is damaged: {e}")
        return
    if segment.is_torn:
        log.note_loss(next_base, f"Segment {path} is cut, or damaged, behind offset {end - 1}")
    elif log.gaps_are_losses and end < next_base:
        log.note_loss(next_base, f"Segment {path} ends at offset {end}, and the next begins at {next_base}")


def _end_of(file: AnyFile, position: int, base_offset: int) -> int | None:
    """The offset after the last batch; None if the file ends with something else."""
    end = base_offset
    try:
        for chunk in scan(file, position, file.size, TAIL_BYTES):
            last = chunk.batches[-1]
            end, position = int(last.last_offset) + 1, chunk.position + int(last.end)
    except CorruptRecord:
        return None
    return end if position == file.size else None
