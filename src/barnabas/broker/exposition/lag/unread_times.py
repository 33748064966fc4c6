"""The timestamps of the first unread records of groups, by partition and committed offset.

A timestamp is read once for each committed offset: from the log if this broker leads the partition, else by a Fetch from its leader
(`remote_times.py`). Offsets that no group has any more are forgotten: there are at most twice as many timestamps as committed offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.exposition.lag.record_time import BATCH_BYTES_MAX, first_batch, needs_records
from barnabas.errors import KafkaError
from barnabas.records.batch import HEADER_SIZE_V2
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.segments.segment import FileSlice
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log

MARKERS_SKIPPED_MAX: Final = 16  # transaction markers that are skipped in one search

Key = tuple[TopicPartition, int]


class UnreadTimes:
    """`begin` starts a new round of questions: timestamps that neither this round nor the last one asked for are forgotten."""

    def __init__(self) -> None:
        self._now: dict[Key, int] = {}
        self._before: dict[Key, int] = {}
        self.reads = 0  # reads of logs

    def __len__(self) -> int:
        return len(self._now) + len(self._before)

    def begin(self) -> None:
        self._before, self._now = self._now, {}

    def of_log(self, log: Log, offset: int) -> int | None:
        """The timestamp of the first record at or after `offset` below the high watermark; None if there is no such record or it cannot be
        read. -1 is a record without a timestamp."""
        first = max(offset, log.log_start_offset)
        if first >= log.high_watermark:
            return None
        key = (log.partition, first)
        timestamp = self._now.get(key)
        if timestamp is None:
            timestamp = self._before.get(key)
            if timestamp is None:
                self.reads += 1
                timestamp = read_timestamp(log, first)
            if timestamp is not None:
                self._now[key] = timestamp
        return timestamp


def read_timestamp(log: Log, offset: int) -> int | None:
    """As `UnreadTimes.of_log`, from the log. Batches of transaction markers are skipped."""
    try:
        for _ in range(MARKERS_SKIPPED_MAX):
            if offset >= log.high_watermark:
                return None
            records = log.read(offset, 1, FetchIsolation.HIGH_WATERMARK, min_one_message=True).records
            if records is None or records.size < HEADER_SIZE_V2:
                return None if records is None else _of_small(records, offset)
            batch = first_batch(_bytes_needed(records, offset), offset)
            if batch is None:
                return None
            if batch.timestamp is not None:
                return batch.timestamp
            offset = batch.next_offset
    except (KafkaError, OSError):
        pass  # a log that is closed, damaged or on a failed disk: its own part of the broker reports that
    return None


def _bytes_needed(records: FileSlice, offset: int) -> bytes:
    """The header of the first batch, or the whole batch where the header does not suffice."""
    header = records.file.pread(HEADER_SIZE_V2, records.position)
    if len(header) < HEADER_SIZE_V2 or not needs_records(header, offset):
        return header
    return records.file.pread(min(records.size, BATCH_BYTES_MAX), records.position)


def _of_small(records: FileSlice, offset: int) -> int | None:
    """Of a record in an old format, which may be shorter than the header of a batch."""
    batch = first_batch(records.read(), offset)
    return None if batch is None else batch.timestamp
