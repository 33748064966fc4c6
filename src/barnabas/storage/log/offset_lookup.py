"""Finds an offset by timestamp, for ListOffsets.

Negative timestamps have special meanings: the latest offset, the earliest, and so on. Others mean the first record at or after that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.records.batch import NO_TIMESTAMP
from barnabas.storage.segments.segment import OFFSET_MAX, TimestampAndOffset

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4  # of the records on this broker's disks, which hold all of them
LATEST_TIERED: Final = -5  # of the records in remote storage, which does not exist here
EARLIEST_PENDING_UPLOAD: Final = -6  # likewise

NO_EPOCH: Final = -1


def offset_for_timestamp(log: Log, timestamp: int) -> TimestampAndOffset | None:
    """The timestamp, offset and leader epoch of the record; None if no record is that new."""
    log.check_open()
    with log.on_disk("while fetching offset by timestamp"):
        return _lookup(log, timestamp)


def _lookup(log: Log, timestamp: int) -> TimestampAndOffset | None:
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        first = log.epochs.earliest_entry
        known = first is not None and first.start_offset <= log.log_start_offset
        return TimestampAndOffset(NO_TIMESTAMP, log.log_start_offset, first.epoch if known and first is not None else NO_EPOCH)
    if timestamp == LATEST:
        return TimestampAndOffset(NO_TIMESTAMP, log.log_end_offset, log.latest_epoch)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return TimestampAndOffset(NO_TIMESTAMP, -1, NO_EPOCH)
    if timestamp == MAX_TIMESTAMP:
        return max(log.segments, key=lambda segment: segment.max_timestamp.timestamp).find_max_timestamp()
    for segment in log.segments.between(log.log_start_offset, OFFSET_MAX):
        if segment.largest_timestamp >= timestamp:
            found = segment.find_by_timestamp(timestamp, log.log_start_offset)
            if found is not None:  # None if the records are below the log start offset, or only the file's modification time is that new
                return found
    return None


def offsets_before(log: Log, timestamp: int, max_offsets: int, now_ms: int) -> list[int]:
    """ListOffsets v0: base offsets of the segments whose files were last modified before a time, newest first."""
    points = [(max(segment.base_offset, log.log_start_offset), segment.modified_ms) for segment in log.segments]
    if log.active_segment.size > 0:
        points.append((log.log_end_offset, now_ms))
    if timestamp == EARLIEST:
        points = points[:1]
    elif timestamp != LATEST:
        while points and points[-1][1] > timestamp:
            points.pop()
    return [offset for offset, _ in reversed(points)][:max_offsets]
