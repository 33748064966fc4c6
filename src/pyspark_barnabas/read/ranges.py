"""The ranges of offsets that tasks read, split so that there are enough tasks and none is too large.

The ranges are split as in Spark's own connector: each partition's range is one task, unless minPartitions or maxRecordsPerPartition
requires more. The numbers are offsets; the log may have fewer records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

if TYPE_CHECKING:
    from pyspark_barnabas.queries.batch_note import BatchNote


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets [start, end) of one partition.

    `topic_id` is the id of the topic as text, or None if the broker has no topic ids; a reader that finds another id for this name must not
    read.
    """

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str | None = None

    @property
    def size(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}[{self.start}, {self.end})"


class RangePartition(InputPartition):
    """The input partition of a Spark task: one range.

    A stream that publishes its progress has a `source_key`, and a `note` in the first range of each batch.
    """

    def __init__(self, offset_range: OffsetRange, source_key: str | None = None, note: BatchNote | None = None) -> None:
        super().__init__(offset_range)
        self.source_key = source_key
        self.note = note

    @property
    def range(self) -> OffsetRange:
        offset_range: OffsetRange = self.value
        return offset_range


def split_ranges(
    ranges: Iterable[OffsetRange], min_partitions: int | None = None, max_records_per_partition: int | None = None
) -> list[OffsetRange]:
    """The ranges that are not empty, split as required, in their order."""
    pieces = [offset_range for offset_range in ranges if offset_range.size > 0]
    if max_records_per_partition is not None:
        pieces = [piece for offset_range in pieces for piece in _cut(offset_range, -(-offset_range.size // max_records_per_partition))]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    return _shares(pieces, min_partitions)


def _shares(ranges: Sequence[OffsetRange], tasks: int) -> list[OffsetRange]:
    """Ranges worth at most one task stay whole; the others share the remaining number of tasks by their sizes."""
    total = sum(offset_range.size for offset_range in ranges)
    whole = [_share(offset_range.size, total, tasks) == 1 for offset_range in ranges]
    left = max(tasks - sum(whole), 1)
    left_total = sum(offset_range.size for offset_range, stays in zip(ranges, whole, strict=True) if not stays)
    pieces: list[OffsetRange] = []
    for offset_range, stays in zip(ranges, whole, strict=True):
        pieces.extend([offset_range] if stays else _cut(offset_range, _share(offset_range.size, left_total, left)))
    return pieces


def _share(size: int, total: int, parts: int) -> int:
    """The number of parts for a range: at least one; halves are rounded up."""
    return max(int(size / total * parts + 0.5), 1)


def _cut(offset_range: OffsetRange, parts: int) -> list[OffsetRange]:
    """Consecutive pieces whose sizes differ by at most one."""
    pieces: list[OffsetRange] = []
    start = offset_range.start
    for left in range(parts, 0, -1):
        end = start + (offset_range.end - start) // left if left > 1 else offset_range.end
        if end > start:
            pieces.append(replace(offset_range, start=start, end=end))
        start = end
    return pieces
