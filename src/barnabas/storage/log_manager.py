"""All logs of a broker: where they are, how they come up after a crash, and what is done to them regularly.

The manager owns the log directories. It opens every log at start, hands them out by partition, and on each `tick` does what has come due:
retention, compaction, flushes, checkpoints, removing deleted files. A directory whose disk fails goes offline and the others go on.
"""

from __future__ import annotations

import logging
import random
import threading
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from barnabas.errors import CorruptCheckpoint, KafkaError, KafkaStorageError, OutOfDescriptors, StorageFault
from barnabas.storage.compaction.manager import CleanerConfig, CleanerManager
from barnabas.storage.directory import names
from barnabas.storage.directory.checkpoints import CheckpointWrite
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.disk.disk import is_shortage
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.disk.later import Later
from barnabas.storage.log.damaged_log import DamagedLog, load_or_describe
from barnabas.storage.log.durability import NEVER_MS, FlushPlan
from barnabas.storage.log.inspection import Inspection, inspections_of
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LONG_MAX, LogConfig
from barnabas.storage.producers.state import ProducerStateConfig
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log = logging.getLogger(__name__)

LOOK_UP_S: Final = 0.05  # how long one waits for a log to be recovered before others have their turn
LOGS_AT_ONCE: Final = 100  # of which retention looks at the segments before others have their turn

TakeCheckpoint = Callable[[LogDir, list[Log]], CheckpointWrite]

_CHECKPOINTS: Final[dict[str, TakeCheckpoint]] = {
    "recovery-points": LogDir.take_recovery_points,
    "log-start-offsets": LogDir.take_log_start_offsets,
    "high-watermarks": LogDir.take_high_watermarks,
}


@dataclass(frozen=True)
class LogManagerConfig:
    """The broker settings of log management, by Kafka's defaults."""

    num_recovery_threads_per_data_dir: int = 2
    retention_check_interval_ms: int = 300_000
    flush_scheduler_interval_ms: int = LONG_MAX
    recovery_point_checkpoint_interval_ms: int = 60_000
    log_start_offset_checkpoint_interval_ms: int = 60_000
    high_watermark_checkpoint_interval_ms: int = 5_000
    producer_id_expiration_check_interval_ms: int = 600_000
    initial_task_delay_ms: int = 30_000
    cleaner: CleanerConfig = field(default_factory=CleanerConfig)
    producers: ProducerStateConfig = field(default_factory=ProducerStateConfig)


class DirSync:
    """Makes the names in some log directories durable."""

    def __init__(self, files: AnyFiles, paths: list[str], logs: list[Log]) -> None:
        self.files = files
        self.paths = paths
        self.logs = logs  # that were made in them
        self.failures: list[tuple[str, OSError]] = []

    def run(self) -> None:
        for path in self.paths:
            try:
                self.files.sync_dir(path)
            except OSError as error:
                self.failures.append((path, error))


class AllLogDirsFailed(KafkaStorageError):
    """No log directory is left: the broker has to stop."""


