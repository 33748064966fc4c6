"""Makes the names of created, renamed and deleted logs durable: one sync of a log directory for many of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.disk.disk import is_shortage
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.log.log import Log


class DirSync:
    """Makes the names in some log directories durable. `run` may be called on any thread."""

    def __init__(self, files: AnyFiles, paths: list[str], logs: list[Log]) -> None:
        self.files = files
        self.paths = paths
        self.logs = logs  # the logs that were created in the directories
        self.failures: list[tuple[str, OSError]] = []

    def run(self) -> None:
        for path in self.paths:
            try:
                self.files.sync_dir(path)
            except OSError as error:
                self.failures.append((path, error))


class DirSyncs:
    """The directories in which logs were created or renamed since their last sync.

    The caller that has created many logs syncs once at the end. The flush of a new log syncs its name itself.
    """

    def __init__(self, files: AnyFiles, dirs: Mapping[str, LogDir], disk_failed: Callable[[str, str, Exception], None]) -> None:
        self._files = files
        self._dirs = dirs
        self._disk_failed = disk_failed
        self._paths: set[str] = set()
        self._new_logs: list[Log] = []

    def log_created(self, log: Log) -> None:
        self._paths.add(log.log_dir)
        self._new_logs.append(log)

    def log_renamed(self, path: str) -> None:
        self._paths.add(path)

    def take(self) -> DirSync | None:
        """The sync that is needed now, None if there is none.

        The caller runs it on any thread and calls `ran` before it acknowledges that logs were created or deleted.
        """
        if not self._paths:
            return None
        sync = DirSync(self._files, sorted(self._paths.intersection(self._dirs)), self._new_logs)
        self._paths, self._new_logs = set(), []
        return sync

    def ran(self, sync: DirSync) -> None:
        """Takes directories offline whose sync failed. A directory that only lacked a descriptor is synced with the next ones."""
        unsynced = {path for path, error in sync.failures if is_shortage(error)}
        for path, error in sync.failures:
            self._disk_failed(path, f"Error while making the names of logs durable in dir {path}: {error}", error)
        self._paths |= unsynced
        self._new_logs += [log for log in sync.logs if log.log_dir in unsynced]
        for log in sync.logs:
            if log.log_dir not in unsynced:
                log.durability.directory_is_new = False

    def run_all(self) -> None:
        """Syncs on this thread."""
        sync = self.take()
        if sync is not None:
            sync.run()
            self.ran(sync)
