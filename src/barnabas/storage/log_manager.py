"""All logs of a broker: creates, loads and deletes them, and does their periodic work.

The manager owns the log directories. It opens every log at start and gives them out by partition. Each `tick` does what is due: retention,
flushes, checkpoints and the removal of deleted files; compaction is the task of `cleaner`. A directory whose disk fails goes offline; the
broker goes on with the others.
"""

from __future__ import annotations

import logging
import random
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from barnabas.errors import CorruptCheckpoint, KafkaError, KafkaStorageError, OutOfDescriptors, StorageFault
from barnabas.storage.compaction.manager import CleanerManager
from barnabas.storage.directory import names
from barnabas.storage.directory.checkpoints import CheckpointWrite
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.disk.disk import is_shortage
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.disk.later import Later
from barnabas.storage.log.damaged_log import DamagedLog
from barnabas.storage.log.inspection import Inspection, inspect_segment, inspections_of
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.management.dir_checkpoints import DirCheckpoints
from barnabas.storage.management.dir_closer import close_dir
from barnabas.storage.management.dir_loader import LogDirLoader
from barnabas.storage.management.dir_syncs import DirSyncs
from barnabas.storage.management.flush_queue import FlushQueue
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.storage.management.log_manager_hooks import NO_HOOKS, LogManagerHooks
from barnabas.storage.management.log_registry import LogRegistry
from barnabas.storage.management.periodic_work import PeriodicWork
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log = logging.getLogger(__name__)


class AllLogDirsFailed(KafkaStorageError):
    """No log directory is left: the broker must stop."""


