# Compiled by mypyc: src/compiled.toml lists this module.
"""Reads from the segments of a log, up to the offset that a reader may see.

Only headers of batches are read here. The result is a slice of a file, which goes to the network unchanged.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from barnabas.storage.indexes.offset_index import OffsetPosition
from barnabas.storage.indexes.txn_index import AbortedTxn
from barnabas.storage.log_offset import LogOffset
from barnabas.storage.segments.segment import FileSlice, Segment
from barnabas.storage.segments.segments import Segments


class Hole(Exception):
    """Records are missing in a log that has never been compacted."""

    def __init__(self, first_missing: int, next_offset: int, path: str) -> None:
        super().__init__(f"The records from offset {first_missing} up to {next_offset - 1} are missing in {path}")
        self.first_missing = first_missing
        self.next_offset = next_offset


class FetchIsolation(IntEnum):
    """Up to which offset a reader may read."""

    LOG_END = 0  # followers
    HIGH_WATERMARK = 1  # consumers
    TXN_COMMITTED = 2  # consumers with read_committed


class FetchData(NamedTuple):
    """The result of a read: a slice of a file, and for read_committed the aborted transactions in it."""

    offset: LogOffset
    records: FileSlice | None
    first_entry_incomplete: bool = False
    aborted: list[AbortedTxn] | None = None


def read_segments(
    segments: Segments,
    start: Segment,
    offset: int,
    max_bytes: int,
    bound: LogOffset,
    min_one_message: bool,
    for_reader: bool,
    gaps_are_losses: bool,
) -> FetchData | None:
    """Reads from the segment `start`, or from the next that has records, because compaction leaves gaps. With `for_reader`, raises Hole
    where records are missing: where a segment is cut, or at any gap if `gaps_are_losses`."""
    segment: Segment | None = start
    while segment is not None:
        read = segment.read(offset, max_bytes, _readable_up_to(segment, bound), min_one_message)
        if read is not None:
            if for_reader and gaps_are_losses and read.first_offset > offset:
                raise Hole(offset, read.first_offset, segment.file.path)
            return FetchData(LogOffset(offset, segment.base_offset, read.position), read.records, read.first_entry_incomplete)
        following = segments.higher(segment.base_offset)
        if for_reader and following is not None and (gaps_are_losses or segment.is_torn):
            raise Hole(offset, following.base_offset, segment.file.path)
        segment = following
    return None


def _readable_up_to(segment: Segment, bound: LogOffset) -> int | None:
    """The position in a segment where a reader bounded by an offset must stop; None if it may not read the segment."""
    if segment.base_offset < bound.segment_base:
        return segment.size
    if segment.base_offset == bound.segment_base and bound.has_position:
        return bound.position
    return None


def aborted_in(segments: Segments, fetched: FetchData, log_end_offset: int) -> list[AbortedTxn]:
    """The aborted transactions that may have records among the fetched ones."""
    start = fetched.offset
    segment = segments.floor(start.segment_base)
    if segment is None or fetched.records is None:
        return []
    upper = segment.offset_index.fetch_upper_bound(OffsetPosition(start.offset, start.position), fetched.records.size)
    if upper is not None:
        return collect_aborted(segments, segment, start.offset, upper.offset)
    following = segments.higher(segment.base_offset)
    return collect_aborted(segments, segment, start.offset, following.base_offset if following else log_end_offset)


def collect_aborted(segments: Segments, first: Segment, start: int, upper_bound: int) -> list[AbortedTxn]:
    """Aborted transactions with data in [start, upper_bound), from one segment on: the index entry of a transaction is in the segment of
    its marker, which may be some segments after its data."""
    collected: list[AbortedTxn] = []
    segment: Segment | None = first
    while segment is not None:
        in_segment, complete = segment.txn_index.collect_aborted(start, upper_bound)
        collected.extend(in_segment)
        if complete:
            break
        segment = segments.higher(segment.base_offset)
    return collected