class LogManager:
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
    ) -> None:
        self.files = files
        self.config = config or LogManagerConfig()
        self.default_config = default_config
        self.topic_configs = dict(topic_configs or {})
        self.dirs: dict[str, LogDir] = {}
        self.offline_dirs: dict[str, str] = {}  # with what went wrong
        self.on_dir_failure: Callable[[str], None] = lambda _: None
        self.on_flush_wanted: Callable[[], None] = lambda: None
        self.on_flushed: Callable[[Log], None] = lambda _: None
        self._random = random_source or random.Random()
        self._unique_id = unique_id
        self._logs: dict[TopicPartition, Log] = {}
        self._future_logs: dict[TopicPartition, Log] = {}
        self._stray_logs: dict[TopicPartition, Log] = {}
        self._damaged: dict[TopicPartition, DamagedLog] = {}  # that could not be loaded
        self._marked_dirs: list[str] = []  # marked for deletion, and not to be loaded either
        # Found at the start, and neither renamed nor deleted before `clear_away`.
        self._unclaimed_logs: list[Log] = []
        self._marked_logs: list[Log] = []
        self._later = Later()
        self._flushes: dict[Log, int] = {}
        self._deferred_flushes: dict[Log, int] = {}  # for which there was no descriptor, until the next tick
        self._due: dict[str, int] = {}
        self._has_roles = False  # whether any partition has become leader or follower: with the first LeaderAndIsr
        # Directories whose checkpoints may still name logs that are gone. They are written anew before a log is made there: a new log must
        # not be taken to be flushed as far as an old one of its name was.
        self._stale_checkpoints: set[str] = set()
        # Directories in which logs were made or renamed since they were last synced. Whoever orders many of that syncs once at the end; a
        # flush of a new log syncs its name itself.
        self._shortages = 0  # so often since the last tick a descriptor was missing
        self._unwritten = 0  # so many checkpoints could not be written for want of a descriptor
        self._retired = 0  # so many logs have been deleted
        self._unsynced_dirs: set[str] = set()
        self._unsynced_logs: list[Log] = []
        self._thread = threading.get_ident()
        self._failures: deque[tuple[str, str, Exception]] = deque()  # reported by other threads
        self._open_dirs(list(paths))
        self.cleaner = CleanerManager(self.config.cleaner, self.dirs, self._logs)

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
        """Opens every log in every directory, several at once, and recovers those a clean shutdown does not vouch for."""
        for _ in self.loading(now_ms, is_stray):
            pass

    def loading(self, now_ms: int, is_stray: Callable[[Log], bool]) -> Iterator[None]:
        """The same, step by step: a recovery may take minutes, in which a broker must not be deaf to everything else."""
        for log_dir in list(self.dirs.values()):
            try:
                yield from self._load_dir(log_dir, now_ms, is_stray)
            except (OSError, CorruptCheckpoint) as e:
                if is_shortage(e):
                    raise  # a start with half of the logs would be worse than none
                self.disk_failed(log_dir.path, f"Error while loading log dir {log_dir.path}: {e}", e)
            except KafkaStorageError:
                if log_dir.path in self.dirs or not self.dirs:
                    raise  # not an error of this disk, which would be offline by now
        self._stale_checkpoints.update(self.dirs)

    def _load_dir(self, log_dir: LogDir, now_ms: int, is_stray: Callable[[Log], bool]) -> Iterator[None]:
        log_dir.is_recovered = clean = log_dir.clean_shutdown.exists()
        # Gone before the first log is opened: a crash while loading must be followed by a recovery.
        log_dir.clean_shutdown.delete()
        self.files.sync_dir(log_dir.path)
        instead = "High watermarks start at the log start."
        log_dir.loaded_high_watermarks = log_dir.read_checkpoint(log_dir.high_watermarks, instead) or {}
        requests, tells_flushed = self._load_requests(log_dir, clean, now_ms)
        how = "after a clean shutdown" if clean else "recovering them, since no clean shutdown file was found"
        _log.info("Loading %d logs from %s %s", len(requests), log_dir.path, how)
        done = 0
        damaged: list[DamagedLog] = []
        with closing(self._load_all(requests, clean)) as loaded:
            for log in loaded:
                if log is None:
                    yield
                    continue
                done += 1
                if isinstance(log, DamagedLog):
                    damaged.append(log)
                    self._note_damaged(log_dir, log)
                    yield
                    continue
                self._admit(log, is_stray)
                if not clean or done == len(requests):
                    _log.info(
                        "Completed load of %s with %d segments (%d/%d completed in %s)",
                        log,
                        len(log.segments),
                        done,
                        len(requests),
                        log_dir.path,
                    )
                yield
        if not tells_flushed:
            self._begin_recovery_points(log_dir)
        log_dir.make_checkpoints()
        log_dir.is_recovered = clean or not damaged  # what was not loaded was not recovered either

    def _note_damaged(self, log_dir: LogDir, damaged: DamagedLog) -> None:
        _log.error("Not serving the log in %s, all others of %s are served: %s", damaged.directory, log_dir.path, damaged.reason)
        if damaged.is_marked_for_deletion:
            self._marked_dirs.append(damaged.directory)
        elif damaged.was_served:
            self._damaged[damaged.partition] = log_dir.damaged[damaged.partition] = damaged

    def _begin_recovery_points(self, log_dir: LogDir) -> None:
        """From now on the checkpoint tells flushed from unflushed, and a gap after a crash can be taken for what it is."""
        logs = self._logs_in(log_dir.path)
        for log in logs:
            log.flush()
        log_dir.checkpoint_recovery_points(logs)

    def _load_requests(self, log_dir: LogDir, clean: bool, now_ms: int) -> tuple[list[LoadRequest], bool]:
        """What to load, and whether there is a checkpoint that tells what was flushed."""
        recovery_points = log_dir.read_checkpoint(log_dir.recovery_points, "All logs will be recovered from their beginning.")
        tells_flushed = recovery_points is not None and log_dir.recovery_points.is_written()
        start_offsets = log_dir.read_checkpoint(log_dir.log_start_offsets, "Log start offsets fall back to the first segments.")
        cleaned = log_dir.read_checkpoint(log_dir.cleaner_offsets, "Compacted logs will be cleaned from their start.")
        requests: list[LoadRequest] = []
        for name in log_dir.other_dirs():
            _log.warning(
                "%s/%s is not the directory of a partition and is ignored; move it away from the log directory", log_dir.path, name
            )
        for name in log_dir.partition_dirs():
            partition = names.parse_partition_dir(name)
            assert partition is not None
            request = self._request(f"{log_dir.path}/{name}", partition, now_ms)
            request.clean_shutdown = clean
            request.recovery_point = (recovery_points or {}).get(partition, 0)
            request.log_start_offset = (start_offsets or {}).get(partition, 0)
            # Where nothing tells flushed from unflushed, a gap that compaction once made must not be taken for a loss; nor where the log
            # is known to have been compacted, whatever its cleanup policy is now.
            request.holes_are_losses = tells_flushed and cleaned is not None and partition not in cleaned
            requests.append(request)
        return requests, tells_flushed

    def _request(self, directory: str, partition: TopicPartition, now_ms: int) -> LoadRequest:
        """For a new log; there is nothing in it to recover."""
        return LoadRequest(
            self.files,
            directory,
            partition,
            self.topic_configs.get(partition.topic, self.default_config),
            self,
            now_ms,
            clean_shutdown=True,
            holes_are_losses=True,
            producer_config=self.config.producers,
            jitter=self._jitter,
        )

    def _load_all(self, requests: list[LoadRequest], clean: bool) -> Generator[Log | DamagedLog | None, None, None]:
        """None again and again while the next one takes its time."""
        threads = self.config.num_recovery_threads_per_data_dir
        if clean or threads <= 1:
            yield from map(load_or_describe, requests)  # names and sizes only: nothing to overlap
            return
        with ThreadPoolExecutor(threads, "log-recovery") as pool:
            loads = deque(pool.submit(load_or_describe, request) for request in requests)
            try:
                while loads:
                    while not wait([loads[0]], timeout=LOOK_UP_S).done:
                        yield None
                    yield loads.popleft().result()
            finally:  # one of them failed, and the directory with it: nobody takes the others
                for load in loads:
                    if not load.cancel() and load.exception() is None and isinstance(log := load.result(), Log):
                        log.close_handlers()

    def _admit(self, log: Log, is_stray: Callable[[Log], bool]) -> None:
        name = log.directory.rpartition("/")[2]
        if name.endswith(names.DELETE_DIR_SUFFIX):
            self._marked_logs.append(log)
            return
        if name.endswith(names.STRAY_DIR_SUFFIX):
            _log.warning("Log of %s in %s is stray: it is not served", log.partition, log.directory)
            self._stray_logs[log.partition] = log
            return
        if is_stray(log):
            _log.warning("Log of %s in %s is not served: no topic of this cluster claims it", log.partition, log.directory)
            self._unclaimed_logs.append(log)
            return
        logs = self._future_logs if log.is_future else self._logs
        other = logs.get(log.partition)
        if other is not None:
            raise KafkaStorageError(
                f"Duplicate log directories for {log.partition} are found in both {log.directory} and {other.directory}. "
                "It is likely because log directory failure happened while broker was replacing current replica with future replica. "
                "Recover broker from this failure by manually deleting one of the two directories for this partition. It is recommended "
                "to delete the partition in the log directory that is known to have failed recently."
            )
        logs[log.partition] = log
        config = self.topic_configs.get(log.partition.topic, self.default_config)
        if config is not log.config:  # it was set while the log was being loaded
            log.update_config(config)

    def clear_away(self) -> None:
        """Renames the logs that no topic claims to `…-stray`, and has those removed that were marked for deletion before the start.

        To be called once the ports are bound and the controller has told what this broker holds. Until then a start may be a mistake (a
        wrong directory, a port that is taken) and must leave the directory as it was.
        """
        marked, self._marked_logs = self._marked_logs, []
        for log in marked:
            self._delete_later(log)
        for directory in self._marked_dirs:
            self._later.add(partial(self.files.remove_tree, directory), 0)
        self._marked_dirs.clear()
        while self._unclaimed_logs:
            try:
                self._set_aside(self._unclaimed_logs.pop())
            except KafkaStorageError:
                self._require_a_dir()  # its directory is offline now, and has been reported

    def _set_aside(self, log: Log) -> None:
        try:
            log.rename_dir(names.marked_dir_name(log.partition, self._unique_id(), names.STRAY_DIR_SUFFIX))
        except KafkaStorageError:
            log.close_handlers()
            raise
        _log.warning("Log of %s is renamed to %s: no topic of this cluster claims it", log.partition, log.directory)
        self._stray_logs[log.partition] = log

    def _claimed(self, partition: TopicPartition, topic_id: Uuid | None) -> Log | None:
        """The log that was unclaimed at the start, where the controller now names its topic id. One of another topic makes room."""
        for log in [log for log in self._unclaimed_logs if log.partition == partition]:
            self._unclaimed_logs.remove(log)
            if topic_id is None or log.topic_id != topic_id or partition in self._logs:
                self._set_aside(log)
                continue
            self._logs[partition] = log
            log.update_config(self.topic_configs.get(partition.topic, self.default_config))
        return self._logs.get(partition)

    def _jitter(self, jitter_ms: int) -> int:
        return self._random.randrange(jitter_ms + 1) if jitter_ms else 0

    # -- logs

    @property
    def logs(self) -> list[Log]:
        return [*self._logs.values(), *self._future_logs.values()]

    @property
    def stray_logs(self) -> list[Log]:
        return list(self._stray_logs.values())

    def get(self, partition: TopicPartition, is_future: bool = False) -> Log | None:
        return (self._future_logs if is_future else self._logs).get(partition)

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
        """The log of a partition, made where there is none: in the given directory, or in the one with the fewest partitions.

        A log that is not new may be on an offline disk; making it again elsewhere would hide that.
        """
        log = self.get(partition, is_future)
        if log is None and not is_future:
            log = self._claimed(partition, topic_id)
        if log is None:
            if partition in self._damaged:
                raise KafkaStorageError(self._damaged[partition].reason)
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
            current = self._logs.get(partition)
            if directory is None or (current is not None and current.log_dir == directory):
                raise KafkaStorageError(f"A future log for {partition} needs a directory other than that of the current log")
            name = f"{name}.{self._unique_id()}{names.FUTURE_DIR_SUFFIX}"
            if len(name.encode()) > names.FILE_NAME_MAX:
                raise KafkaStorageError(f"The topic name is too long for a future log of {partition}: no file system takes {name}")
        for path in [directory] if directory is not None else self._dirs_by_load():
            if path not in self.dirs:
                raise KafkaStorageError(f"Can not create log {name} because log directory {path} is offline")
            self._refresh_checkpoints(path)
            if path in self._stale_checkpoints:
                raise OutOfDescriptors(f"The log of {partition} can not be created before the checkpoints of {path} are written")
            try:
                log = load_log(self._request(f"{path}/{name}", partition, now_ms))
            except OSError as e:
                message = f"Error while creating log for {partition} in dir {path}: {e}"
                self.disk_failed(path, message, e)
                if is_shortage(e):
                    raise OutOfDescriptors(message) from e
                continue
            (self._future_logs if is_future else self._logs)[partition] = log
            self._unsynced_dirs.add(path)
            self._unsynced_logs.append(log)
            _log.info("Created log for partition %s in %s", partition, log.directory)
            return log
        raise KafkaStorageError(f"No log directories available to create the log of {partition}")

    def role_given(self, log: Log) -> None:
        """The partition of the log has become leader or follower. Its high watermark is the one that was checkpointed before this start,
        if there was one; from now on it is checkpointed."""
        self._has_roles = True
        if log.has_role:
            return
        log.has_role = True
        log_dir = self.dirs.get(log.log_dir)
        checkpointed = None if log_dir is None else log_dir.loaded_high_watermarks.pop(log.partition, None)
        if checkpointed is not None:
            log.update_high_watermark(checkpointed)

    def take_dir_sync(self) -> DirSync | None:
        """What makes the names of logs durable that were made or deleted since the last one: to be run on any thread, and told to
        `dirs_synced`, before whoever ordered them is told that they are. None if there are none."""
        if not self._unsynced_dirs:
            return None
        sync = DirSync(self.files, sorted(self._unsynced_dirs.intersection(self.dirs)), self._unsynced_logs)
        self._unsynced_dirs, self._unsynced_logs = set(), []
        return sync

    def dirs_synced(self, sync: DirSync) -> None:
        """A sync has run. The directories that failed in it go offline; those that only lacked a descriptor are synced with the next."""
        unsynced = {path for path, error in sync.failures if is_shortage(error)}
        for path, error in sync.failures:
            self.disk_failed(path, f"Error while making the names of logs durable in dir {path}: {error}", error)
        self._unsynced_dirs |= unsynced
        self._unsynced_logs += [log for log in sync.logs if log.log_dir in unsynced]
        for log in sync.logs:
            if log.log_dir not in unsynced:
                log.durability.directory_is_new = False

    def sync_dirs(self) -> None:
        """The same on this thread."""
        sync = self.take_dir_sync()
        if sync is not None:
            sync.run()
            self.dirs_synced(sync)

    def _dirs_by_load(self) -> list[str]:
        """Live directories, fewest partitions first."""
        if len(self.dirs) == 1:  # nearly every broker: nothing to count, however many logs it has
            return list(self.dirs)
        counts = dict.fromkeys(self.dirs, 0)
        for log in self.logs:
            counts[log.log_dir] += 1
        return sorted(counts, key=lambda path: counts[path])

    def replace_current_with_future(self, partition: TopicPartition) -> None:
        """The copy in another directory has caught up: it takes the name, and the old one goes."""
        future = self._future_logs.get(partition)
        if future is None:
            raise KafkaStorageError(f"The future replica for {partition} is offline")
        current = self._logs.get(partition)
        future.rename_dir(names.partition_dir_name(partition))
        future.update_high_watermark(current.high_watermark if current else future.log_end_offset)
        del self._future_logs[partition]
        self._logs[partition] = future
        self._checkpoint_dir(future.log_dir)
        if current is not None:
            future.gaps_are_losses = future.gaps_are_losses and current.gaps_are_losses
            self.cleaner.moved(partition, current.log_dir, future.log_dir)
            self._retire(current)

    def update_topic_config(self, topic: str, config: LogConfig) -> None:
        self.topic_configs[topic] = config
        for log in self.logs:
            if log.partition.topic == topic:
                self._update_config(log, config)

    def update_default_config(self, config: LogConfig, topic_configs: Mapping[str, LogConfig]) -> None:
        """The broker's defaults have changed, and with them the configs of all topics: those given, and the default for all others."""
        self.default_config, self.topic_configs = config, dict(topic_configs)
        for log in self.logs:
            self._update_config(log, self.topic_configs.get(log.partition.topic, config))

    def _update_config(self, log: Log, config: LogConfig) -> None:
        if log.config.compact and not config.compact:
            self.cleaner.retired(log)
        log.update_config(config)

    def truncate_to(self, partition: TopicPartition, offset: int, now_ms: int, is_future: bool = False) -> bool:
        """A follower's truncation; the cleaner must not be at work below it."""
        log = self.get(partition, is_future)
        if log is None:
            return False
        clean_part_touched = not is_future and offset < log.active_segment.base_offset
        if clean_part_touched:
            self.cleaner.abort(partition)
        truncated = log.truncate_to(offset, now_ms)
        if clean_part_touched:
            self.cleaner.truncated(partition, offset)
        if truncated:  # after a change of leaders a follower asks for this of every log, and hardly any has to give something up
            self._checkpoint_dir(log.log_dir)
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
        self._checkpoint_dir(log.log_dir)

    def delete(self, partition: TopicPartition, is_future: bool = False) -> Log | None:
        """Renames the directory away at once and removes it after file.delete.delay.ms: a crash in between loses nothing but time."""
        log = (self._future_logs if is_future else self._logs).pop(partition, None)
        if log is None:
            if not is_future and partition in self._damaged:
                self._delete_damaged(self._damaged.pop(partition))
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
        self._unsynced_dirs.add(damaged.log_dir)
        self._stale_checkpoints.add(damaged.log_dir)
        self._retired += 1

    def _retire(self, log: Log) -> None:
        """For a log that no partition has any more."""
        try:
            log.rename_dir(names.marked_dir_name(log.partition, self._unique_id(), names.DELETE_DIR_SUFFIX), sync=False)
        except KafkaStorageError:
            log.close_handlers()  # its directory is offline, and was not found to have this log
            raise
        self._delete_later(log)
        self._unsynced_dirs.add(log.log_dir)
        self._retired += 1
        if log.log_dir in self.dirs:
            self.dirs[log.log_dir].loaded_high_watermarks.pop(log.partition, None)
        self._stale_checkpoints.add(log.log_dir)  # not written now: a thousand logs may be deleted in a row
        _log.info("Log for partition %s is renamed to %s and is scheduled for deletion", log.partition, log.directory)

    def _delete_later(self, log: Log) -> None:
        self._flushes.pop(log, None)
        self._later.add(log.delete, log.config.file_delete_delay_ms)

    # -- the host of its logs

    def delete_later(self, delete: Callable[[], None], delay_ms: int) -> None:
        self._later.add(delete, delay_ms)

    def flush_later(self, log: Log, offset: int) -> None:
        self._flushes[log] = max(offset, self._flushes.get(log, 0))
        self.on_flush_wanted()

    def note_gaps(self, log: Log) -> None:
        self.cleaner.note_gaps(log)

    def disk_failed(self, directory: str, message: str, error: Exception) -> None:
        """Stops serving everything in a directory; what is in the others is not touched. Another thread only reports, to the next tick.

        A process without descriptors has not lost its disk: that is logged, and whoever needed one tries again.
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
        for damaged in [each for each in self._damaged.values() if each.log_dir == directory]:
            del self._damaged[damaged.partition]
        for logs in (self._logs, self._future_logs, self._stray_logs):
            for partition in [p for p, log in logs.items() if log.log_dir == directory]:
                log = logs.pop(partition)
                self._flushes.pop(log, None)
                log.close_handlers()
                if logs is self._logs:
                    self.cleaner.removed(partition)
        for found in (self._unclaimed_logs, self._marked_logs):
            for log in [log for log in found if log.log_dir == directory]:
                found.remove(log)
                log.close_handlers()
        self.on_dir_failure(directory)
        self._require_a_dir()

    def _note_shortage(self, message: str) -> None:
        """One line between two ticks: everything that needs a descriptor comes here."""
        self._shortages += 1
        if self._shortages == 1:
            _log.warning("%s. It will be tried again; raise the limit of open files (ulimit -n) or lower max.connections", message)

    def _mark_offline(self, path: str, message: str) -> None:
        _log.error("%s. Stopping serving logs in dir %s; fix the disk and restart the broker", message, path)
        self.offline_dirs[path] = message

    def _require_a_dir(self) -> None:
        if not self.dirs:
            raise AllLogDirsFailed(f"All log dirs have failed: {'; '.join(self.offline_dirs.values())}")

    # -- what is done regularly

    def _tasks(self) -> list[tuple[str, int]]:
        config = self.config
        return [
            ("retention", config.retention_check_interval_ms),
            ("flush", config.flush_scheduler_interval_ms),
            ("recovery-points", config.recovery_point_checkpoint_interval_ms),
            ("log-start-offsets", config.log_start_offset_checkpoint_interval_ms),
            ("high-watermarks", config.high_watermark_checkpoint_interval_ms),
            ("producer-expiry", config.producer_id_expiration_check_interval_ms),
        ]

    def start_schedule(self, monotonic_ms: int) -> None:
        """What is done regularly is done from now on, for the first time after half a minute at the latest."""
        for task, interval_ms in self._tasks():
            self._due[task] = monotonic_ms + min(interval_ms, self.config.initial_task_delay_ms)

    def tick(self, now_ms: int, monotonic_ms: int) -> None:
        """Does what has come due. What takes long is driven apart: flushes, removing deleted files, and compaction through `cleaner`."""
        for part in self.due(now_ms, monotonic_ms):
            if part is not None:
                self._write(part)

    def due(self, now_ms: int, monotonic_ms: int) -> Iterator[CheckpointWrite | None]:
        """The same in slices, between which others may have their turn. What is given is a checkpoint to write, on any thread, before the
        next slice; an OSError of it is reported to `checkpoint_failed`.

        Monotonic time says what is due, so that nothing stops when the wall clock is set back. Wall time is compared with timestamps of
        records alone."""
        self._shortages = 0
        deferred, self._deferred_flushes = self._deferred_flushes, {}
        for log, offset in deferred.items():
            if self.get(log.partition, log.is_future) is log:
                self.flush_later(log, offset)
        while self._failures:
            self.disk_failed(*self._failures.popleft())
        for path in list(self._stale_checkpoints):
            yield from self._take_stale(path)
        for task, interval_ms in self._tasks():
            if monotonic_ms >= self._due.get(task, monotonic_ms):
                self._due[task] = monotonic_ms + interval_ms
                yield from self._slices_of(task, now_ms, monotonic_ms)

    def _slices_of(self, task: str, now_ms: int, monotonic_ms: int) -> Iterator[CheckpointWrite | None]:
        if task in _CHECKPOINTS:
            for path in list(self.dirs):
                yield from self._take(path, _CHECKPOINTS[task])
        elif task == "retention":
            for number, _ in enumerate(self._retention(now_ms)):
                if number % LOGS_AT_ONCE == 0:
                    yield None
        elif task == "flush":
            self.flush_dirty(monotonic_ms)
        else:
            self.expire_producers(now_ms, monotonic_ms)

    def delete_old_segments(self, now_ms: int) -> int:
        """Retention on every log that is not being compacted at this moment."""
        return sum(self._retention(now_ms))

    def _retention(self, now_ms: int) -> Iterator[int]:
        """How many segments went from each log."""
        for log in self._live_logs():
            deleted = 0
            if log.config.compact and not log.config.delete and log.log_start_offset <= log.segments.first.base_offset:
                continue
            if not self.cleaner.pause(log.partition):
                continue
            try:
                deleted = log.delete_old_segments(now_ms)
            except KafkaStorageError:
                self._require_a_dir()  # its directory is offline now, and has been reported
            finally:
                self.cleaner.resume(log.partition)
            yield deleted

    def flush_dirty(self, monotonic_ms: int) -> None:
        """Asks for a flush of every log that flush.ms says is due: since its last flush, or since it was first seen here."""
        for log in self._live_logs():
            durability = log.durability
            if durability.last_flush_ms == NEVER_MS:
                durability.last_flush_ms = monotonic_ms
            if log.unflushed_messages > 0 and monotonic_ms - durability.last_flush_ms >= log.config.flush_ms:
                self.flush_later(log, log.log_end_offset)

    def take_flushes(self) -> list[tuple[Log, FlushPlan]]:
        """The flushes that are wanted. Run each plan on a thread, then tell its log with `flushed` if it ran to the end."""
        wanted, self._flushes = self._flushes, {}
        plans = []
        for log, offset in wanted.items():
            try:
                plan = log.prepare_flush(offset)
            except OSError as e:
                self.flush_failed(log, offset, e)
                continue
            if plan is not None:
                plans.append((log, plan))
        return plans

    def run_flushes(self, monotonic_ms: int) -> None:
        """The same on this thread."""
        for log, plan in self.take_flushes():
            try:
                durable = plan.run()
            except OSError as e:
                self.flush_failed(log, plan.recovery_point, e, plan)
            else:
                self.flush_ran(log, plan, durable, monotonic_ms)

    def flush_failed(self, log: Log, below: int, error: OSError, plan: FlushPlan | None = None) -> None:
        """For want of descriptors it is tried again at the next tick; else the disk has failed."""
        self.disk_failed(log.log_dir, f"Error while flushing log for {log.partition} in dir {log.log_dir}: {error}", error)
        if is_shortage(error) and self.get(log.partition, log.is_future) is log:
            if plan is not None:
                log.not_flushed(plan)
            self._deferred_flushes[log] = max(below, self._deferred_flushes.get(log, 0))

    def flush_ran(self, log: Log, plan: FlushPlan, is_durable: bool, monotonic_ms: int) -> None:
        """A plan has run; one whose directory was renamed under it has to be made anew."""
        if is_durable:
            log.flushed(plan, monotonic_ms)
        elif self.get(log.partition, log.is_future) is log:
            self.flush_later(log, plan.recovery_point)
        self.on_flushed(log)

    def checkpoint_recovery_points(self) -> None:
        self._checkpoint_all(LogDir.take_recovery_points)

    def checkpoint_log_start_offsets(self) -> None:
        self._checkpoint_all(LogDir.take_log_start_offsets)

    def checkpoint_high_watermarks(self) -> None:
        self._checkpoint_all(LogDir.take_high_watermarks)

    def refresh_checkpoints(self) -> Iterator[CheckpointWrite]:
        """What is to be written before logs are made, as by `due`. A log that is made before it is done sees to it itself."""
        for path in list(self._stale_checkpoints):
            yield from self._take_stale(path)

    def _refresh_checkpoints(self, path: str) -> None:
        if path in self._stale_checkpoints:
            self._checkpoint_dir(path)

    def _checkpoint_dir(self, path: str) -> None:
        self._stale_checkpoints.discard(path)
        for take in (LogDir.take_recovery_points, LogDir.take_log_start_offsets):
            for write in self._take(path, take):
                self._write(write)

    def _checkpoint_all(self, take: TakeCheckpoint) -> None:
        for path in list(self.dirs):
            for write in self._take(path, take):
                self._write(write)

    def _take_stale(self, path: str) -> Iterator[CheckpointWrite]:
        """They are fresh once both are written, unless another log went meanwhile."""
        before = self._retired, self._unwritten
        yield from self._take(path, LogDir.take_recovery_points)
        yield from self._take(path, LogDir.take_log_start_offsets)
        if (self._retired, self._unwritten) == before:
            self._stale_checkpoints.discard(path)

    def _take(self, path: str, take: TakeCheckpoint) -> Iterator[CheckpointWrite]:
        """High watermarks are left alone until the first partition has a role: until then there is nothing newer than what is there."""
        if path in self.dirs and (self._has_roles or take is not LogDir.take_high_watermarks):
            unclaimed = self._unclaimed_in(path) if take is LogDir.take_high_watermarks else []
            yield take(self.dirs[path], [*unclaimed, *self._logs_in(path)])

    def _write(self, write: CheckpointWrite) -> None:
        try:
            write.run()
        except OSError as e:
            self.checkpoint_failed(write, e)

    def checkpoint_failed(self, write: CheckpointWrite, error: OSError) -> None:
        if is_shortage(error):
            self._unwritten += 1
            self._stale_checkpoints.add(write.log_dir)  # written at the next tick
        self.disk_failed(write.log_dir, f"Error while writing checkpoints in dir {write.log_dir}: {error}", error)

    def _logs_in(self, path: str) -> list[Log]:
        """Those with a name of their own in the checkpoints, also of a topic that is not known yet. A partition has at most one log in a
        directory: a future one is never beside the current one."""
        if len(self.dirs) == 1 and not self._future_logs and not self._unclaimed_logs:
            return list(self._logs.values())
        return [log for log in (*self.logs, *self._unclaimed_logs) if log.log_dir == path]

    def _unclaimed_in(self, path: str) -> list[Log]:
        """Their high watermarks are kept until they are claimed or set aside; what is in use under the same name counts more."""
        return [log for log in self._unclaimed_logs if log.log_dir == path]

    def _live_logs(self) -> Iterator[Log]:
        """All logs; those whose directory fails on the way are left out."""
        return (log for log in self.logs if log.log_dir in self.dirs)

    def expire_producers(self, now_ms: int, monotonic_ms: int) -> None:
        for log in self.logs:
            log.producers.remove_expired(now_ms, monotonic_ms)

    def inspections(self) -> Iterator[Inspection]:
        """The segments of all logs that are not written any more, some at a time: to be run on a thread and then given to `inspected`."""
        for log in self.logs:
            if log.log_dir in self.dirs:
                yield from inspections_of(log)

    def inspected(self, inspection: Inspection) -> None:
        """What does not look whole is looked at again, since the log may have been changed meanwhile, and logged."""
        log = inspection.log
        if self.get(log.partition, log.is_future) is not log:
            return
        for base_offset in inspection.doubtful:
            try:
                log.inspect_segment(base_offset)
            except (OSError, KafkaError, StorageFault) as error:
                _log.error("The segment %d of %s cannot be read: %s", base_offset, log.directory, error)

    def take_deletions(self, monotonic_ms: int) -> list[Callable[[], None]]:
        """What removes the files and directories whose delay is over: to be called on a thread, for unlinking a large file takes long."""
        return self._later.take_due(monotonic_ms)

    def remove_deleted(self, monotonic_ms: int) -> None:
        """The same on this thread. What fails is left for the next start, which removes it too."""
        for delete in self.take_deletions(monotonic_ms):
            try:
                delete()
            except (OSError, KafkaStorageError) as e:
                _log.error("Could not delete files: %s", e)
                self._require_a_dir()

    # -- the end

    def shutdown(self, monotonic_ms: int, broker_epoch: int = -1) -> None:
        """Flushes and closes every log and says so on disk, so that the next start need not recover anything."""
        self.cleaner.shutdown()
        for log_dir in list(self.dirs.values()):
            try:
                self._shutdown_dir(log_dir, monotonic_ms, broker_epoch)
            except (OSError, KafkaStorageError) as e:
                _log.error("Could not close %s cleanly; its logs will be recovered at the next start: %s", log_dir.path, e)
            finally:
                log_dir.release()

    def _shutdown_dir(self, log_dir: LogDir, monotonic_ms: int, broker_epoch: int) -> None:
        self.sync_dirs()
        logs = self._logs_in(log_dir.path)
        self._close_all([*logs, *(stray for stray in self.stray_logs if stray.log_dir == log_dir.path)], monotonic_ms)
        log_dir.checkpoint_recovery_points(logs)
        log_dir.checkpoint_log_start_offsets(logs)
        if self._has_roles:
            log_dir.checkpoint_high_watermarks([*self._unclaimed_in(log_dir.path), *logs])
        if log_dir.is_recovered:
            log_dir.clean_shutdown.write(broker_epoch)

    def _close_all(self, logs: list[Log], monotonic_ms: int) -> None:
        """Several at once: each waits for the device a few times, which serves many that wait as fast as one."""
        threads = self.config.num_recovery_threads_per_data_dir
        if threads <= 1 or len(logs) <= 1:
            for log in logs:
                log.close(monotonic_ms)
            return
        with ThreadPoolExecutor(threads, "log-closing") as pool:
            for closed in [pool.submit(log.close, monotonic_ms) for log in logs]:
                closed.result()
