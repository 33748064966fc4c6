# Compiled by mypyc: src/compiled.toml lists this module.
"""The log of one partition: an append-only sequence of batches cut into segments.

An append checks the batches, assigns their offsets, checks the producers, writes, and only then moves the log end offset. A read returns a
slice of a file, up to the offset that the reader may see: `VisibleOffsets` has these offsets.

A Log runs on one thread and accesses the disk only through its segments. Its host does whatever takes long or must wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from barnabas.errors import (
    CorruptRecord,
    InconsistentTopicId,
    KafkaStorageError,
    OffsetOutOfRange,
    OutOfDescriptors,
    RecordBatchTooLarge,
)
from barnabas.records.batch import entry_size
from barnabas.records.validation.long_validation import LongValidation, placed, validate_whole
from barnabas.records.validation.validator import REPLICATION, Validated, ValidationRules, validate
from barnabas.storage.directory import names
from barnabas.storage.directory.partition_metadata import PartitionMetadataFile
from barnabas.storage.disk.disk import is_shortage
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.host import LogHost
from barnabas.storage.indexes.txn_index import AbortedTxn
from barnabas.storage.leader_epochs import LeaderEpochCache
from barnabas.storage.log import retention, rolling, segment_removal, truncation
from barnabas.storage.log.append import (
    UNKNOWN_OFFSET,
    LogAppend,
    LogAppendInfo,
    analyze_replicated,
    assign_epochs,
    check_sizes,
    duplicate_of,
    has_gap,
    nothing_appended,
    require_next,
)
from barnabas.storage.log.durability import NEVER_MS, Durability, FlushPlan
from barnabas.storage.log.fetch import FetchData, FetchIsolation, Hole, aborted_in, collect_aborted, read_segments
from barnabas.storage.log.noted_losses import NotedLosses
from barnabas.storage.log.visible_offsets import VisibleOffsets
from barnabas.storage.log_config import INT_MAX, LogConfig
from barnabas.storage.log_offset import LogOffset
from barnabas.storage.producers.append import TRANSACTION_VERSION_UNKNOWN
from barnabas.storage.producers.replay import ProducerUpdates, check_producers
from barnabas.storage.producers.state import ProducerStateManager
from barnabas.storage.producers.verification import VerificationGuard
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segments import Segments
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log = logging.getLogger(__name__)


class Log(VisibleOffsets):
    def __init__(
        self,
        files: AnyFiles,
        directory: str,
        partition: TopicPartition,
        config: LogConfig,
        segments: Segments,
        producers: ProducerStateManager,
        epochs: LeaderEpochCache,
        metadata_file: PartitionMetadataFile,
        host: LogHost,
        jitter: Callable[[int], int],
        *,
        log_start_offset: int,
        recovery_point: int,
        log_end_offset: int,
        recovered: bool,
        is_new: bool,
        gaps_are_losses: bool = False,
    ) -> None:
        """Created by `loader.load_log`, from the state of the log directory."""
        super().__init__(partition, segments, producers, log_start_offset, log_end_offset)
        self.files = files
        self.directory = directory
        self.log_dir = directory.rpartition("/")[0]
        self.epochs = epochs
        self.metadata_file = metadata_file
        self.host = host
        self.durability = Durability(recovery_point, recovered, is_new)
        self.acks_wait_below = 0  # acknowledgements of records below it wait for the flush that flush.messages requires
        self._loaded_end = -1 if recovered else log_end_offset  # while the log ends there, closing need not make anything durable
        self._loaded_base = segments.active.base_offset
        self.jitter = jitter
        self.has_role = False  # whether this broker has become leader or follower; until then the high watermark is unknown
        self.gaps_are_losses = gaps_are_losses  # compaction has never removed records, neither here nor at the leader
        self._gaps_noted = False  # whether the host has made durable that the log has gaps
        self._losses = NotedLosses(partition)
        self._closed = False
        self._failure: str | None = None  # the error of the disk, after which nothing is read or written
        self._topic_id = metadata_file.read().topic_id if metadata_file.exists() else None
        self.update_config(config)
        self.log_start_offset = max(log_start_offset, segments.first.base_offset)
        self._update_log_start(self.log_start_offset)
        self._update_first_unstable()

    def __repr__(self) -> str:
        return (
            f"Log(dir={self.directory}, topic={self.partition.topic}, partition={self.partition.partition}, "
            f"highWatermark={self.high_watermark}, lastStableOffset={self.last_stable_offset}, "
            f"logStartOffset={self.log_start_offset}, logEndOffset={self.log_end_offset})"
        )

    # -- identity and config

    @property
    def is_future(self) -> bool:
        return self.directory.endswith(names.FUTURE_DIR_SUFFIX)

    @property
    def size(self) -> int:
        return self.segments.size

    @property
    def active_segment(self) -> Segment:
        return self.segments.active

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest_epoch

    @property
    def topic_id(self) -> Uuid | None:
        return self._topic_id

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """The next append writes the id to disk before its records."""
        if self._topic_id is None:
            self._topic_id = topic_id
            self.metadata_file.record(topic_id)
        elif self._topic_id != topic_id:
            raise InconsistentTopicId(
                f"Tried to assign topic ID {topic_id} to log for topic partition {self.partition}, but log already contained topic ID "
                f"{self._topic_id}"
            )

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self.gaps_are_losses = self.gaps_are_losses and not config.compact
        self._rules = ValidationRules(
            codec=config.codec,
            level=None if config.codec is None else config.level(config.codec),
            compacted=config.compact,
            timestamp_type=config.timestamp_type,
            before_max_ms=config.timestamp_before_max_ms,
            after_max_ms=config.timestamp_after_max_ms,
            max_message_bytes=config.max_message_bytes,
            topic_partition=str(self.partition),
        )

    # -- offsets

    @property
    def recovery_point(self) -> int:
        """All records below it are synced."""
        return self.durability.recovery_point

    def reset_end(self, offset: int, active_was_cut: bool) -> None:
        """Sets the log end offset after a truncation has removed the records from `offset` on."""
        self._log_end_offset = offset
        self.durability.truncated(offset, active_was_cut)

    def _place(self, offset: int) -> LogOffset:
        try:
            place = self._read_bounded(offset, 1, self.end, False, False).offset
            return LogOffset(offset, place.segment_base, place.position)
        except OffsetOutOfRange:
            return LogOffset(offset)

    def increment_log_start_offset(self, offset: int, reason: str) -> bool:
        """Makes the records below an offset unreadable (DeleteRecords, retention); returns whether the log start offset has moved."""
        if offset > self.high_watermark:
            raise OffsetOutOfRange(
                f"Cannot increment the log start offset to {offset} of partition {self.partition} "
                f"since it is larger than the high watermark {self.high_watermark}"
            )
        if offset <= self.log_start_offset:
            return False
        with self.on_disk(f"while increasing log start offset to {offset}"):
            self._update_log_start(offset)
            _log.info("Incremented log start offset of %s to %d due to %s", self.partition, offset, reason)
            self.epochs.truncate_from_start(offset)
            self.producers.on_log_start_offset_incremented(offset)
            self._update_first_unstable()
        return True

    # -- appending

    def append_as_leader(self, append: LogAppend, leader_epoch: int) -> LogAppendInfo:
        """Checks the batches of the append, assigns them the next offsets and writes them.

        Raises TakesTurns if more than `append.at_once` bytes of records must be validated. The caller then validates them in slices with
        `long_validation`, and passes the result to `append_validated`.
        """
        self.check_open()
        data, start, stop = append.data, append.start, append.end
        if entry_size(data, start, stop) == 0:
            return nothing_appended(self.log_start_offset)
        end_offset, rules, now_ms, origin = self._log_end_offset, self._rules, append.now_ms, append.origin
        if append.at_once < 0:
            validated = validate_whole(data, start, stop, end_offset, now_ms, leader_epoch, origin, rules)
        else:
            validated = validate(data, start, stop, end_offset, now_ms, leader_epoch, origin, rules, append.at_once)
        return self._append_as_leader(validated, append)

    def long_validation(self, append: LogAppend, leader_epoch: int) -> LongValidation:
        """The validation in slices of an append for which `append_as_leader` has raised TakesTurns."""
        return LongValidation(append.data, append.start, append.end, append.now_ms, leader_epoch, append.origin, self._rules)

    def append_validated(self, validated: Validated, append: LogAppend, leader_epoch: int) -> LogAppendInfo:
        """Writes the result of a long validation at the current log end offset, which may have moved since the validation began."""
        self.check_open()
        placed(validated, self._log_end_offset, leader_epoch)
        return self._append_as_leader(validated, append)

    def _append_as_leader(self, validated: Validated, append: LogAppend) -> LogAppendInfo:
        if validated.size_changed:
            check_sizes(validated.batches, self.config.max_message_bytes, self.partition)
        guard, transaction_version = append.verification_guard, append.transaction_version
        return self._append(validated, self._log_end_offset, append.origin, append.now_ms, guard, transaction_version)

    def append_as_follower(self, data: bytes, now_ms: int, leader_epoch: int = -1) -> LogAppendInfo:
        """Writes batches of the leader unchanged, offsets included.

        With a leader epoch, batches of a later epoch are left for the next fetch: this replica does not follow that leader yet.
        """
        self.check_open()
        replicated = analyze_replicated(data, leader_epoch, self.partition)
        if not replicated.batches:
            return nothing_appended(self.log_start_offset)
        first_offset = require_next(replicated, self._log_end_offset, self.partition)
        if not self._gaps_noted and has_gap(replicated.batches, self._log_end_offset):
            self._note_gaps()
        return self._append(replicated, first_offset, REPLICATION, now_ms)

    def _note_gaps(self) -> None:
        """Makes durable that this log has gaps, before the records are written.

        The gap comes from a compaction of the leader's log, because a leader does not skip lost records. A start that did not know of it
        would take unflushed records behind the gap for the remains of a crash, and cut them off.
        """
        with self.on_disk("while noting that the log has gaps"):
            self.host.note_gaps(self)
        self._gaps_noted = True
        self.gaps_are_losses = False

    def _append(
        self,
        records: Validated,
        first_offset: int,
        origin: int,
        now_ms: int,
        guard: VerificationGuard | None = None,
        transaction_version: int = TRANSACTION_VERSION_UNKNOWN,
    ) -> LogAppendInfo:
        """Writes checked records. The order of the steps is Kafka's: rejected records are not written, and written ones count at once."""
        try:
            self.metadata_file.maybe_flush()  # the topic id must be on disk before any data is
            assign_epochs(self.epochs, records.batches, self.partition)
            if records.size > self.config.segment_bytes:
                raise RecordBatchTooLarge(
                    f"Message batch size is {records.size} bytes in append to partition {self.partition}, "
                    f"which exceeds the maximum configured segment size of {self.config.segment_bytes}."
                )
            segment = self._maybe_roll(records, first_offset, now_ms)
            updates = check_producers(self.producers, segment, records, origin, guard, transaction_version)
            if updates is not None and updates.duplicate is not None:
                return duplicate_of(updates.duplicate, self.log_start_offset, self._awaits_flush(updates.duplicate.last_offset))
            segment.append(records.buffers, records.batches)
            self._log_end_offset = end = records.last_offset + 1
            if updates is not None:
                self._apply(updates, segment)
            self.producers.update_map_end_offset(end)
            if updates is not None:
                self._update_first_unstable()
            if end - self.durability.recovery_point >= self.config.flush_messages:
                self.acks_wait_below = end
                self.host.flush_later(self, end)
        except OSError as e:
            raise self._disk_failed("while appending records", e) from e
        return LogAppendInfo(
            first_offset,
            records.last_offset,
            records.max_timestamp,
            records.log_append_time,
            self.log_start_offset,
            records.size,
            len(records.batches),
            False,
            records.converted_count,
            max(records.size, records.temporary_bytes),
            self._awaits_flush(records.last_offset),
            records.temporary_bytes,
            records.conversion_ns,
        )

    def _awaits_flush(self, last_offset: int) -> bool:
        """Whether the acknowledgement of this offset waits for a flush that flush.messages requires."""
        return self.durability.recovery_point <= last_offset < self.acks_wait_below

    def _apply(self, updates: ProducerUpdates, segment: Segment) -> None:
        for info in updates.appended:
            self.producers.update(info)
        for txn in updates.completed:
            segment.add_aborted(txn, self.producers.last_stable_offset(txn))
            self.producers.complete_txn(txn)

    # -- rolling

    def _maybe_roll(self, records: Validated, first_offset: int, now_ms: int) -> Segment:
        active = self.segments.active
        if not active.should_roll(self.config, records.size, records.last_offset, records.max_timestamp, now_ms):
            return active
        # Where the first offset is unknown (formats v0 and v1 on a follower) this is the lowest possible one.
        return self.roll(now_ms, first_offset if first_offset != UNKNOWN_OFFSET else records.last_offset - INT_MAX)

    def roll(self, now_ms: int, expected_next_offset: int = 0) -> Segment:
        """Closes the active segment and starts a new one at the log end offset, or at `expected_next_offset` if that is higher."""
        return rolling.roll(self, now_ms, expected_next_offset)

    # -- reading

    def read(self, offset: int, max_bytes: int, isolation: FetchIsolation, min_one_message: bool = False) -> FetchData:
        """Batches from `offset` on, up to the bound of the isolation level."""
        self.check_open()
        if offset < self.log_start_offset:
            raise OffsetOutOfRange(
                f"Received request for offset {offset} for partition {self.partition}, "
                f"but we only have log segments starting from offset: {self.log_start_offset}."
            )
        if isolation is FetchIsolation.LOG_END:
            bound = self.end
        elif isolation is FetchIsolation.HIGH_WATERMARK:
            bound = self.fetch_high_watermark()
        else:
            bound = self.fetch_last_stable_offset()
        return self._read_bounded(offset, max_bytes, bound, min_one_message, isolation is FetchIsolation.TXN_COMMITTED, for_reader=True)

    def _read_bounded(
        self, offset: int, max_bytes: int, bound: LogOffset, min_one_message: bool, with_aborted: bool, for_reader: bool = False
    ) -> FetchData:
        segment = self.segments.floor(offset)
        if offset > self._log_end_offset or segment is None:
            raise OffsetOutOfRange(
                f"Received request for offset {offset} for partition {self.partition}, "
                f"but we only have log segments upto {self._log_end_offset}."
            )
        if offset >= bound.offset:
            position = bound if offset == bound.offset else self._place(offset)
            return FetchData(position, None, aborted=[] if with_aborted else None)
        try:
            fetched = read_segments(self.segments, segment, offset, max_bytes, bound, min_one_message, for_reader, self.gaps_are_losses)
            if fetched is None:  # the offset is in range, but compaction has removed every record from there on
                return FetchData(self.end, None)
            if with_aborted:
                aborted = aborted_in(self.segments, fetched, self._log_end_offset)
                return FetchData(fetched.offset, fetched.records, fetched.first_entry_incomplete, aborted)
            return fetched
        except Hole as hole:
            self.note_loss(hole.next_offset, str(hole))
            raise CorruptRecord(str(hole)) from None
        except OSError as e:
            raise self._disk_failed("while reading", e) from e

    def note_loss(self, up_to: int, what: str) -> None:
        """Logs that records are missing below an offset, once for each such offset."""
        self._losses.note(up_to, what, self.directory)

    def collect_aborted(self, start: int, upper_bound: int) -> list[AbortedTxn]:
        """Every aborted transaction that has data in [start, upper_bound), for the cleaner."""
        segment = self.segments.floor(start)
        return collect_aborted(self.segments, segment, self.log_start_offset, upper_bound) if segment else []

    # -- durability

    def prepare_flush(self, below: int) -> FlushPlan | None:
        """The syncs that make every record below an offset survive a crash of the machine. The plan may run on any thread.

        The log end offset plus one means the whole log, an empty active segment included.
        """
        snapshots = self.producers.take_unsynced_snapshots
        return self.durability.plan(self.files, self.directory, self.segments, snapshots, self.epochs, below, self._log_end_offset)

    def flushed(self, plan: FlushPlan, monotonic_ms: int) -> None:
        """A plan has run to its end. If the log was closed meanwhile, the plan has skipped closed files and proves nothing."""
        if self._closed or self._failure is not None:
            return
        self.durability.flushed(plan, self.segments.active.base_offset, monotonic_ms)

    def not_flushed(self, plan: FlushPlan) -> None:
        """A plan could not run to its end for want of descriptors: the next plan repeats all of it."""
        self.durability.not_flushed(plan)
        self.producers.unsynced_again(plan.snapshots)

    def flush_below(self, offset: int, monotonic_ms: int = NEVER_MS) -> None:
        with self.on_disk(f"while flushing log up to offset {offset}"):
            plan = self.prepare_flush(offset)
            if plan is None:
                return
            try:
                is_durable = plan.run()
            except OSError:
                self.not_flushed(plan)
                raise
            if is_durable:
                self.flushed(plan, monotonic_ms)

    def flush(self, monotonic_ms: int = NEVER_MS) -> None:
        """Flushes everything written so far, the active segment included."""
        self.flush_below(self._log_end_offset + 1, monotonic_ms)

    @property
    def unflushed_messages(self) -> int:
        return self._log_end_offset - self.durability.recovery_point

    # -- deleting and truncating

    def delete_old_segments(self, now_ms: int) -> int:
        """Applies retention: by log start offset always, by size and time where cleanup.policy contains delete; returns how many."""
        deleted = 0
        for reason, deletable in retention.breaches(self, now_ms):
            deleted += segment_removal.delete_segments(self, deletable, reason, now_ms)
        return deleted

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Drops every record from `offset` on; returns whether there was any."""
        return truncation.truncate_to(self, offset, now_ms)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int, log_start_offset: int | None = None) -> None:
        """Empties the log; the next record gets `offset`."""
        truncation.truncate_fully_and_start_at(self, offset, now_ms, log_start_offset)

    # -- life cycle

    def rename_dir(self, name: str, sync: bool = True) -> None:
        """Renames the directory of the log; open files follow. Without `sync`, the caller syncs the log directory: that is for logs that
        are deleted, whose topic ids need not be on disk either."""
        with self.on_disk(f"while renaming the log to {name}"):
            renamed = f"{self.log_dir}/{name}"
            if sync:
                self.metadata_file.maybe_flush()
            self.files.rename(self.directory, renamed)
            self.directory = renamed
            for segment in self.segments:
                segment.moved_to(renamed)
            self.producers.moved_to(renamed)
            self.epochs.moved_to(renamed)
            self.metadata_file.moved_to(renamed)
            self.durability.names_changed = True  # a flush that is under way no longer finds the directory
            if sync:
                self.files.sync_dir(self.log_dir)

    def close(self, monotonic_ms: int = NEVER_MS) -> None:
        """Makes durable what the next load reads: a producer snapshot at the log end offset, and complete indexes.

        A log that has not changed since it was loaded has both; only its files are closed. An empty log needs no topic id on disk.
        """
        if self._closed:
            return
        with self.on_disk("while closing"):
            if not self._is_as_loaded():
                if self._log_end_offset > 0:
                    self.metadata_file.maybe_flush()
                self.epochs.flush(self._log_end_offset)
                self.producers.take_snapshot()
                self.segments.active.close_indexes()
                self.flush(monotonic_ms)
            self.segments.close()
        self._closed = True

    def _is_as_loaded(self) -> bool:
        return (
            self._log_end_offset == self._loaded_end == self.durability.recovery_point
            and self.segments.active.base_offset == self._loaded_base
            and not self.durability.was_truncated
            and not self.durability.names_changed
            and not self.epochs.is_dirty(self._log_end_offset)
            and self.producers.map_end_offset <= (self.producers.latest_snapshot_offset or 0)
        )

    def close_handlers(self) -> None:
        """Closes all files without writing, because the disk has failed."""
        self.segments.close_handlers()
        self._closed = True

    def delete(self) -> None:
        """Removes the directory and its files. May run on any thread, because the log is no longer served; the caller handles OSError."""
        self.close_handlers()
        self.segments.clear()
        self.files.remove_tree(self.directory)

    def check_open(self) -> None:
        if self._closed or self._failure is not None:
            raise KafkaStorageError(self._failure or f"The log of {self.partition} is closed")

    @contextmanager
    def on_disk(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            raise self._disk_failed(doing, e) from e

    def _disk_failed(self, doing: str, error: OSError) -> KafkaStorageError:
        """Takes the log directory offline; returns the error that makes the client look for another replica. If only a descriptor was
        missing, the client tries again: nothing was half done."""
        message = f"Error {doing} for {self.partition} in dir {self.log_dir}: {error}"
        self.host.disk_failed(self.log_dir, message, error)
        if is_shortage(error):
            return OutOfDescriptors(message)
        self._failure = message
        return KafkaStorageError(message)
