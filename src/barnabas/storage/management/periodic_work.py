"""The periodic work on the logs: retention, flushes by time, checkpoints, and the expiry of producers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from barnabas.errors import KafkaStorageError
from barnabas.storage.compaction.manager import CleanerManager
from barnabas.storage.directory.checkpoints import CheckpointWrite
from barnabas.storage.management.dir_checkpoints import CHECKPOINT_TASKS, DirCheckpoints
from barnabas.storage.management.flush_queue import FlushQueue
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.storage.management.log_registry import LogRegistry

LOGS_AT_ONCE: Final = 100  # retention checks the segments of so many logs before the event loop does other work


class PeriodicWork:
    """Monotonic time says what is due, so that nothing stops when the wall clock is set back. Wall time is only compared with the
    timestamps of records. `require_a_dir` raises if no log directory is left."""

    def __init__(
        self,
        config: LogManagerConfig,
        logs: LogRegistry,
        flushes: FlushQueue,
        checkpoints: DirCheckpoints,
        cleaner: CleanerManager,
        require_a_dir: Callable[[], None],
    ) -> None:
        self._tasks = (
            ("retention", config.retention_check_interval_ms),
            ("flush", config.flush_scheduler_interval_ms),
            ("recovery-points", config.recovery_point_checkpoint_interval_ms),
            ("log-start-offsets", config.log_start_offset_checkpoint_interval_ms),
            ("high-watermarks", config.high_watermark_checkpoint_interval_ms),
            ("producer-expiry", config.producer_id_expiration_check_interval_ms),
        )
        self._initial_delay_ms = config.initial_task_delay_ms
        self._due: dict[str, int] = {}
        self._logs = logs
        self._flushes = flushes
        self._checkpoints = checkpoints
        self._cleaner = cleaner
        self._require_a_dir = require_a_dir

    def start(self, monotonic_ms: int) -> None:
        """Starts the intervals. Each task runs for the first time after 30 s at the latest."""
        for task, interval_ms in self._tasks:
            self._due[task] = monotonic_ms + min(interval_ms, self._initial_delay_ms)

    def due(self, now_ms: int, monotonic_ms: int) -> Iterator[CheckpointWrite | None]:
        """Does what is due, in slices: see LogManager.due."""
        for task, interval_ms in self._tasks:
            if monotonic_ms >= self._due.get(task, monotonic_ms):
                self._due[task] = monotonic_ms + interval_ms
                yield from self._slices_of(task, now_ms, monotonic_ms)

    def _slices_of(self, task: str, now_ms: int, monotonic_ms: int) -> Iterator[CheckpointWrite | None]:
        if task in CHECKPOINT_TASKS:
            yield from self._checkpoints.take_all(CHECKPOINT_TASKS[task])
        elif task == "retention":
            for number, _ in enumerate(self.retention(now_ms)):
                if number % LOGS_AT_ONCE == 0:
                    yield None
        elif task == "flush":
            self._flushes.request_due(monotonic_ms)
        else:
            self.expire_producers(now_ms, monotonic_ms)

    def retention(self, now_ms: int) -> Iterator[int]:
        """Applies retention to every log that is not being compacted at this moment. Yields the number of deleted segments, log by log."""
        for log in self._logs.live():
            deleted = 0
            if log.config.compact and not log.config.delete and log.log_start_offset <= log.segments.first.base_offset:
                continue
            if not self._cleaner.pause(log.partition):
                continue
            try:
                deleted = log.delete_old_segments(now_ms)
            except KafkaStorageError:
                self._require_a_dir()  # the directory of this log is offline now, and has been reported
            finally:
                self._cleaner.resume(log.partition)
            yield deleted

    def expire_producers(self, now_ms: int, monotonic_ms: int) -> None:
        for log in self._logs.served():
            log.producers.remove_expired(now_ms, monotonic_ms)
