"""The parts of segment files that each task of the direct reader reads, planned on the driver from names, sizes and small files.

Consecutive segments of a partition form one task until they are large enough. A segment that is too large is cut at a batch start that its
index lists. Of several replicas of a partition, the one with the largest log end offset is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.errors import DataLossError, OptionError, UnknownTopicError
from pyspark_barnabas.offsets import EARLIEST, LATEST, Bound
from pyspark_barnabas.read.batch_cuts import last_offset_of
from pyspark_barnabas.read.filters import RowFilter
from pyspark_barnabas.segments.file_store import LOG_DIRS, FileStore
from pyspark_barnabas.segments.log_dirs import PartitionLog, SegmentFiles
from pyspark_barnabas.segments.log_transactions import Aborted, LogTransactions, overlapping, transactions_of
from pyspark_barnabas.segments.segment_index import last_indexed_position, position_before, read_index
from pyspark_barnabas.segments.segment_options import SegmentOptions
from pyspark_barnabas.segments.segment_times import offset_at

OFFSET_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of bytes of one segment file that starts at a batch. `is_tail`: the end of the log, where a batch may be incomplete."""

    path: str
    start: int
    end: int
    is_tail: bool = False

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class SegmentGroup:
    """The pieces that one task reads; it drops records outside of [first_offset, end_offset)."""

    topic: str
    partition: int
    store: FileStore
    pieces: tuple[Piece, ...]
    first_offset: int
    end_offset: int
    aborted: tuple[Aborted, ...] | None = None  # None: read_uncommitted

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} from {self.store.uri}, {len(self.pieces)} pieces, {self.size} bytes"


