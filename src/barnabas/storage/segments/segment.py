# Compiled by mypyc: src/compiled.toml lists this module.
"""One segment of a log: a sequence of batches in a file, with its indexes.

Segments do not overlap: every offset in one is at least its base offset and below the base offset of the next. Only the last one,
the active segment, is written to. The Log, not the segment, decides when to roll, what to delete and what a client may read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from librt.strings import read_i64_be
from mypy_extensions import i64

from barnabas.errors import CorruptIndex, CorruptRecord, IndexEntryOutOfOrder, InvalidRecord, SegmentOffsetOverflow
from barnabas.records.batch import MAGIC_AT, MAGIC_V0, MAGIC_V2, NO_TIMESTAMP, Batch, entry_size
from barnabas.records.crc import ensure_valid
from barnabas.records.reader import each_record
from barnabas.records.seek import seek_offset
from barnabas.storage.directory import names
from barnabas.storage.disk.files import AnyFile, AnyFiles
from barnabas.storage.indexes.offset_index import OffsetIndex, OffsetPosition
from barnabas.storage.indexes.time_index import TimeIndex, TimestampOffset
from barnabas.storage.indexes.txn_index import AbortedTxn, TransactionIndex
from barnabas.storage.leader_epochs import LeaderEpochCache
from barnabas.storage.log_config import INT_MAX, LogConfig
from barnabas.storage.producers.replay import replay_batch
from barnabas.storage.producers.state import CompletedTxn, ProducerStateManager
from barnabas.storage.segments.scan import Chunk, scan

_log = logging.getLogger(__name__)

# How many bytes are read at once on the way from an index entry to a batch: the distance is at most one index interval and a batch.
_SEEK_BYTES: Final = 4096
OFFSET_MAX: Final = 2**63 - 1
UNKNOWN_OFFSET: Final = -1


class BatchPosition(NamedTuple):
    """The position of a batch in its segment file."""

    position: int
    size: int
    last_offset: int
    first_offset: int  # UNKNOWN_OFFSET in formats v0 and v1


class FileSlice(NamedTuple):
    """Bytes of a segment, not read yet: a fetch passes them on without parsing them."""

    file: AnyFile
    position: int
    size: int

    def read(self) -> bytes:
        return self.file.pread(self.size, self.position)

    def read_nowait(self) -> bytes | None:
        """The bytes if the page cache has them; None if reading them would wait for the disk."""
        return self.file.pread_nowait(self.size, self.position)


class SegmentRead(NamedTuple):
    position: int  # of the first batch
    records: FileSlice | None  # None: the segment has the offset, but nothing may be read up to the bound
    first_entry_incomplete: bool
    first_offset: int = UNKNOWN_OFFSET  # of the first batch; UNKNOWN_OFFSET in formats v0 and v1


class TimestampAndOffset(NamedTuple):
    """A record that a search by timestamp has found, with its leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