class LogManager:
    """The host of all logs. New logs go to other directories than `cordoned_dirs`, if there are others."""

    def __init__(
        self,
        files: AnyFiles,
        paths: Iterable[str],
        default_config: LogConfig,
        config: LogManagerConfig | None = None,
        *,
        topic_configs: Mapping[str, LogConfig] | None = None,
        random_source: random.Random | None = None,
        unique_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        hooks: LogManagerHooks = NO_HOOKS,
        cordoned_dirs: frozenset[str] = frozenset(),
    ) -> None:
        self.files = files
        self.config = config or LogManagerConfig()
        self.default_config = default_config
        self.topic_configs = dict(topic_configs or {})
        self.dirs: dict[str, LogDir] = {}
        self.offline_dirs: dict[str, str] = {}  # with the reason
        self.cordoned_dirs = cordoned_dirs
        self._hooks = hooks
        self._random = random_source or random.Random()
        self._unique_id = unique_id
        self._later = Later()
        self._shortages = 0  # how often a descriptor was missing since the last tick
        self._thread = threading.get_ident()
        self._failures: deque[tuple[str, str, Exception]] = deque()  # reported by other threads
        self._logs = LogRegistry(self.dirs)
        self.flushes = FlushQueue(self._logs, self.disk_failed, hooks)
        self.checkpoints = DirCheckpoints(self.dirs, self._logs, self.disk_failed)
        self.dir_syncs = DirSyncs(files, self.dirs, self.disk_failed)
        self._open_dirs(list(paths))
        self.cleaner = CleanerManager(self.config.cleaner, self.dirs, self._logs.current)
        self._periodic = PeriodicWork(self.config, self._logs, self.flushes, self.checkpoints, self.cleaner, self._require_a_dir)

    # -- opening

    def _open_dirs(self, paths: list[str]) -> None:
        if len(set(paths)) != len(paths):
            raise KafkaStorageError(f"Duplicate log directory found: {', '.join(paths)}")
        for path in paths:
            try:
                self.dirs[path] = LogDir(self.files, path)
            except (OSError, KafkaStorageError) as e:
                if isinstance(e, OSError) and not is_shortage(e):
                    self._mark_offline(path, f"Failed to create or validate data directory {path}: {e}")
                    continue
                for log_dir in self.dirs.values():
                    log_dir.release()
                raise
        self._require_a_dir()

    def load(self, now_ms: int, is_stray: Callable[[Log], bool] = lambda _: False) -> None:
        """Opens every log in every directory, several at once, and recovers the logs of a directory that was not shut down cleanly."""
        for _ in self.loading(now_ms, is_stray):
            pass

    def loading(self, now_ms: int, is_stray: Callable[[Log], bool]) -> Iterator[None]:
        """As `load`, in steps: a recovery may take minutes, and the broker must serve other work meanwhile."""
        threads = self.config.num_recovery_threads_per_data_dir
        loader = LogDirLoader(self._logs, threads, self._new_request, self._config_of)
        for log_dir in list(self.dirs.values()):
            try:
                yield from loader.loading(log_dir, now_ms, is_stray)
            except (OSError, CorruptCheckpoint) as e:
                if is_shortage(e):
                    raise  # a broker that serves half of its logs would be worse than none
                self.disk_failed(log_dir.path, f"Error while loading log dir {log_dir.path}: {e}", e)
            except KafkaStorageError:
                if log_dir.path in self.dirs or not self.dirs:
                    raise  # not an error of this disk: the directory would be offline by now
        self.checkpoints.mark_stale(self.dirs)

    def _new_request(self, directory: str, partition: TopicPartition, now_ms: int) -> LoadRequest:
        """The request for a new log, in which there is nothing to recover."""
        return LoadRequest(
            self.files,
            directory,
            partition,
            self._config_of(partition),
            self,
            now_ms,
            clean_shutdown=True,
            holes_are_losses=True,
            producer_config=self.config.producers,
            jitter=self._jitter,
        )

    def clear_away(self) -> None:
        """Renames the logs that no topic claims to `…-stray`, and deletes the logs that were marked for deletion before the start.

        The broker calls this when its ports are bound and the controller has sent the partitions of this broker. Until then the start may
        be a mistake (a wrong directory, a port in use) and must leave the directory as it was.
        """
        logs = self._logs
        marked, logs.marked = logs.marked, []
        for log in marked:
            self._delete_later(log)
        for directory in logs.marked_dirs:
            self._later.add(partial(self.files.remove_tree, directory), 0)
        logs.marked_dirs.clear()
        while logs.unclaimed:
            try:
                self._set_aside(logs.unclaimed.pop())
            except KafkaStorageError:
                self._require_a_dir()  # the directory of this log is offline now, and has been reported

    def _set_aside(self, log: Log) -> None:
        try:
            log.rename_dir(names.marked_dir_name(log.partition, self._unique_id(), names.STRAY_DIR_SUFFIX))
        except KafkaStorageError:
            log.close_handlers()
            raise
        _log.warning("Log of %s is renamed to %s: no topic of this cluster claims it", log.partition, log.directory)
        self._logs.stray[log.partition] = log

    def _claimed(self, partition: TopicPartition, topic_id: Uuid | None) -> Log | None:
        """The log that was unclaimed at the start, if the controller now names its topic id. A log of another topic becomes stray."""
        logs = self._logs
        for log in [log for log in logs.unclaimed if log.partition == partition]:
            logs.unclaimed.remove(log)
            if topic_id is None or log.topic_id != topic_id or partition in logs.current:
                self._set_aside(log)
                continue
            logs.current[partition] = log
            log.update_config(self._config_of(partition))
        return logs.current.get(partition)

    def _config_of(self, partition: TopicPartition) -> LogConfig:
        return self.topic_configs.get(partition.topic, self.default_config)

    def _jitter(self, jitter_ms: int) -> int:
        return self._random.randrange(jitter_ms + 1) if jitter_ms else 0

    # -- logs

    @property
    def logs(self) -> list[Log]:
        return self._logs.served()

    @property
    def stray_logs(self) -> list[Log]:
        return list(self._logs.stray.values())

    def get(self, partition: TopicPartition, is_future: bool = False) -> Log | None:
        return self._logs.of(is_future).get(partition)

    def get_or_create(
        self,
        partition: TopicPartition,
        now_ms: int,
        *,
        topic_id: Uuid | None = None,
        is_future: bool = False,
        is_new: bool = True,
        directory: str | None = None,
    ) -> Log:
        """The log of a partition, created if there is none: in the given directory, or in the one with the fewest partitions.

        A log that is not new may be on an offline disk; creating it again elsewhere would hide that.
        """
        log = self.get(partition, is_future)
        if log is None and not is_future:
            log = self._claimed(partition, topic_id)
        if log is None:
            if partition in self._logs.damaged:
                raise KafkaStorageError(self._logs.damaged[partition].reason)
            if not is_new and self.offline_dirs:
                raise KafkaStorageError(
                    f"Can not create log for {partition} because log directories {', '.join(self.offline_dirs)} are offline"
                )
            log = self._create(partition, now_ms, is_future, directory)
        if topic_id is not None:
            log.assign_topic_id(topic_id)
        return log

    def _create(self, partition: TopicPartition, now_ms: int, is_future: bool, directory: str | None) -> Log:
        name = names.partition_dir_name(partition)
        if is_future:
            current = self._logs.current.get(partition)
            if directory is None or (current is not None and current.log_dir == directory):
                raise KafkaStorageError(f"A future log for {partition} needs a directory other than that of the current log")
            name = f"{name}.{self._unique_id()}{names.FUTURE_DIR_SUFFIX}"
            if len(name.encode()) > names.FILE_NAME_MAX:
                raise KafkaStorageError(f"The topic name is too long for a future log of {partition}: no file system takes {name}")
        for path in [directory] if directory is not None else self._dirs_by_load():
            if path not in self.dirs:
                raise KafkaStorageError(f"Can not create log {name} because log directory {path} is offline")
            self.checkpoints.refresh(path)
            if self.checkpoints.is_stale(path):
                raise OutOfDescriptors(f"The log of {partition} can not be created before the checkpoints of {path} are written")
            try:
                log = load_log(self._new_request(f"{path}/{name}", partition, now_ms))
            except OSError as e:
                message = f"Error while creating log for {partition} in dir {path}: {e}"
                self.disk_failed(path, message, e)
                if is_shortage(e):
                    raise OutOfDescriptors(message) from e
                continue
            self._logs.of(is_future)[partition] = log
            self.dir_syncs.log_created(log)
            _log.info("Created log for partition %s in %s", partition, log.directory)
            return log
        raise KafkaStorageError(f"No log directories available to create the log of {partition}")

    def role_given(self, log: Log) -> None:
        """The partition of the log has become leader or follower: the log takes the high watermark that was checkpointed before this
        start, if there is one, and from now on its own high watermark is checkpointed."""
        self.checkpoints.has_roles = True
        if log.has_role:
            return
        log.has_role = True
        log_dir = self.dirs.get(log.log_dir)
        checkpointed = None if log_dir is None else log_dir.loaded_high_watermarks.pop(log.partition, None)
        if checkpointed is not None:
            log.update_high_watermark(checkpointed)

    def _dirs_by_load(self) -> list[str]:
        """Live directories, fewest partitions first. Cordoned ones are left out, unless all are: the controller has decided to place the
        replica here before it knew."""
        if len(self.dirs) == 1:  # as in nearly every broker: there is nothing to count, however many logs there are
            return list(self.dirs)
        open_dirs = [path for path in self.dirs if path not in self.cordoned_dirs] or list(self.dirs)
        counts = dict.fromkeys(open_dirs, 0)
        for log in self.logs:
            if log.log_dir in counts:
                counts[log.log_dir] += 1
        return sorted(counts, key=lambda path: counts[path])

    def replace_current_with_future(self, partition: TopicPartition) -> None:
        """The future log has caught up: it takes the name of the current log, which is deleted."""
        logs = self._logs
        future = logs.future.get(partition)
        if future is None:
            raise KafkaStorageError(f"The future replica for {partition} is offline")
        current = logs.current.get(partition)
        future.rename_dir(names.partition_dir_name(partition))
        future.update_high_watermark(current.high_watermark if current else future.log_end_offset)
        del logs.future[partition]
        logs.current[partition] = future
        self.checkpoints.write_dir(future.log_dir)
        if current is not None:
            future.gaps_are_losses = future.gaps_are_losses and current.gaps_are_losses
            self.cleaner.moved(partition, current.log_dir, future.log_dir)
            self._retire(current)

    def update_topic_config(self, topic: str, config: LogConfig) -> None:
        self.topic_configs[topic] = config
        self._update_configs([(log, config) for log in self.logs if log.partition.topic == topic])

    def update_default_config(self, config: LogConfig, topic_configs: Mapping[str, LogConfig]) -> None:
        """The broker's defaults have changed: logs take the given config of their topic, or the new default."""
        self.default_config, self.topic_configs = config, dict(topic_configs)
        self._update_configs([(log, self._config_of(log.partition)) for log in self.logs])

    def _update_configs(self, changes: Sequence[tuple[Log, LogConfig]]) -> None:
        self.cleaner.retired([log for log, config in changes if log.config.compact and not config.compact])
        for log, config in changes:
            log.update_config(config)

    def truncate_to(self, partition: TopicPartition, offset: int, now_ms: int, is_future: bool = False) -> bool:
        """A follower's truncation. A cleaning of segments that are cut is aborted."""
        log = self.get(partition, is_future)
        if log is None:
            return False
        clean_part_touched = not is_future and offset < log.active_segment.base_offset
        if clean_part_touched:
            self.cleaner.abort(partition)
        truncated = log.truncate_to(offset, now_ms)
        if clean_part_touched:
            self.cleaner.truncated(partition, offset)
        if truncated:  # after a change of leaders a follower truncates every log, and hardly any log loses records
            self.checkpoints.write_dir(log.log_dir)
        return truncated

    def truncate_fully_and_start_at(
        self, partition: TopicPartition, offset: int, now_ms: int, is_future: bool = False, log_start_offset: int | None = None
    ) -> None:
        log = self.get(partition, is_future)
        if log is None:
            return
        if not is_future:
            self.cleaner.abort(partition)
        log.truncate_fully_and_start_at(offset, now_ms, log_start_offset)
        if not is_future:
            self.cleaner.truncated(partition, offset)
        self.checkpoints.write_dir(log.log_dir)

    def delete(self, partition: TopicPartition, is_future: bool = False) -> Log | None:
        """Renames the directory at once and removes it after file.delete.delay.ms. After a crash in between the next start removes it."""
        log = self._logs.of(is_future).pop(partition, None)
        if log is None:
            if not is_future and partition in self._logs.damaged:
                self._delete_damaged(self._logs.damaged.pop(partition))
                return None
            if self.offline_dirs:
                raise KafkaStorageError(
                    f"Failed to delete log for {partition}: it may be in one of the offline directories {', '.join(self.offline_dirs)}"
                )
            return None
        if not is_future:
            self.cleaner.removed(partition)
        self._retire(log)
        return log

    def _delete_damaged(self, damaged: DamagedLog) -> None:
        marked = f"{damaged.log_dir}/{names.marked_dir_name(damaged.partition, self._unique_id(), names.DELETE_DIR_SUFFIX)}"
        self.files.rename(damaged.directory, marked)
        self._later.add(partial(self.files.remove_tree, marked), self.default_config.file_delete_delay_ms)
        self.dirs[damaged.log_dir].damaged.pop(damaged.partition, None)
        self.dir_syncs.log_renamed(damaged.log_dir)
        self.checkpoints.log_removed(damaged.log_dir)

    def _retire(self, log: Log) -> None:
        """Deletes a log that belongs to no partition any more."""
        try:
            log.rename_dir(names.marked_dir_name(log.partition, self._unique_id(), names.DELETE_DIR_SUFFIX), sync=False)
        except KafkaStorageError:
            log.close_handlers()  # the directory is offline; the registry no longer had this log, so it was not closed
            raise
        self._delete_later(log)
        self.dir_syncs.log_renamed(log.log_dir)
        if log.log_dir in self.dirs:
            self.dirs[log.log_dir].loaded_high_watermarks.pop(log.partition, None)
        self.checkpoints.log_removed(log.log_dir)
        _log.info("Log for partition %s is renamed to %s and is scheduled for deletion", log.partition, log.directory)

    def _delete_later(self, log: Log) -> None:
        self.flushes.discard(log)
        self._later.add(log.delete, log.config.file_delete_delay_ms)

    # -- the host of the logs

    def delete_later(self, delete: Callable[[], None], delay_ms: int) -> None:
        self._later.add(delete, delay_ms)

    def flush_later(self, log: Log, offset: int) -> None:
        self.flushes.request(log, offset)

    def note_gaps(self, log: Log) -> None:
        self.cleaner.note_gaps(log)

    def disk_failed(self, directory: str, message: str, error: Exception) -> None:
        """Takes a log directory offline; the other directories are not touched. A call on another thread is done at the next tick.

        A process that has no descriptor left has not lost its disk: that is logged, and the caller tries again.
        """
        if is_shortage(error):
            self._note_shortage(message)
            return
        if threading.get_ident() != self._thread:
            self._failures.append((directory, message, error))
            return
        if directory not in self.dirs:
            return
        self._mark_offline(directory, message)
        self.dirs.pop(directory).release()
        partitions = [partition for partition, log in self._logs.current.items() if log.log_dir == directory]
        for log in self._logs.drop_dir(directory):
            self.flushes.discard(log)
            log.close_handlers()
        for partition in partitions:
            self.cleaner.removed(partition)
        self._hooks.dir_failed(directory)
        self._require_a_dir()

    def _note_shortage(self, message: str) -> None:
        """Logs one line between two ticks, because everything that needs a descriptor fails then."""
        self._shortages += 1
        if self._shortages == 1:
            _log.warning("%s. It will be tried again; raise the limit of open files (ulimit -n) or lower max.connections", message)

    def _mark_offline(self, path: str, message: str) -> None:
        _log.error("%s. Stopping serving logs in dir %s; fix the disk and restart the broker", message, path)
        self.offline_dirs[path] = message

    def _require_a_dir(self) -> None:
        if not self.dirs:
            raise AllLogDirsFailed(f"All log dirs have failed: {'; '.join(self.offline_dirs.values())}")

    # -- periodic work

    def start_schedule(self, monotonic_ms: int) -> None:
        """Starts the intervals of the periodic work."""
        self._periodic.start(monotonic_ms)

    def tick(self, now_ms: int, monotonic_ms: int) -> None:
        """Does the periodic work that is due. Long work is done elsewhere: flushes, removing deleted files, and compaction."""
        for write in self.due(now_ms, monotonic_ms):
            if write is not None:
                self.checkpoints.write(write)

    def due(self, now_ms: int, monotonic_ms: int) -> Iterator[CheckpointWrite | None]:
        """As `tick`, in slices between which the event loop may do other work. A yielded checkpoint is to be written, on any thread, before
        the next slice; an OSError is reported to `checkpoints.failed`."""
        self._shortages = 0
        self.flushes.request_deferred()
        while self._failures:
            self.disk_failed(*self._failures.popleft())
        yield from self.checkpoints.take_stale()
        yield from self._periodic.due(now_ms, monotonic_ms)

    def delete_old_segments(self, now_ms: int) -> int:
        """Applies retention now; returns the number of deleted segments."""
        return sum(self._periodic.retention(now_ms))

    def inspections(self) -> Iterator[Inspection]:
        """Inspections of all closed segments, some segments each: to be run on a thread and then passed to `inspected`."""
        for log in self._logs.live():
            yield from inspections_of(log)

    def inspected(self, inspection: Inspection) -> None:
        """Checks the doubtful segments again, since the log may have changed meanwhile, and logs what is missing."""
        log = inspection.log
        if not self._logs.holds(log):
            return
        for base_offset in inspection.doubtful:
            try:
                inspect_segment(log, base_offset)
            except (OSError, KafkaError, StorageFault) as error:
                _log.error("The segment %d of %s cannot be read: %s", base_offset, log.directory, error)

    def take_deletions(self, monotonic_ms: int) -> list[Callable[[], None]]:
        """The removals of files whose delay is over: to be called on a thread, because unlinking a large file takes long."""
        return self._later.take_due(monotonic_ms)

    def remove_deleted(self, monotonic_ms: int) -> None:
        """Removes files on this thread. The next start removes what could not be removed."""
        for delete in self.take_deletions(monotonic_ms):
            try:
                delete()
            except (OSError, KafkaStorageError) as e:
                _log.error("Could not delete files: %s", e)
                self._require_a_dir()

    # -- shutdown

    def shutdown(self, monotonic_ms: int, broker_epoch: int = -1) -> None:
        """Flushes and closes every log and writes the clean shutdown file, so that the next start recovers nothing."""
        self.cleaner.shutdown()
        for log_dir in list(self.dirs.values()):
            try:
                self.dir_syncs.run_all()
                close_dir(
                    log_dir,
                    self._logs,
                    has_roles=self.checkpoints.has_roles,
                    threads=self.config.num_recovery_threads_per_data_dir,
                    monotonic_ms=monotonic_ms,
                    broker_epoch=broker_epoch,
                )
            except (OSError, KafkaStorageError) as e:
                _log.error("Could not close %s cleanly; its logs will be recovered at the next start: %s", log_dir.path, e)
            finally:
                log_dir.release()
