"""Opens the logs of one log directory when the broker starts, and recovers them after an unclean shutdown.

Recovery may take minutes. So loading is a generator: the broker serves other work between two steps.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from typing import Final

from barnabas.errors import KafkaStorageError
from barnabas.storage.directory import names
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.log.damaged_log import DamagedLog, load_or_describe
from barnabas.storage.log.loader import LoadRequest
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.management.log_registry import LogRegistry
from barnabas.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

LOOK_UP_S: Final = 0.05  # how long one step waits for a log to be recovered

NewLoadRequest = Callable[[str, TopicPartition, int], LoadRequest]


class LogDirLoader:
    """`new_request` gives the request for an empty log, which the loader completes from the checkpoints."""

    def __init__(
        self, logs: LogRegistry, recovery_threads: int, new_request: NewLoadRequest, config_of: Callable[[TopicPartition], LogConfig]
    ) -> None:
        self._logs = logs
        self._recovery_threads = recovery_threads
        self._new_request = new_request
        self._config_of = config_of

    def loading(self, log_dir: LogDir, now_ms: int, is_stray: Callable[[Log], bool]) -> Iterator[None]:
        log_dir.is_recovered = clean = log_dir.clean_shutdown.exists()
        # Deleted before the first log is opened: after a crash during loading the next start must recover.
        log_dir.clean_shutdown.delete()
        log_dir.files.sync_dir(log_dir.path)
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
        log_dir.is_recovered = clean or not damaged  # a log that was not loaded was not recovered either

    def _load_requests(self, log_dir: LogDir, clean: bool, now_ms: int) -> tuple[list[LoadRequest], bool]:
        """One request for each log, and whether a checkpoint says which records were flushed."""
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
            request = self._new_request(f"{log_dir.path}/{name}", partition, now_ms)
            request.clean_shutdown = clean
            request.recovery_point = (recovery_points or {}).get(partition, 0)
            request.log_start_offset = (start_offsets or {}).get(partition, 0)
            # A gap counts as a loss only where the checkpoint says which records were flushed, and only in a log that was never
            # compacted, whatever its cleanup policy is now: otherwise compaction may have made the gap.
            request.holes_are_losses = tells_flushed and cleaned is not None and partition not in cleaned
            requests.append(request)
        return requests, tells_flushed

    def _load_all(self, requests: list[LoadRequest], clean: bool) -> Generator[Log | DamagedLog | None, None, None]:
        """Yields each log, and None every `LOOK_UP_S` while the next one is not recovered yet."""
        if clean or self._recovery_threads <= 1:
            yield from map(load_or_describe, requests)  # reads names and sizes only: threads would not make it faster
            return
        with ThreadPoolExecutor(self._recovery_threads, "log-recovery") as pool:
            loads = deque(pool.submit(load_or_describe, request) for request in requests)
            try:
                while loads:
                    while not wait([loads[0]], timeout=LOOK_UP_S).done:
                        yield None
                    yield loads.popleft().result()
            finally:  # not empty after an error of the disk: the directory goes offline, and its other logs are closed
                for load in loads:
                    if not load.cancel() and load.exception() is None and isinstance(log := load.result(), Log):
                        log.close_handlers()

    def _note_damaged(self, log_dir: LogDir, damaged: DamagedLog) -> None:
        _log.error("Not serving the log in %s, all others of %s are served: %s", damaged.directory, log_dir.path, damaged.reason)
        if damaged.is_marked_for_deletion:
            self._logs.marked_dirs.append(damaged.directory)
        elif damaged.was_served:
            self._logs.damaged[damaged.partition] = log_dir.damaged[damaged.partition] = damaged

    def _admit(self, log: Log, is_stray: Callable[[Log], bool]) -> None:
        name = log.directory.rpartition("/")[2]
        if name.endswith(names.DELETE_DIR_SUFFIX):
            self._logs.marked.append(log)
            return
        if name.endswith(names.STRAY_DIR_SUFFIX):
            _log.warning("Log of %s in %s is stray: it is not served", log.partition, log.directory)
            self._logs.stray[log.partition] = log
            return
        if is_stray(log):
            _log.warning("Log of %s in %s is not served: no topic of this cluster claims it", log.partition, log.directory)
            self._logs.unclaimed.append(log)
            return
        logs = self._logs.of(log.is_future)
        other = logs.get(log.partition)
        if other is not None:
            raise KafkaStorageError(
                f"Duplicate log directories for {log.partition} are found in both {log.directory} and {other.directory}. "
                "It is likely because log directory failure happened while broker was replacing current replica with future replica. "
                "Recover broker from this failure by manually deleting one of the two directories for this partition. It is recommended "
                "to delete the partition in the log directory that is known to have failed recently."
            )
        logs[log.partition] = log
        config = self._config_of(log.partition)
        if config is not log.config:  # the topic config was altered while the log was being loaded
            log.update_config(config)

    def _begin_recovery_points(self, log_dir: LogDir) -> None:
        """Flushes all logs and writes the checkpoint, so that the next recovery can tell a gap that is a loss."""
        logs = self._logs.checkpointed_in(log_dir.path)
        for log in logs:
            log.flush()
        log_dir.checkpoint_recovery_points(logs)
