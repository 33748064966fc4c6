"""Moves replicas between log directories while they are in use (KIP-113).

A *future* log in the new directory copies the current one, slice by slice. Once it is complete and as durable, it replaces the current log
in one step. Housekeeping calls `advance` between other work. The current log serves all requests until it is replaced. A broker that stops
during a move continues it after the start.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.quotas.replication_quota import ReplicationQuota
from barnabas.errors import (
    InvalidReplicaAssignment,
    InvalidTopic,
    KafkaError,
    KafkaStorageError,
    LogDirNotFound,
    OutOfDescriptors,
    StorageFault,
    UnexpectedAppendOffset,
)
from barnabas.storage.compaction.states import CleaningState
from barnabas.storage.directory import names
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_manager import LogManager
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition

_log = logging.getLogger(__name__)

SLICE_BYTES: Final = 256 * 1024
PREFERRED_MAX: Final = 10_000  # preferred directories of replicas that do not exist yet; the oldest are dropped
_UNIQUE_ID_SIZE: Final = 32


class LogDirMover:
    def __init__(self, log_manager: LogManager, online: Mapping[TopicPartition, Partition], quota: ReplicationQuota) -> None:
        self._log_manager = log_manager
        self._online = online
        self._quota = quota  # of all moves: replica.alter.log.dirs.io.max.bytes.per.second
        self._moving: dict[TopicPartition, None] = {}
        self.copies = 0  # slices that were copied
        self.failed: set[TopicPartition] = set()  # moves that were given up, until the replica is moved again
        self._preferred: dict[TopicPartition, str] = {}

    @property
    def moving(self) -> list[TopicPartition]:
        return list(self._moving)

    def lag_max(self) -> int:
        """How many records the copy that is furthest behind lacks."""
        pairs = [logs for partition in self._moving if (logs := self._logs(partition)) is not None]
        return max((current.log_end_offset - future.log_end_offset for current, future in pairs), default=0)

    def preferred_dir(self, partition: TopicPartition) -> str | None:
        """The directory that AlterReplicaLogDirs chose for a new replica, returned once; None if there is none or its disk failed."""
        path = self._preferred.pop(partition, None)
        return path if path in self._log_manager.dirs else None

    def require_possible(self, partition: TopicPartition, path: str) -> None:
        future_name = f"{names.partition_dir_name(partition)}.{'0' * _UNIQUE_ID_SIZE}{names.FUTURE_DIR_SUFFIX}"
        if len(future_name) > names.FILE_NAME_MAX:
            raise InvalidTopic("The topic name is too long.")
        if path not in self._log_manager.dirs:
            if path in self._log_manager.offline_dirs:
                raise KafkaStorageError(f"Log directory {path} is offline")
            raise LogDirNotFound(f"Log dir '{path}' is not found in the config.")
        if path in self._log_manager.cordoned_dirs:
            current = self._log_manager.get(partition)
            if current is None or current.log_dir != path:
                raise InvalidReplicaAssignment(f"Log directory {path} is cordoned.")

    def prefer(self, partition: TopicPartition, path: str) -> None:
        """Remembers the directory for a replica that this broker does not have yet."""
        if self._log_manager.get(partition) is None:
            self._preferred.pop(partition, None)
            self._preferred[partition] = path
            if len(self._preferred) > PREFERRED_MAX:
                del self._preferred[next(iter(self._preferred))]

    def begin(self, partition: TopicPartition, path: str, now_ms: int) -> None:
        current, future = self._log_manager.get(partition), self._log_manager.get(partition, is_future=True)
        if current is None:
            raise KafkaStorageError(f"The log of {partition} is not here")
        if future is not None and future.log_dir != path:
            self.stop(partition)
            future = None
        if current.log_dir == path:
            _log.info("%s is in %s already", partition, path)
            return
        if future is None:
            # Not new: an offline directory may hold a future log of this partition.
            self._log_manager.get_or_create(partition, now_ms, topic_id=current.topic_id, is_future=True, is_new=False, directory=path)
        self.resume(partition)

    def resume(self, partition: TopicPartition) -> None:
        """Continues a move whose future log exists, possibly since before a restart."""
        future = self._log_manager.get(partition, is_future=True)
        if partition not in self._moving and future is not None:
            self.failed.discard(partition)
            self._log_manager.role_given(future)
            self._log_manager.cleaner.abort_and_pause(partition)
            self._moving[partition] = None

    def stop(self, partition: TopicPartition) -> None:
        """Cancels a move, if there is one, and deletes the future log."""
        self._forget(partition)
        self.failed.discard(partition)
        self._preferred.pop(partition, None)
        if self._log_manager.get(partition, is_future=True) is not None:
            self._log_manager.delete(partition, is_future=True)

    def dir_failed(self, path: str) -> None:
        """Drops the moves that have lost their future or current log with the directory."""
        for partition in self.moving:
            if self._logs(partition) is None:
                self._forget(partition)

    def advance(self, now_ms: int, monotonic_ms: int) -> bool:
        """Copies one slice of the next partition that has something to copy; False if no partition has, or the throttle is exceeded."""
        if not self._moving or self._quota.is_exceeded(monotonic_ms):
            return False
        for partition in self.moving:
            del self._moving[partition]
            self._moving[partition] = None  # to the end of the order
            try:
                if self._advance(partition, now_ms, monotonic_ms):
                    return True
            except OutOfDescriptors as error:
                _log.warning("Moving %s waits: %s", partition, error)
            except (KafkaError, StorageFault) as error:
                # The log has reported a failed disk already; other errors must not be retried for ever.
                _log.error("Gave up moving %s: %s", partition, error)
                self.failed.add(partition)
                self._forget(partition)
        return False

    def _advance(self, partition: TopicPartition, now_ms: int, monotonic_ms: int) -> bool:
        logs = self._logs(partition)
        if logs is None:
            self._forget(partition)
            return False
        current, future = logs
        self._align(current, future, now_ms)
        if future.log_end_offset < current.log_end_offset:
            return self._copy(current, future, now_ms, monotonic_ms)
        if future.recovery_point < current.recovery_point:
            # What was durable stays durable: the copy is synced before the original is deleted.
            self._log_manager.flush_later(future, future.log_end_offset)
            return False
        self._finish(partition, current, future)
        return True

    def _align(self, current: Log, future: Log, now_ms: int) -> None:
        """Makes the copy a prefix of the original again: the original may have been truncated, or its first segments deleted."""
        if future.log_end_offset < current.log_start_offset:
            self._log_manager.truncate_fully_and_start_at(future.partition, current.log_start_offset, now_ms, is_future=True)
        end = current.log_end_offset
        if future.latest_epoch >= 0:
            _, epoch_end = current.epochs.end_offset_for(future.latest_epoch, end)
            end = min(end, epoch_end) if epoch_end >= 0 else min(end, current.log_start_offset)
        if future.log_end_offset > end:
            self._log_manager.truncate_to(future.partition, max(end, future.log_start_offset), now_ms, is_future=True)

    def _copy(self, current: Log, future: Log, now_ms: int, monotonic_ms: int) -> bool:
        fetched = current.read(future.log_end_offset, SLICE_BYTES, FetchIsolation.LOG_END, min_one_message=True)
        if fetched.records is None:
            return False
        with current.on_disk("while copying to another log directory"):
            data = fetched.records.read()
        before = future.log_end_offset
        try:
            future.append_as_follower(data, now_ms)
        except UnexpectedAppendOffset as error:
            # The original starts in the middle of a batch, whose first records were deleted: the copy starts with the whole batch.
            if not (before == future.log_start_offset and error.first_offset < before <= error.last_offset):
                raise
            self._log_manager.truncate_fully_and_start_at(future.partition, error.first_offset, now_ms, is_future=True)
            future.append_as_follower(data, now_ms)
        self.copies += 1
        self._quota.record(len(data), monotonic_ms)
        self._follow_offsets(current, future)
        return future.log_end_offset > before

    def _follow_offsets(self, current: Log, future: Log) -> None:
        future.update_high_watermark(min(current.high_watermark, future.log_end_offset))
        if future.log_start_offset < current.log_start_offset <= future.high_watermark:
            future.increment_log_start_offset(current.log_start_offset, "leader offset increment")

    def _finish(self, partition: TopicPartition, current: Log, future: Log) -> None:
        self._follow_offsets(current, future)
        for entry in current.epochs.entries:
            if entry.epoch > future.latest_epoch:  # an epoch that has begun and has no records yet
                future.epochs.assign(entry.epoch, entry.start_offset)
        self._log_manager.replace_current_with_future(partition)
        self._forget(partition)
        hosted = self._online.get(partition)
        if hosted is not None:
            hosted.replace_log(future)
        _log.info("Moved %s to %s", partition, future.log_dir)

    def _logs(self, partition: TopicPartition) -> tuple[Log, Log] | None:
        current, future = self._log_manager.get(partition), self._log_manager.get(partition, is_future=True)
        return None if current is None or future is None else (current, future)

    def _forget(self, partition: TopicPartition) -> None:
        if partition in self._moving:
            del self._moving[partition]
            cleaner = self._log_manager.cleaner
            if cleaner.state(partition) is CleaningState.PAUSED:  # the cleaner drops its state with a log whose disk failed
                cleaner.resume(partition)
