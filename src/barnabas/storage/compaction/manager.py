"""Decides which log is compacted next, and stores how far each log was cleaned.

The dirtiest log comes first. The driver (the broker's housekeeping) takes the next cleaning, advances it slice by slice, and between two
slices does what the step requires. Only the manager writes `cleaner-offset-checkpoint`, after a cleaning is complete. A log that cannot be
cleaned is marked uncleanable with a warning, and the others are still cleaned.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress

from barnabas.errors import KafkaStorageError
from barnabas.storage.compaction.cleanable import LogToClean, log_to_clean, offsets_to_clean
from barnabas.storage.compaction.cleaner import Cleaning, CleaningAborted, Step
from barnabas.storage.compaction.config import CleanerConfig
from barnabas.storage.compaction.states import CleaningState, CleaningStates
from barnabas.storage.compaction.stats import CleanerStats
from barnabas.storage.compaction.throttler import Throttler
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.host import LogHost
from barnabas.storage.log.log import Log
from barnabas.topic_partition import TopicPartition

__all__ = ["CleanerConfig", "CleanerManager"]

_log = logging.getLogger(__name__)


class CleanerManager:
    """`dirs` and `logs` belong to the log manager, which changes them when directories fail and logs are created or deleted."""

    def __init__(self, config: CleanerConfig, dirs: Mapping[str, LogDir], logs: Mapping[TopicPartition, Log]) -> None:
        self.config = config
        self.max_dirty_ratio = 0.0  # of the dirtiest log, at the last check
        self.max_compaction_delay_ms = 0  # of the log that has waited longest past its max.compaction.lag.ms
        self.last_run_ms = 0
        self.last_stats: CleanerStats | None = None
        self.io_bytes = 0  # that cleanings have read and written
        self._dirs = dirs
        self._logs = logs
        self._states = CleaningStates()
        self._cleanings: dict[TopicPartition, Cleaning] = {}
        self._uncleanable: dict[str, set[TopicPartition]] = {}  # by log directory
        self._checkpoints: dict[str, dict[TopicPartition, int]] = {}  # by log directory, as last written
        self._throttler = Throttler(config.io_max_bytes_per_second)
        self._is_running = config.enable

    def reconfigure(self, config: CleanerConfig) -> None:
        """Applies settings that were altered while the broker runs. A cleaning that is under way keeps the settings it began with."""
        if config.io_max_bytes_per_second != self.config.io_max_bytes_per_second:
            self._throttler = Throttler(config.io_max_bytes_per_second)
        self.config = config

    # -- cleaning

    def clean_next(self, now_ms: int, monotonic_ms: int) -> Cleaning | None:
        """The next cleaning, to be driven through `advance`; None if no log needs one, or log.cleaner.threads cleanings are under way."""
        if not self._is_running or len(self._cleanings) >= self.config.threads:
            return None
        self.last_run_ms = monotonic_ms
        filthiest = self.grab_filthiest(now_ms)
        if filthiest is None:
            return None
        first_dirty, first_uncleanable = filthiest.first_dirty_offset, filthiest.first_uncleanable_offset
        cleaning = Cleaning(filthiest.log, first_dirty, first_uncleanable, self.config, now_ms, monotonic_ms)
        self._cleanings[filthiest.log.partition] = cleaning
        return cleaning

    def advance(self, cleaning: Cleaning, now_ms: int, monotonic_ms: int) -> Step | None:
        """Runs one slice; returns None once the cleaning is complete or has failed.

        Before the next slice the caller runs the blocking call of the step, on any thread, and waits as long as the step says.
        """
        partition, log = cleaning.log.partition, cleaning.log
        if self._cleanings.get(partition) is not cleaning:
            return None  # aborted between two slices
        try:
            step = cleaning.advance(now_ms, monotonic_ms)
        except (CleaningAborted, KafkaStorageError):
            self._release(partition)  # the next cleaning starts from the same checkpoint, or the directory is already offline
            return None
        except OSError as e:
            self._release(partition)
            log.host.disk_failed(log.log_dir, f"Failed to clean up log for {partition} in dir {log.log_dir} due to {e}", e)
            return None
        except Exception as e:
            self._release(partition)
            self._mark_uncleanable(log, e)
            return None
        if step is None:
            self._done(cleaning, now_ms)
            return None
        self.io_bytes += step.bytes
        return step._replace(wait_ms=self._throttler.observe(step.bytes, monotonic_ms))

    def run_once(self, now_ms: int, monotonic_ms: int = 0) -> bool:
        """Cleans the filthiest log on this thread, unthrottled. Returns whether there was one."""
        cleaning = self.clean_next(now_ms, monotonic_ms)
        if cleaning is None:
            return False
        while (step := self.advance(cleaning, now_ms, monotonic_ms)) is not None:
            if step.blocking is not None:
                step.blocking.run()
        return True

    def _done(self, cleaning: Cleaning, now_ms: int) -> None:
        log, end_offset = cleaning.log, cleaning.end_offset
        assert end_offset is not None
        self._release(log.partition)
        self.last_stats = cleaning.stats
        _log.info("%s", cleaning.stats.describe(str(log.partition), cleaning.first_dirty_offset, end_offset))
        if cleaning.stats.invalid_messages:
            _log.warning("\tFound %d invalid messages during compaction.", cleaning.stats.invalid_messages)
        self._checkpoint(log.log_dir, log.host, {log.partition: end_offset})
        if log.config.delete:
            with suppress(KafkaStorageError):  # the log has reported its disk
                log.delete_old_segments(now_ms)

    def _release(self, partition: TopicPartition) -> None:
        del self._cleanings[partition]
        self._states.end(partition)

    # -- choosing

    def grab_filthiest(self, now_ms: int) -> LogToClean | None:
        """The log with the greatest share of dirty bytes among those that are dirty enough or overdue; its state becomes IN_PROGRESS."""
        self._forget_removed()
        dirty = [candidate for log in list(self._logs.values()) if (candidate := self._log_to_clean(log, now_ms)) is not None]
        self.max_dirty_ratio = max((candidate.cleanable_ratio for candidate in dirty), default=0.0)
        self.max_compaction_delay_ms = max((candidate.compaction_delay_ms for candidate in dirty), default=0)
        due = [candidate for candidate in dirty if candidate.is_due]
        if not due:
            return None
        filthiest = max(due, key=lambda candidate: candidate.cleanable_ratio)
        self._states.begin(filthiest.log.partition)
        return filthiest

    def _log_to_clean(self, log: Log, now_ms: int) -> LogToClean | None:
        partition = log.partition
        if not log.config.compact or self._states[partition] is not CleaningState.NONE or self._is_uncleanable(log):
            return None
        try:
            offsets = offsets_to_clean(log, self._checkpoints_of(log.log_dir).get(partition), now_ms)
            if offsets.reset:
                self._checkpoint(log.log_dir, log.host, {partition: offsets.first_dirty_offset})
            candidate = log_to_clean(log, offsets, now_ms)
        except OSError as e:
            log.host.disk_failed(log.log_dir, f"Failed to look at log for {partition} in dir {log.log_dir} due to {e}", e)
            return None
        except Exception as e:
            self._mark_uncleanable(log, e)
            return None
        return candidate if candidate.total_bytes > 0 else None

    # -- pausing

    def state(self, partition: TopicPartition) -> CleaningState:
        return self._states[partition]

    def pause(self, partition: TopicPartition) -> bool:
        """Keeps a partition from being cleaned until `resume`. Returns False, without a pause, if a cleaning is under way."""
        if self._states[partition] is CleaningState.IN_PROGRESS:
            return False
        self._states.pause(partition)
        return True

    def abort_and_pause(self, partition: TopicPartition) -> None:
        """As `pause`, but aborts a cleaning that is under way."""
        if self._states[partition] is CleaningState.IN_PROGRESS:
            self._states.abort(partition)
            self._cleanings[partition].abandon()
            _log.info("The cleaning for partition %s is aborted and paused", partition)
            self._release(partition)
        else:
            self._states.pause(partition)

    def resume(self, partition: TopicPartition) -> None:
        """Undoes one pause."""
        if partition in self._logs:  # a log that was removed while it was paused no longer has a state
            self._states.resume(partition)

    def abort(self, partition: TopicPartition) -> None:
        """Aborts the cleaning of a partition, if there is one. It may be cleaned again at any time."""
        if self._states[partition] is CleaningState.IN_PROGRESS:
            self.abort_and_pause(partition)
            self._states.resume(partition)

    def retired(self, logs: Sequence[Log]) -> None:
        """Logs are no longer compacted. Their entries stay in the checkpoint: the logs have gaps, which are not losses.

        Each directory writes its checkpoint once: a write is synced, and the default of a broker may concern thousands of logs."""
        by_dir: dict[str, list[Log]] = {}
        for log in logs:
            self.abort(log.partition)
            if log.partition in self._logs and log.partition not in self._checkpoints_of(log.log_dir):
                by_dir.setdefault(log.log_dir, []).append(log)
        for log_dir, retired in by_dir.items():
            self._checkpoint(log_dir, retired[0].host, {log.partition: log.log_start_offset for log in retired})

    def note_gaps(self, log: Log) -> None:
        """For a log whose leader's log was compacted: as for a retired log, but raises OSError if the checkpoint cannot be written."""
        checkpoints = self._checkpoints_of(log.log_dir)
        if log.log_dir in self._dirs and log.partition not in checkpoints:
            with_log = {**checkpoints, log.partition: log.log_start_offset}
            self._dirs[log.log_dir].cleaner_offsets.write(with_log)
            self._checkpoints[log.log_dir] = with_log

    def uncleanable_partitions(self, log_dir: str) -> frozenset[TopicPartition]:
        return frozenset(self._uncleanable.get(log_dir, ()))

    def uncleanable_bytes(self, log_dir: str) -> int:
        """The bytes of closed segments of uncleanable partitions that were never cleaned."""
        total = 0
        for partition in self._uncleanable.get(log_dir, ()):
            log = self._logs.get(partition)
            if log is not None:
                first_dirty = max(self._checkpoints_of(log_dir).get(partition, 0), log.log_start_offset)
                total += sum(segment.size for segment in log.segments.between(first_dirty, log.active_segment.base_offset))
        return total

    def _is_uncleanable(self, log: Log) -> bool:
        return log.partition in self._uncleanable.get(log.log_dir, ())

    def _mark_uncleanable(self, log: Log, error: Exception) -> None:
        _log.warning(
            "Unexpected exception thrown when cleaning log %s. Marking its partition (%s) as uncleanable: %s",
            log,
            log.partition,
            error,
            exc_info=error,
        )
        self._uncleanable.setdefault(log.log_dir, set()).add(log.partition)

    def _forget_removed(self) -> None:
        for partitions in self._uncleanable.values():
            partitions.intersection_update(self._logs)
        for log_dir in [path for path in self._checkpoints if path not in self._dirs]:
            del self._checkpoints[log_dir]

    # -- called by the log manager

    def truncated(self, partition: TopicPartition, offset: int) -> None:
        """A log was truncated: records from this offset on will be new and not cleaned."""
        log = self._logs.get(partition)
        if log is not None and log.config.compact and self._checkpoints_of(log.log_dir).get(partition, 0) > offset:
            self._checkpoint(log.log_dir, log.host, {partition: offset})

    def moved(self, partition: TopicPartition, from_dir: str, to_dir: str) -> None:
        """A partition was moved to another log directory: its checkpoint and its uncleanable mark move with it."""
        self.abort(partition)
        offset = self._checkpoints_of(from_dir).get(partition)
        if offset is not None:
            host = self._logs[partition].host
            self._checkpoint(from_dir, host, removed=partition)
            self._checkpoint(to_dir, host, {partition: offset})
        if partition in self._uncleanable.get(from_dir, ()):
            self._uncleanable[from_dir].discard(partition)
            self._uncleanable.setdefault(to_dir, set()).add(partition)

    def removed(self, partition: TopicPartition) -> None:
        """A log was deleted, or its directory is offline. The next write of the checkpoint leaves it out."""
        self.abort(partition)
        self._states.forget(partition)

    def shutdown(self) -> None:
        self._is_running = False
        for partition in list(self._cleanings):
            self.abort(partition)

    # -- checkpoints

    def checkpoint_of(self, partition: TopicPartition) -> int | None:
        """The first dirty offset of a log, if it has been cleaned before."""
        log = self._logs.get(partition)
        return None if log is None else self._checkpoints_of(log.log_dir).get(partition)

    def _checkpoints_of(self, log_dir: str) -> dict[TopicPartition, int]:
        if log_dir not in self._checkpoints:
            live_dir = self._dirs.get(log_dir)
            if live_dir is None:
                return {}
            instead = "Compacted logs will be cleaned from their start."
            self._checkpoints[log_dir] = live_dir.read_checkpoint(live_dir.cleaner_offsets, instead) or {}
        return self._checkpoints[log_dir]

    def _checkpoint(
        self, log_dir: str, host: LogHost, changed: Mapping[TopicPartition, int] | None = None, removed: TopicPartition | None = None
    ) -> None:
        """Writes the checkpoint of a directory, without partitions that no longer exist."""
        if log_dir not in self._dirs:
            return
        merged = {**self._checkpoints_of(log_dir), **(changed or {})}
        offsets = {partition: offset for partition, offset in merged.items() if partition in self._logs and partition != removed}
        self._checkpoints[log_dir] = offsets
        try:
            self._dirs[log_dir].cleaner_offsets.write(offsets)
        except OSError as e:
            host.disk_failed(log_dir, f"Failed to write the cleaner checkpoint in dir {log_dir}: {e}", e)