def plan(logs: Iterable[PartitionLog], options: SegmentOptions, record_filter: RowFilter | None = None) -> list[SegmentGroup]:
    """The tasks of a read, sorted by topic, partition and offset. `record_filter` is that of the options, or stricter."""
    record_filter = options.record_filter if record_filter is None else record_filter
    chosen = choose_replicas([log for log in logs if options.wants(TopicPartition(log.topic, log.partition))])
    _check_named(chosen, options)
    bytes_per_task = options.bytes_per_task
    if options.min_partitions is not None:
        bytes_per_task = min(bytes_per_task, max(sum(log.size for log in chosen) // options.min_partitions, 1))
    groups: list[SegmentGroup] = []
    for log in chosen:
        if record_filter.wants(log.topic, log.partition):
            groups.extend(_groups(log, options, record_filter, bytes_per_task))
    return groups


def choose_replicas(logs: Sequence[PartitionLog]) -> list[PartitionLog]:
    """One replica of each partition, by topic and number. Raises an error if two directories of one name have different topic ids."""
    replicas: dict[TopicPartition, list[PartitionLog]] = {}
    for log in logs:
        replicas.setdefault(TopicPartition(log.topic, log.partition), []).append(log)
    chosen: list[PartitionLog] = []
    for partition, copies in sorted(replicas.items()):
        ids = {log.topic_id for log in copies if log.topic_id is not None}
        if len(ids) > 1:
            places = ", ".join(log.place for log in copies)
            raise OptionError(LOG_DIRS, f"{partition} stands in several directories, of different topics by their ids: {places}.")
        chosen.append(copies[0] if len(copies) == 1 else max(copies, key=lambda log: (log_end_offset(log), -log.log_start_offset)))
    return chosen


def log_end_offset(log: PartitionLog) -> int:
    """The offset after the last whole batch."""
    for segment in reversed(log.segments):
        with log.store.open(segment.log) as file:
            last = last_offset_of(file, last_indexed_position(log.store, segment))
        if last is not None:
            return last + 1
    return log.segments[-1].base_offset if log.segments else 0


def _check_named(chosen: Sequence[PartitionLog], options: SegmentOptions) -> None:
    there = {TopicPartition(log.topic, log.partition) for log in chosen}
    subscription = options.subscription
    if subscription is not None and subscription.pattern is None:
        topics = {partition.topic for partition in there}
        missing = sorted((subscription.names() or frozenset()) - topics) or sorted(map(str, subscription.assigned - there))
        if missing:
            raise UnknownTopicError(f"Option '{subscription.option}': the log directories have no {', '.join(missing)}.")
    options.start.check(there)
    options.end.check(there)


def _groups(log: PartitionLog, options: SegmentOptions, record_filter: RowFilter, bytes_per_task: int) -> Iterator[SegmentGroup]:
    transactions = transactions_of(log) if options.read_committed else LogTransactions((), None)
    first, end = _bounds(log, options, record_filter, transactions.first_open)
    for run in _runs(log, first, end, bytes_per_task):
        first_base, end_base = run[0][0], run[-1][1]
        aborted = tuple(overlapping(transactions.aborted, first_base, end_base)) if options.read_committed else None
        yield SegmentGroup(log.topic, log.partition, log.store, tuple(piece for _, _, piece in run), first, end, aborted)


def _bounds(log: PartitionLog, options: SegmentOptions, record_filter: RowFilter, first_open: int | None) -> tuple[int, int]:
    """The offsets to read of a log, without the end; the range may be empty."""
    partition = TopicPartition(log.topic, log.partition)
    first, end = (_resolved(bound, log, partition, first_open) for bound in (options.start, options.end))
    if first > end:
        raise OptionError(options.end.option, f"{partition} would end at {end}, before its start at {first} ('{options.start.option}').")
    if first < log.log_start_offset and options.fail_on_data_loss:
        raise DataLossError(
            f"Option '{options.start.option}': {partition} was to be read from offset {first} on, but {log.place} begins at "
            f"{log.log_start_offset}. To read what is there, set the option 'failOnDataLoss' to 'false'."
        )
    first, end = max(first, log.log_start_offset), end if first_open is None else min(end, first_open)
    first, end = record_filter.offsets(first, end)
    earliest_ms = record_filter.earliest_ms()
    if earliest_ms is None or first >= end:
        return first, end
    offset = offset_at(log, earliest_ms)
    return (first, first) if offset is None else (max(first, offset), end)


def _resolved(bound: Bound, log: PartitionLog, partition: TopicPartition, first_open: int | None) -> int:
    """The offset of an option, resolved for this log."""
    spec = bound.specs([partition]).get(partition)
    if spec is None:
        assert bound.offsets is not None
        return bound.offsets[partition]
    if spec == EARLIEST:
        return log.log_start_offset
    if spec == LATEST:
        return OFFSET_MAX
    latest = log_end_offset(log) if first_open is None else first_open
    offset = offset_at(log, spec)
    answer = -1 if offset is None or offset >= latest else offset
    return bound.resolved([partition], {partition: answer}, {partition: latest})[partition]


Bounded = tuple[int, int, Piece]  # a piece, with a lower and an upper bound of its offsets


def _runs(log: PartitionLog, first: int, end: int, bytes_per_task: int) -> Iterator[list[Bounded]]:
    run: list[Bounded] = []
    size = 0
    for bounded in _pieces(log, first, end, bytes_per_task):
        if run and size + bounded[2].size > bytes_per_task:
            yield run
            run, size = [], 0
        run.append(bounded)
        size += bounded[2].size
    if run:
        yield run


def _pieces(log: PartitionLog, first: int, end: int, bytes_per_task: int) -> Iterator[Bounded]:
    """The segments that may have records in the range, cut if they are too large."""
    bases = [segment.base_offset for segment in log.segments] + [OFFSET_MAX]
    for number, segment in enumerate(log.segments):
        if first >= end or bases[number + 1] <= first or segment.base_offset >= end or not segment.size:
            continue
        is_last = number == len(log.segments) - 1
        cuts = _cuts(log.store, segment, first, end, bytes_per_task)
        for start, stop in pairwise(cuts):
            yield segment.base_offset, bases[number + 1], Piece(segment.log, start, stop, is_last and stop == segment.size)


def _cuts(store: FileStore, segment: SegmentFiles, first: int, end: int, bytes_per_task: int) -> list[int]:
    """The positions that divide the range of a segment file into pieces: its start, the cuts and its end."""
    needs_index = segment.size > bytes_per_task or first > segment.base_offset or end < OFFSET_MAX
    if not needs_index:
        return [0, segment.size]
    offsets, positions = read_index(store, segment)
    start, stop = position_before(store, segment, first), segment.size
    after = int(np.searchsorted(offsets, end, side="left")) + 1
    if after < len(positions):
        stop = int(positions[after])
    cuts = [start]
    while stop - cuts[-1] > bytes_per_task:
        following = int(np.searchsorted(positions, cuts[-1] + bytes_per_task, side="left"))
        if following >= len(positions) or positions[following] >= stop:
            break
        cuts.append(int(positions[following]))
    return [*cuts, stop]
