"""The checkpoints of all log directories: recovery points, log start offsets and high watermarks.

What a checkpoint says is taken on the event loop, and written on any thread: the caller runs each `CheckpointWrite`, and reports an OSError
to `failed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from barnabas.storage.directory.checkpoints import CheckpointWrite
from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.disk.disk import is_shortage
from barnabas.storage.log.log import Log
from barnabas.storage.management.log_registry import LogRegistry

TakeCheckpoint = Callable[[LogDir, list[Log]], CheckpointWrite]

CHECKPOINT_TASKS: Final[dict[str, TakeCheckpoint]] = {
    "recovery-points": LogDir.take_recovery_points,
    "log-start-offsets": LogDir.take_log_start_offsets,
    "high-watermarks": LogDir.take_high_watermarks,
}


class DirCheckpoints:
    def __init__(self, dirs: Mapping[str, LogDir], logs: LogRegistry, disk_failed: Callable[[str, str, Exception], None]) -> None:
        self.has_roles = False  # whether any partition has become leader or follower: with the first LeaderAndIsr
        self._dirs = dirs
        self._logs = logs
        self._disk_failed = disk_failed
        # Directories whose checkpoints may still name logs that are gone. They are written again before a log is created there: otherwise
        # a new log would be taken to be flushed as far as an old one of its name was.
        self._stale: set[str] = set()
        self._removed_logs = 0
        self._failed_writes = 0  # for want of a descriptor

    def mark_stale(self, paths: Iterable[str]) -> None:
        self._stale.update(paths)

    def log_removed(self, path: str) -> None:
        """The checkpoints are not written now, because a thousand logs may be deleted in a row."""
        self._removed_logs += 1
        self._stale.add(path)

    def is_stale(self, path: str) -> bool:
        return path in self._stale

    def take(self, path: str, take: TakeCheckpoint) -> Iterator[CheckpointWrite]:
        """High watermarks are not written before the first partition has a role: until then the file on disk is as new as the logs.

        Unclaimed logs come first: where a served log has the same partition, its high watermark replaces theirs.
        """
        if path in self._dirs and (self.has_roles or take is not LogDir.take_high_watermarks):
            unclaimed = self._logs.unclaimed_in(path) if take is LogDir.take_high_watermarks else []
            yield take(self._dirs[path], [*unclaimed, *self._logs.checkpointed_in(path)])

    def take_all(self, take: TakeCheckpoint) -> Iterator[CheckpointWrite]:
        for path in list(self._dirs):
            yield from self.take(path, take)

    def take_stale(self) -> Iterator[CheckpointWrite]:
        """The checkpoints to write before logs are created. A log that is created earlier has them written itself."""
        for path in list(self._stale):
            yield from self._take_stale(path)

    def _take_stale(self, path: str) -> Iterator[CheckpointWrite]:
        """The directory is no longer stale once both are written, unless another log was removed meanwhile."""
        before = self._removed_logs, self._failed_writes
        yield from self.take(path, LogDir.take_recovery_points)
        yield from self.take(path, LogDir.take_log_start_offsets)
        if (self._removed_logs, self._failed_writes) == before:
            self._stale.discard(path)

    def refresh(self, path: str) -> None:
        """Writes the checkpoints of a directory on this thread if they are stale. They stay stale if no descriptor is left."""
        if path in self._stale:
            self.write_dir(path)

    def write_dir(self, path: str) -> None:
        """Writes recovery points and log start offsets of a directory on this thread."""
        self._stale.discard(path)
        for take in (LogDir.take_recovery_points, LogDir.take_log_start_offsets):
            for write in self.take(path, take):
                self.write(write)

    def write_recovery_points(self) -> None:
        self._write_all(LogDir.take_recovery_points)

    def write_log_start_offsets(self) -> None:
        self._write_all(LogDir.take_log_start_offsets)

    def write_high_watermarks(self) -> None:
        self._write_all(LogDir.take_high_watermarks)

    def _write_all(self, take: TakeCheckpoint) -> None:
        for write in self.take_all(take):
            self.write(write)

    def write(self, write: CheckpointWrite) -> None:
        try:
            write.run()
        except OSError as e:
            self.failed(write, e)

    def failed(self, write: CheckpointWrite, error: OSError) -> None:
        if is_shortage(error):
            self._failed_writes += 1
            self._stale.add(write.log_dir)  # written at the next tick
        self._disk_failed(write.log_dir, f"Error while writing checkpoints in dir {write.log_dir}: {error}", error)
