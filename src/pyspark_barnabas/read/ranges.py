"""The ranges of offsets that tasks read, split so that there are enough tasks and none is too large.

The ranges are split as in Spark's own connector: each partition's range is one task, unless minPartitions or maxRecordsPerPartition
requires more. The numbers are offsets; the log may have fewer records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.datasource import InputPartition


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
    """The input partition of a Spark task: one range."""

    def __init__(self, offset_range: OffsetRange) -> None:
        super().__init__(offset_range)

    @property
    def range(self) -> OffsetRange:
        found: OffsetRange = self.value
        return found


def split_ranges(
    ranges: Iterable[OffsetRange], min_partitions: int | None = None, max_records_per_partition: int | None = None
) -> list[OffsetRange]:
    """The ranges that are not empty, split as required, in their order."""
    pieces = [found for found in ranges if found.size > 0]
    if max_records_per_partition is not None:
        pieces = [piece for found in pieces for piece in _cut(found, -(-found.size // max_records_per_partition))]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    return _shares(pieces, min_partitions)


def _shares(ranges: Sequence[OffsetRange], wanted: int) -> list[OffsetRange]:
    """Ranges worth at most one task stay whole; the others share the remaining number of tasks by their sizes."""
    total = sum(found.size for found in ranges)
    whole = [_share(found.size, total, wanted) == 1 for found in ranges]
    left = max(wanted - sum(whole), 1)
    left_total = sum(found.size for found, stays in zip(ranges, whole, strict=True) if not stays)
    pieces: list[OffsetRange] = []
    for found, stays in zip(ranges, whole, strict=True):
        pieces.extend([found] if stays else _cut(found, _share(found.size, left_total, left)))
    return pieces


def _share(size: int, total: int, parts: int) -> int:
    """The number of parts for a range: at least one; halves are rounded up."""
    return max(int(size / total * parts + 0.5), 1)


def _cut(found: OffsetRange, parts: int) -> list[OffsetRange]:
    """Consecutive pieces whose sizes differ by at most one."""
    pieces: list[OffsetRange] = []
    start = found.start
    for left in range(parts, 0, -1):
        end = start + (found.end - start) // left if left > 1 else found.end
        if end > start:
            pieces.append(replace(found, start=start, end=end))
        start = end
    return pieces
