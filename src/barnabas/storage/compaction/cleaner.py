"""The cleaning of one log: replaces segments by others that hold only the last value of each key.

The first pass collects the last offset of every key in the dirty part. The second pass copies the log up to there, one group of segments
after the other, without superseded records, and swaps each copy in as soon as it is durable. A cleaning advances in slices short enough for
the event loop and never waits for the disk. If it is abandoned, the log stays as it is, and the unfinished files are removed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable
from typing import Final, NamedTuple

from barnabas.errors import CorruptRecord, InvalidRecord, SegmentOffsetOverflow
from barnabas.records.batch import LOG_OVERHEAD, Batch, entry_size, read_batch
from barnabas.storage.compaction.cleaned_segment import CleanedSegment
from barnabas.storage.compaction.cleaned_transactions import CleanedTransactions
from barnabas.storage.compaction.config import CleanerConfig
from barnabas.storage.compaction.offset_map import SkimpyOffsetMap
from barnabas.storage.compaction.offset_map_builder import OffsetMapBuilder
from barnabas.storage.compaction.record_filter import RecordFilter
from barnabas.storage.compaction.stats import CleanerStats
from barnabas.storage.disk.files import AnyFile
from barnabas.storage.log.log import Log
from barnabas.storage.log.segment_removal import delete_snapshots_of
from barnabas.storage.log_config import INT_MAX
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.surgery import replace_segments, split_overflowed

_log = logging.getLogger(__name__)

# The bytes processed in one step: a fraction of a millisecond in compiled code. A larger batch is not divided.
SLICE_BYTES: Final = 16 * 1024


class CleaningAborted(Exception):
    """A segment had to be split; the cleaning must start again."""


class Blocking:
    """A call that may wait for the disk. The driver runs it on any thread; the cleaning reads the outcome in its next slice."""

    def __init__(self, call: Callable[[], bytes]) -> None:
        self._call = call
        self._outcome: bytes | Exception = RuntimeError("the blocking part of a cleaning was not run")

    def run(self) -> None:
        try:
            self._outcome = self._call()
        except Exception as e:
            self._outcome = e

    def result(self) -> bytes:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class Step(NamedTuple):
    """The work of one slice, and what the driver must do before the next."""

    bytes: int  # read and written
    blocking: Blocking | None = None  # to be run
    wait_ms: int = 0  # to be waited, for log.cleaner.io.max.bytes.per.second


Steps = Generator[Step, None, None]


class Cleaning:
    def __init__(
        self,
        log: Log,
        first_dirty_offset: int,
        first_uncleanable_offset: int,
        config: CleanerConfig,
        now_ms: int,
        monotonic_ms: int = 0,
    ) -> None:
        self.log = log
        self.first_dirty_offset = first_dirty_offset
        self.first_uncleanable_offset = first_uncleanable_offset
        self.end_offset: int | None = None  # where the next cleaning begins, once this one is done
        self.stats = CleanerStats(monotonic_ms)
        self._config = config
        self._begin_ms = now_ms
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms
        self._reported_bytes = 0
        self._steps = self._clean()

    def __repr__(self) -> str:
        return f"Cleaning({self.log.partition}, dirty=[{self.first_dirty_offset}, {self.first_uncleanable_offset}))"

    def advance(self, now_ms: int, monotonic_ms: int) -> Step | None:
        """Runs the next slice; returns None when the log is clean. Raises the error that ends the cleaning."""
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms
        return next(self._steps, None)

    def abandon(self) -> None:
        """Stops between two slices. Segments that were swapped in stay."""
        self._steps.close()

    def _clean(self) -> Steps:
        log = self.log
        _log.info("Beginning cleaning of log %s", log.partition)
        offsets = yield from self._build_offset_map()
        self.stats.map_complete_ms = self._monotonic_ms
        end_offset = offsets.latest_offset + 1
        groups = group_segments(
            log.segments.between(0, end_offset),
            log.config.segment_bytes,
            log.config.segment_index_bytes,
            self.first_uncleanable_offset,
        )
        transactions = CleanedTransactions()
        record_filter = RecordFilter(
            offsets,
            transactions,
            log.producers.active_producers,
            self.first_uncleanable_offset,
            self._begin_ms,
            log.config.delete_retention_ms,
        )
        legacy_horizon_ms = self._legacy_delete_horizon_ms()
        for group in groups:
            yield from self._clean_group(group, record_filter, transactions, legacy_horizon_ms)
        self.stats.messages_read = record_filter.messages_read
        self.stats.invalid_messages = record_filter.invalid_messages
        self.stats.buffer_utilization = offsets.size / self._config.slots
        self.stats.end_ms = self._monotonic_ms
        self.end_offset = end_offset

    def _legacy_delete_horizon_ms(self) -> int:
        """Tombstones of formats v0 and v1 are removed from segments last modified before this time; 0 in the first cleaning."""
        clean = self.log.segments.between(0, self.first_dirty_offset)
        return clean[-1].modified_ms - self.log.config.delete_retention_ms if clean else 0

    # -- the first pass

    def _build_offset_map(self) -> Generator[Step, None, SkimpyOffsetMap]:
        start, end = self.first_dirty_offset, self.first_uncleanable_offset
        dirty = self.log.segments.between(start, end)
        _log.info("Building offset map for log %s for %d segments in offset range [%d, %d).", self.log.partition, len(dirty), start, end)
        offsets = SkimpyOffsetMap(self._config.slots_for(end - start))
        transactions = CleanedTransactions()
        # The marker of a transaction that ended before the dirty part is not read here, so the transaction would never end.
        transactions.add_aborted(txn for txn in self.log.collect_aborted(start, end) if txn.last_offset >= start)
        builder = OffsetMapBuilder(offsets, transactions, start, self._config.keys_max)
        for segment, next_base_offset in zip(dirty, [*(s.base_offset for s in dirty[1:]), end], strict=False):
            whole = yield from self._walk(segment, segment.start_of(start), builder.add, self._count_mapped)
            if not whole:
                _log.debug("Offset map is full, segment with base offset %d is partially mapped", segment.base_offset)
                break
            offsets.latest_offset = next_base_offset - 1  # past a gap at the end of the segment
        self.stats.map_messages_read = builder.messages_read
        return offsets

    def _count_mapped(self, size: int) -> None:
        self.stats.map_bytes_read += size

    # -- the second pass

    def _clean_group(
        self, group: list[Segment], record_filter: RecordFilter, transactions: CleanedTransactions, legacy_horizon_ms: int
    ) -> Steps:
        """Copies the remaining records of some segments into one, which replaces them."""
        log = self.log
        cleaned = CleanedSegment(log, group[0].base_offset, record_filter, self.stats, self._now_ms)
        segment = group[0]
        try:
            transactions.cleaned_index = cleaned.segment.txn_index
            for segment, following in zip(group, [*group[1:], None], strict=True):
                upper_bound = following.base_offset if following else segment.next_offset()
                transactions.add_aborted(log.collect_aborted(segment.base_offset, upper_bound))
                record_filter.retain_legacy_deletes = segment.modified_ms > legacy_horizon_ms
                yield from self._walk(segment, 0, cleaned.add, cleaned.flush)
            sync = Blocking(cleaned.finish())
            yield self._step(sync)
            sync.result()
            cleaned.set_modified_ms(group[-1].modified_ms)
        except BaseException as e:
            cleaned.discard()
            if isinstance(e, SegmentOffsetOverflow):
                self._split(segment, e)
            raise
        _log.info("Swapping in cleaned segment %s for segments %s in log %s", cleaned.segment, group, log.partition)
        self._replace(group, [cleaned.segment])

    def _split(self, segment: Segment, overflow: SegmentOffsetOverflow) -> None:
        _log.info("Caught segment overflow error during cleaning: %s", overflow)
        log = self.log
        self._replace([segment], split_overflowed(segment, log.directory, log.files, log.config, self._now_ms))
        raise CleaningAborted(f"Segment {segment} of {log.partition} had to be split") from overflow

    def _replace(self, old: list[Segment], new: list[Segment]) -> None:
        log = self.log
        gone = replace_segments(log.segments, new, old, log.directory, log.files, log.host, log.config.file_delete_delay_ms)
        delete_snapshots_of(log, gone)

    # -- reading

    def _walk(
        self, segment: Segment, position: int, visit: Callable[[bytes, Batch], bool], visited: Callable[[int], None]
    ) -> Generator[Step, None, bool]:
        """Passes every batch of a segment to `visit`, until it returns False, and the number of bytes of each slice to `visited`."""
        while position < segment.size:
            data = yield from self._read_chunk(segment, position)
            at = done = 0
            while size := self._entry_size(segment, data, at, position):
                batch = read_batch(data, at, size)
                try:
                    whole = visit(data, batch)
                except (CorruptRecord, InvalidRecord) as e:
                    raise CorruptRecord(f"{e} in log segment {segment.file.path} at position {position + at}") from e
                if not whole:
                    return False
                at += size
                done += size
                if done >= SLICE_BYTES or batch.codec:
                    visited(done)
                    done = 0
                    yield self._step()
            visited(done)
            position += at
        yield self._step()
        return True

    def _read_chunk(self, segment: Segment, position: int) -> Generator[Step, None, bytes]:
        """Reads from the start of a batch on as much as fits in the read buffer, or the whole batch if that is larger."""
        left = segment.size - position
        data = yield from self._read(segment.file, min(self._config.read_bytes, left), position)
        if self._entry_size(segment, data, 0, position) == 0:
            size = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big")
            if size > left:
                where = f"log segment {segment.file.path} at position {position}"
                raise CorruptRecord(f"Log segment may be corrupt, batch size {size} > {left} bytes left in segment for {where}")
            data = yield from self._read(segment.file, size, position)
        return data

    def _entry_size(self, segment: Segment, data: bytes, at: int, position: int) -> int:
        try:
            return entry_size(data, at, len(data))
        except CorruptRecord as e:
            raise CorruptRecord(f"{e} in log segment {segment.file.path} after position {position}") from e

    def _read(self, file: AnyFile, size: int, position: int) -> Generator[Step, None, bytes]:
        data = file.pread_nowait(size, position)
        if data is None:
            blocking = Blocking(lambda: _pread_pinned(file, size, position))
            yield self._step(blocking)
            data = blocking.result()
        return data

    def _step(self, blocking: Blocking | None = None) -> Step:
        stats = self.stats
        total = stats.map_bytes_read + stats.bytes_read + stats.bytes_written
        step = Step(total - self._reported_bytes, blocking)
        self._reported_bytes = total
        return step


def exhaust(cleaning: Cleaning, now_ms: int, monotonic_ms: int = 0) -> None:
    """Cleans a log in one go, on this thread."""
    while (step := cleaning.advance(now_ms, monotonic_ms)) is not None:
        if step.blocking is not None:
            step.blocking.run()


def group_segments(segments: Iterable[Segment], max_size: int, max_index_size: int, first_uncleanable_offset: int) -> list[list[Segment]]:
    """Groups neighbouring segments that become one, so that segments do not get ever smaller. A group is at most one segment large."""
    groups: list[list[Segment]] = []
    size = index_size = time_index_size = 0
    listed = list(segments)
    for segment, following in zip(listed, [*listed[1:], None], strict=False):
        size += segment.size
        index_size += segment.offset_index.size_in_bytes
        time_index_size += segment.time_index.size_in_bytes
        last_offset = (following.base_offset if following else first_uncleanable_offset) - 1
        if (
            groups
            and size <= max_size
            and index_size <= max_index_size
            and time_index_size <= max_index_size
            # An empty segment joins the group at any distance: otherwise one would remain for every 2**31 offsets.
            and (segment.size == 0 or last_offset - groups[-1][0].base_offset <= INT_MAX)
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size, index_size, time_index_size = segment.size, segment.offset_index.size_in_bytes, segment.time_index.size_in_bytes
    return groups


def _pread_pinned(file: AnyFile, size: int, position: int) -> bytes:
    file.pin()
    try:
        return file.pread(size, position)
    finally:
        file.unpin()
