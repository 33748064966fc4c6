"""Decides which log is compacted next, and remembers how far each has been.

The dirtiest log comes first. Whoever drives the cleaner asks for the next cleaning, advances it slice by slice, and does between two slices
what each asks for. The manager alone writes `cleaner-offset-checkpoint`, after a cleaning has come to its end. A log that cannot be cleaned
is set aside with a warning, and the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
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
    """`dirs` and `logs` belong to the log manager, which changes them as directories fail and logs come and go."""

    def __init__(self, config: CleanerConfig, dirs: Mapping[str, LogDir], logs: Mapping[TopicPartition, Log]) -> None:
        self.config = config
        self.max_dirty_ratio = 0.0  # of the dirtiest log when last looked
        self.max_compaction_delay_ms = 0  # of the log that has waited longest past its max.compaction.lag.ms
        self.last_run_ms = 0
        self.last_stats: CleanerStats | None = None
        self._dirs = dirs
        self._logs = logs
        self._states = CleaningStates()
        self._cleanings: dict[TopicPartition, Cleaning] = {}
        self._uncleanable: dict[str, set[TopicPartition]] = {}  # by log directory
        self._checkpoints: dict[str, dict[TopicPartition, int]] = {}  # by log directory, as last written
        self._throttler = Throttler(config.io_max_bytes_per_second)
        self._is_running = config.enable

    def reconfigure(self, config: CleanerConfig) -> None:
        """Settings that have changed while the broker runs. A cleaning that is under way ends with those it began with."""
        if config.io_max_bytes_per_second != self.config.io_max_bytes_per_second:
            self._throttler = Throttler(config.io_max_bytes_per_second)
        self.config = config

    # -- cleaning

    def clean_next(self, now_ms: int, monotonic_ms: int) -> Cleaning | None:
        """The next cleaning to be driven through `advance`; None if no log needs one, or as many as there may be are under way."""
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
        """One slice; None once the cleaning is over, one way or the other.

        What the step holds is to be run, on any thread, and waited for as long as it says, before the next.
        """
        partition, log = cleaning.log.partition, cleaning.log
        if self._cleanings.get(partition) is not cleaning:
            return None  # aborted between two slices
        try:
            step = cleaning.advance(now_ms, monotonic_ms)
        except (CleaningAborted, KafkaStorageError):
            self._release(partition)  # the next cleaning starts from the same checkpoint, or the directory is offline already
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
        return step._replace(wait_ms=self._throttler.observe(step.bytes, monotonic_ms))

    def run_once(self, now_ms: int, monotonic_ms: int = 0) -> bool:
        """Cleans the filthiest log on this thread, without regard for the throttle. True if there was one."""
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
        """The log with the greatest share of dirty bytes among those that are dirty enough or overdue; it is in progress from now on."""
        self._forget_removed()
        dirty = [found for log in list(self._logs.values()) if (found := self._log_to_clean(log, now_ms)) is not None]
        self.max_dirty_ratio = max((found.cleanable_ratio for found in dirty), default=0.0)
        self.max_compaction_delay_ms = max((found.compaction_delay_ms for found in dirty), default=0)
        due = [found for found in dirty if found.is_due]
        if not due:
            return None
        filthiest = max(due, key=lambda found: found.cleanable_ratio)
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
            found = log_to_clean(log, offsets, now_ms)
        except OSError as e:
            log.host.disk_failed(log.log_dir, f"Failed to look at log for {partition} in dir {log.log_dir} due to {e}", e)
            return None
        except Exception as e:
            self._mark_uncleanable(log, e)
            return None
        return found if found.total_bytes > 0 else None

    # -- partitions that must be left alone

    def state(self, partition: TopicPartition) -> CleaningState:
        return self._states[partition]

    def pause(self, partition: TopicPartition) -> bool:
        """Keeps a partition from being cleaned until `resume`. False if that happens at this moment: then it is not paused."""
        if self._states[partition] is CleaningState.IN_PROGRESS:
            return False
        self._states.pause(partition)
        return True

    def abort_and_pause(self, partition: TopicPartition) -> None:
        """The same, but a cleaning that is under way is given up."""
        if self._states[partition] is CleaningState.IN_PROGRESS:
            self._states.abort(partition)
            self._cleanings[partition].abandon()
            _log.info("The cleaning for partition %s is aborted and paused", partition)
            self._release(partition)
        else:
            self._states.pause(partition)

    def resume(self, partition: TopicPartition) -> None:
        """Undoes one pause."""
        if partition in self._logs:  # a log that was removed while it was paused has no state any more
            self._states.resume(partition)

    def abort(self, partition: TopicPartition) -> None:
        """Gives up the cleaning of a partition, if there is one. It may be cleaned again at any time."""
        if self._states[partition] is CleaningState.IN_PROGRESS:
            self.abort_and_pause(partition)
            self._states.resume(partition)

    def retired(self, log: Log) -> None:
        """A log is not to be compacted any more. The checkpoint remembers that it was: it has gaps, which are no losses."""
        self.abort(log.partition)
        if log.partition in self._logs and log.partition not in self._checkpoints_of(log.log_dir):
            self._checkpoint(log.log_dir, log.host, {log.partition: log.log_start_offset})

    def note_gaps(self, log: Log) -> None:
        """A log that was copied from one that was compacted: as `retired`, but raises OSError where that cannot be remembered."""
        known = self._checkpoints_of(log.log_dir)
        if log.log_dir in self._dirs and log.partition not in known:
            noted = {**known, log.partition: log.log_start_offset}
            self._dirs[log.log_dir].cleaner_offsets.write(noted)
            self._checkpoints[log.log_dir] = noted

    def uncleanable_partitions(self, log_dir: str) -> frozenset[TopicPartition]:
        return frozenset(self._uncleanable.get(log_dir, ()))

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

    # -- what the log manager does to logs

    def truncated(self, partition: TopicPartition, offset: int) -> None:
        """Everything from an offset on is new when it comes again."""
        log = self._logs.get(partition)
        if log is not None and log.config.compact and self._checkpoints_of(log.log_dir).get(partition, 0) > offset:
            self._checkpoint(log.log_dir, log.host, {partition: offset})

    def moved(self, partition: TopicPartition, from_dir: str, to_dir: str) -> None:
        """A partition has been copied to another log directory: what is known of it goes along."""
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
        """A log is deleted, or its directory is offline. Its checkpoint goes with the next one written."""
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
            found = self._dirs.get(log_dir)
            if found is None:
                return {}
            instead = "Compacted logs will be cleaned from their start."
            self._checkpoints[log_dir] = found.read_checkpoint(found.cleaner_offsets, instead) or {}
        return self._checkpoints[log_dir]

    def _checkpoint(
        self, log_dir: str, host: LogHost, changed: Mapping[TopicPartition, int] | None = None, removed: TopicPartition | None = None
    ) -> None:
        """Writes the checkpoint of a directory, without the partitions that are gone."""
        if log_dir not in self._dirs:
            return
        known = {**self._checkpoints_of(log_dir), **(changed or {})}
        offsets = {partition: offset for partition, offset in known.items() if partition in self._logs and partition != removed}
        self._checkpoints[log_dir] = offsets
        try:
            self._dirs[log_dir].cleaner_offsets.write(offsets)
        except OSError as e:
            host.disk_failed(log_dir, f"Failed to write the cleaner checkpoint in dir {log_dir}: {e}", e)