class Segment:
    def __init__(
        self,
        files: AnyFiles,
        directory: str,
        base_offset: int,
        config: LogConfig,
        now_ms: int,
        *,
        suffix: str = "",
        jitter_ms: int = 0,
        create: bool = True,
    ) -> None:
        self.files = files
        self.base_offset = base_offset
        self.suffix = suffix
        self.file = files.open(names.segment_file(directory, base_offset, names.LOG_SUFFIX, suffix), create=create)
        self.offset_index = OffsetIndex(
            files, names.segment_file(directory, base_offset, names.INDEX_SUFFIX, suffix), base_offset, config.segment_index_bytes
        )
        self.time_index = TimeIndex(
            files, names.segment_file(directory, base_offset, names.TIME_INDEX_SUFFIX, suffix), base_offset, config.segment_index_bytes
        )
        self.txn_index = TransactionIndex(files, names.segment_file(directory, base_offset, names.TXN_INDEX_SUFFIX, suffix), base_offset)
        self._index_interval = config.index_interval_bytes
        self._jitter_ms = jitter_ms
        self._created_ms = now_ms
        self._bytes_since_index = 0
        self._max_timestamp: TimestampOffset | None = None  # read from the time index at first use
        self._rolling_timestamp: int | None = None  # of the first batch: the age of the segment is measured from it

    def __repr__(self) -> str:
        largest = self._max_timestamp.timestamp if self._max_timestamp else NO_TIMESTAMP
        return f"LogSegment(baseOffset={self.base_offset}, size={self.size}, largestRecordTimestamp={largest})"

    def create_indexes(self) -> None:
        """Creates the index files of a new segment: the loader takes a segment without them for a damaged one."""
        self.offset_index.load()
        self.time_index.load()

    # -- size and timestamps

    @property
    def size(self) -> int:
        return self.file.size

    @property
    def max_timestamp(self) -> TimestampOffset:
        """The largest timestamp so far and the last offset of its batch; (-1, base offset) while there is none."""
        if self._max_timestamp is None:
            self._max_timestamp = self._last_time_entry()
        return self._max_timestamp

    def _last_time_entry(self) -> TimestampOffset:
        last = self.time_index.last_entry
        if last.timestamp >= 0 and not self._is_time_entry(last):
            self._rebuild_indexes(f"{self.time_index.path} ends with {last}, which does not match any batch")
        return self.time_index.last_entry

    @property
    def largest_timestamp(self) -> int:
        """The timestamp that retention uses: the largest record timestamp, or the file's modification time if records have none."""
        largest = self.max_timestamp.timestamp
        return largest if largest >= 0 else self.modified_ms

    @property
    def modified_ms(self) -> int:
        return self.files.modified_ms(self.file.path)

    def fits(self, offset: int) -> bool:
        return 0 <= offset - self.base_offset <= INT_MAX

    # -- writing

    def should_roll(self, config: LogConfig, added_bytes: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether the segment or an index is full, the segment is too old, or the offset does not fit a relative offset."""
        size = self.file.size
        return (
            size > config.segment_bytes - added_bytes
            or (size > 0 and self.age_ms(now_ms, max_timestamp) > config.segment_ms_max - self._jitter_ms)
            or self.offset_index.is_full
            or self.time_index.is_full
            or not self.fits(last_offset)
        )

    def append(self, buffers: Sequence[bytes | memoryview], batches: Sequence[Batch]) -> None:
        """Writes batches to the page cache, with index entries where they are due. The buffers hold these batches and nothing else."""
        if not batches:
            return
        if not self.fits(batches[-1].last_offset):
            raise self._overflow(batches[-1].last_offset)
        largest = self._max_timestamp or self.max_timestamp  # may have to be read from disk; after the write nothing may fail
        position = self.file.append(buffers)
        if position == 0:
            self._rolling_timestamp = batches[0].max_timestamp
        for batch in batches:
            if batch.max_timestamp > largest.timestamp:
                self._max_timestamp = largest = TimestampOffset(batch.max_timestamp, batch.last_offset)
            if self._bytes_since_index > self._index_interval:
                self._add_index_entry(batch.last_offset, position, largest)
                self._bytes_since_index = 0
            self._bytes_since_index += batch.size
            position += batch.size

    def _add_index_entry(self, last_offset: int, position: int, largest: TimestampOffset) -> None:
        """Skipped for a full index, which is then less precise. A log rolls before that, unless its settings have changed."""
        if not (self.offset_index.is_full or self.time_index.is_full):
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(largest.timestamp, largest.offset)

    def add_aborted(self, txn: CompletedTxn, last_stable_offset: int) -> None:
        if txn.is_aborted:
            self.txn_index.append(AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, last_stable_offset))

    # -- reading

    def locate(self, offset: int) -> BatchPosition | None:
        """The first batch that ends at or after `offset`; None past the end."""
        try:
            return self._locate(offset)
        except CorruptIndex as e:
            self._rebuild_indexes(str(e))
            return self._locate(offset)

    def _locate(self, offset: int) -> BatchPosition | None:
        file = self.file
        end = file.size
        entry = self._lookup(offset)
        position = entry.position
        while position < end:
            data = file.pread(_SEEK_BYTES, position)
            if position == entry.position:
                self._check_entry(entry, offset, data)
            try:
                at, size, last_offset = seek_offset(data, offset, end - position)
            except CorruptRecord as e:
                raise CorruptRecord(f"{e} in file {file.path} after position {position}") from None
            if size:
                first_offset = read_i64_be(data, at) if data[at + MAGIC_AT] >= MAGIC_V2 else i64(UNKNOWN_OFFSET)
                return BatchPosition(position + at, size, last_offset, first_offset)
            if at == 0:
                return None
            position += at
        return None

    def start_of(self, offset: int) -> int:
        """The position from which to walk to an offset: that of the nearest index entry."""
        try:
            return self._start_of(offset)
        except CorruptIndex as e:
            self._rebuild_indexes(str(e))
            return self._start_of(offset)

    def _start_of(self, offset: int) -> int:
        entry = self._lookup(offset)
        self._check_entry(entry, offset, self.file.pread(MAGIC_AT + 1, entry.position))
        return entry.position

    def _lookup(self, offset: int) -> OffsetPosition:
        entry = self.offset_index.lookup(offset)
        if entry.position and not 0 < entry.position < self.file.size:
            raise CorruptIndex(f"{self.offset_index.path} leads to position {entry.position} of a log of {self.file.size} bytes")
        return entry

    def _check_entry(self, entry: OffsetPosition, offset: int, data: bytes) -> None:
        """Raises CorruptIndex unless a matching batch is at the position of the entry: a damaged index must not hide records."""
        if entry.position == 0:
            return
        base_offset = int.from_bytes(data[:8], "big", signed=True)
        try:
            is_whole = len(data) > MAGIC_AT and entry_size(data, 0, self.file.size - entry.position) > 0
        except CorruptRecord:
            is_whole = False
        if not is_whole or not self.base_offset <= base_offset <= min(offset, entry.offset):
            raise CorruptIndex(f"{self.offset_index.path} leads from offset {offset} to position {entry.position}, where no batch holds it")

    def _is_time_entry(self, entry: TimestampOffset) -> bool:
        """Whether the batch to which a time index entry points has that timestamp."""
        batch = self.locate(entry.offset) if entry.offset >= self.base_offset else None
        chunk = None if batch is None else next(iter(self.chunks(batch.position, batch.position + batch.size)), None)
        return chunk is not None and chunk.batches[0].max_timestamp == entry.timestamp

    def read(self, start_offset: int, max_size: int, max_position: int | None, min_one_message: bool = False) -> SegmentRead | None:
        """Batches from `start_offset` on, up to `max_size` bytes and never past `max_position`; None if the offset is past the end.

        With `min_one_message` the first batch is returned whole whatever its size, so that a reader with a small buffer can go on.
        """
        if max_size < 0:
            raise ValueError(f"Invalid max size {max_size} for log read from segment {self.file.path}")
        first = self.locate(start_offset)
        if first is None:
            return None
        allowed = max(max_size, first.size) if min_one_message else max_size
        if allowed == 0 or max_position is None:
            return SegmentRead(first.position, None, False, first.first_offset)
        size = max(0, min(max_position - first.position, allowed))
        return SegmentRead(first.position, FileSlice(self.file, first.position, size), allowed < first.size, first.first_offset)

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[Chunk]:
        return scan(self.file, start, self.file.size if end is None else end)

    def next_offset(self) -> int:
        """The offset after the last record, searched from the last index entry on."""
        return self._end()[0]

    @property
    def is_torn(self) -> bool:
        """Whether the file does not end with a whole batch: then nothing may be appended."""
        try:
            return self._end()[1] < self.file.size
        except CorruptRecord:
            return True

    def _end(self) -> tuple[int, int]:
        """The offset and the position after the last whole batch."""
        indexed = self.offset_index.last_offset
        end = self._walk_to_end()
        if end[0] <= indexed and self.offset_index.entries:
            self._rebuild_indexes(f"Index {self.offset_index.path} ends with offset {indexed}, the log with {end[0] - 1}")
            end = self._walk_to_end()
        return end

    def _walk_to_end(self) -> tuple[int, int]:
        position = self.start_of(max(self.offset_index.last_offset, self.base_offset))
        next_offset = self.base_offset
        for chunk in self.chunks(position):
            last = chunk.batches[-1]
            next_offset, position = int(last.last_offset) + 1, chunk.position + int(last.end)
        return next_offset, position

    def find_by_timestamp(self, timestamp: int, first_offset: int) -> TimestampAndOffset | None:
        """The first record at or after `first_offset` whose timestamp is at least `timestamp`."""
        near = self.time_index.lookup(timestamp)
        if near.timestamp >= 0 and not self._is_time_entry(near):
            self._rebuild_indexes(f"{self.time_index.path} holds {near}, which does not match any batch")
            near = self.time_index.lookup(timestamp)
        for chunk in self.chunks(self.start_of(max(near.offset, first_offset))):
            for batch in chunk.batches:
                if batch.max_timestamp < timestamp:
                    continue
                for record in each_record(chunk.data, batch):
                    if record.timestamp >= timestamp and record.offset >= first_offset:
                        return TimestampAndOffset(record.timestamp, record.offset, batch.leader_epoch)
        return None

    def find_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record that carries the segment's largest timestamp."""
        largest = self.max_timestamp
        for chunk in self.chunks(self.start_of(largest.offset)):
            for batch in chunk.batches:
                if batch.max_timestamp == largest.timestamp and batch.magic > MAGIC_V0:
                    for record in each_record(chunk.data, batch):
                        if record.timestamp == largest.timestamp:
                            return TimestampAndOffset(record.timestamp, record.offset, batch.leader_epoch)
        return None

    # -- age

    def age_ms(self, now_ms: int, max_timestamp: int) -> int:
        """The time from the first batch to `max_timestamp`; if records have no timestamps, the time since the segment was created."""
        first = self.first_timestamp
        if first >= 0:
            return max_timestamp - first
        if now_ms < self._created_ms:
            self._created_ms = now_ms  # the wall clock was set back: otherwise the segment would not roll until the clock has caught up
        return now_ms - self._created_ms

    @property
    def first_timestamp(self) -> int:
        if self._rolling_timestamp is None:
            if self.file.size == 0:
                return NO_TIMESTAMP
            chunk = next(iter(self.chunks(0, min(self.file.size, _SEEK_BYTES))), None) or next(iter(self.chunks()), None)
            if chunk is None:
                return NO_TIMESTAMP
            self._rolling_timestamp = int(chunk.batches[0].max_timestamp)
        return self._rolling_timestamp

    # -- recovery and truncation

    def recover(self, producers: ProducerStateManager, epochs: LeaderEpochCache | None, below: int = OFFSET_MAX) -> int:
        """Checks every batch, rebuilds the indexes and cuts the file at the first damage; returns the number of bytes cut off.

        The next segment begins at `below`: an offset from there on is damage too.
        """
        self._reset_indexes()
        self.txn_index.reset()
        valid = indexed = 0
        expected = self.base_offset
        try:
            for chunk in self.chunks():
                for number, batch in enumerate(chunk.batches):
                    ensure_valid(chunk.data, batch)
                    if batch.base_offset != expected:
                        self._check_gap(chunk, number, expected, below)
                    expected = int(batch.last_offset) + 1
                    valid, indexed = self._index_recovered(batch, valid, indexed)
                    if batch.magic >= MAGIC_V2:
                        if epochs is not None and batch.leader_epoch >= 0 and batch.leader_epoch > epochs.latest_epoch:
                            epochs.assign(batch.leader_epoch, batch.base_offset)
                        self._replay(producers, chunk.data, batch)
        except (CorruptRecord, InvalidRecord) as e:
            _log.warning("Found invalid messages in log segment %s at byte offset %d: %s", self.file.path, valid, e)
        cut = self.file.size - valid
        if cut > 0:
            _log.info("Truncated %d invalid bytes at the end of segment %s during recovery", cut, self.file.path)
            self.file.truncate(valid)
        self._bytes_since_index = valid - indexed
        self.close_indexes()
        return cut

    def _check_gap(self, chunk: Chunk, number: int, expected: int, below: int) -> None:
        """Compaction leaves gaps, but no checksum covers base offsets: one that is too low, or followed by a lower one, is damaged."""
        batch = chunk.batches[number]
        following = chunk.batches[number + 1 : number + 2] or self._batches_at(chunk.position + int(batch.end))
        limit = min([below, *(after.base_offset for after in following)])
        if batch.base_offset < expected or batch.last_offset >= limit:
            raise CorruptRecord(
                f"Offsets {batch.base_offset} to {batch.last_offset} are not between {expected} and {limit}, "
                f"at position {chunk.position + batch.at} of {self.file.path}"
            )

    def _batches_at(self, position: int) -> list[Batch]:
        """The batch at a position and some that follow; empty if the batch is damaged."""
        try:
            return next((chunk.batches for chunk in scan(self.file, position, self.file.size, _SEEK_BYTES)), [])
        except CorruptRecord:
            return []

    def _rebuild_indexes(self, reason: str) -> None:
        """Rebuilds offset and time index from the batches; the log is not changed, even if it is damaged."""
        _log.warning("Rebuilding the indexes of %s from the log: %s", self.file.path, reason)
        self._reset_indexes()
        valid = indexed = 0
        try:
            for chunk in self.chunks():
                for batch in chunk.batches:
                    valid, indexed = self._index_recovered(batch, valid, indexed)
        except (CorruptRecord, IndexEntryOutOfOrder) as e:
            _log.error("Found invalid messages in log segment %s at byte offset %d: %s", self.file.path, valid, e)
        self._bytes_since_index = valid - indexed
        self.close_indexes()

    def _reset_indexes(self) -> None:
        self.offset_index.reset()
        self.time_index.reset()
        self._max_timestamp = TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def _index_recovered(self, batch: Batch, valid: int, indexed: int) -> tuple[int, int]:
        last_offset = int(batch.last_offset)
        if not self.fits(last_offset):
            raise self._overflow(last_offset)
        largest = self.max_timestamp
        if batch.max_timestamp > largest.timestamp:
            self._max_timestamp = largest = TimestampOffset(int(batch.max_timestamp), last_offset)
        if valid - indexed > self._index_interval:
            self._add_index_entry(last_offset, valid, largest)
            indexed = valid
        return valid + int(batch.size), indexed

    def _replay(self, producers: ProducerStateManager, data: bytes, batch: Batch) -> None:
        completed = replay_batch(producers, data, batch)
        if completed is not None:
            self.add_aborted(completed, producers.last_stable_offset(completed))
            producers.complete_txn(completed)
        producers.update_map_end_offset(int(batch.last_offset) + 1)

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Removes everything from `offset` on; returns the number of bytes. An offset past the end removes nothing."""
        first = self.locate(offset)  # before the index is truncated: otherwise this would scan the whole file
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        removed = 0
        if first is not None:
            removed = self.file.size - first.position
            self.file.truncate(first.position)
        if self.file.size == 0:
            self._created_ms = now_ms
            self._rolling_timestamp = None
        self._bytes_since_index = 0
        if self.max_timestamp.timestamp >= 0:
            self._max_timestamp = self._read_largest_timestamp()
        return removed

    def _read_largest_timestamp(self) -> TimestampOffset:
        largest = self.time_index.last_entry
        for chunk in self.chunks(self.start_of(largest.offset)):
            for batch in chunk.batches:
                if batch.max_timestamp > largest.timestamp:
                    largest = TimestampOffset(int(batch.max_timestamp), int(batch.last_offset))
        return largest

    @property
    def has_overflow(self) -> bool:
        after = self.next_offset()
        return after > self.base_offset and not self.fits(after - 1)

    def _overflow(self, offset: int) -> SegmentOffsetOverflow:
        return SegmentOffsetOverflow(
            f"Detected offset overflow at offset {offset} in segment {self.file.path} with base offset {self.base_offset}",
            self.base_offset,
        )

    # -- files

    def close_indexes(self) -> None:
        """Completes the indexes of a segment that was rolled or recovered: the last time index entry is the largest timestamp."""
        largest = self.max_timestamp
        self.time_index.maybe_append(largest.timestamp, largest.offset, skip_full_check=True)
        self.offset_index.trim_to_valid_size()
        self.time_index.trim_to_valid_size()

    def sync_targets(self) -> list[AnyFile | OffsetIndex | TimeIndex | TransactionIndex]:
        """Everything that must be synced for the segment to be durable; pending index entries are written first."""
        self.offset_index.flush()
        self.time_index.flush()
        self.txn_index.flush()
        return [self.file, self.offset_index, self.time_index, self.txn_index]

    def flush(self) -> None:
        for target in self.sync_targets():
            target.sync()

    def rename_suffix(self, old: str, new: str) -> None:
        """Renames all files of the segment, `.log` first: a segment exists if its `.log` does."""
        for part in (self.file, self.offset_index, self.time_index, self.txn_index):
            path = part.path
            renamed = path.removesuffix(old) + new if old else path + new
            if self.files.exists(path):
                self.files.rename(path, renamed)
            part.renamed(renamed)
        self.suffix = new

    def moved_to(self, directory: str) -> None:
        """The directory of the log was renamed."""
        for part in (self.file, self.offset_index, self.time_index, self.txn_index):
            part.renamed(f"{directory}/{part.path.rpartition('/')[2]}")

    def close(self) -> None:
        if self._max_timestamp is not None:
            self.time_index.maybe_append(self._max_timestamp.timestamp, self._max_timestamp.offset, skip_full_check=True)
        self.offset_index.close()
        self.time_index.close()
        self.txn_index.close()
        self.file.close()

    def close_handlers(self) -> None:
        """Closes the files without writing, because the disk has failed or the segment is deleted."""
        self.offset_index.close(discard=True)
        self.time_index.close(discard=True)
        self.txn_index.close()
        self.file.close()

    def delete(self) -> None:
        self.close_handlers()
        for part in (self.file, self.offset_index, self.time_index, self.txn_index):
            self.files.remove(part.path, missing_ok=True)
