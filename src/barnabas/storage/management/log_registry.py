"""The logs of a broker by what the broker does with them: serve them, copy them to another directory, or keep them aside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas.storage.directory.log_dir import LogDir
from barnabas.storage.log.damaged_log import DamagedLog
from barnabas.storage.log.log import Log
from barnabas.topic_partition import TopicPartition


class LogRegistry:
    """`dirs` belongs to the log manager, which removes a directory from it when the disk fails."""

    def __init__(self, dirs: Mapping[str, LogDir]) -> None:
        self.current: dict[TopicPartition, Log] = {}
        self.future: dict[TopicPartition, Log] = {}
        self.stray: dict[TopicPartition, Log] = {}
        self.damaged: dict[TopicPartition, DamagedLog] = {}  # logs that could not be loaded
        # Found at the start, and neither renamed nor deleted before `LogManager.clear_away`.
        self.unclaimed: list[Log] = []
        self.marked: list[Log] = []  # marked for deletion
        self.marked_dirs: list[str] = []  # marked for deletion, and damaged: there is no log to delete, only the directory
        self._dirs = dirs

    def of(self, is_future: bool) -> dict[TopicPartition, Log]:
        return self.future if is_future else self.current

    def holds(self, log: Log) -> bool:
        """Whether the log is still served: not deleted, replaced, or on a disk that has failed."""
        return self.of(log.is_future).get(log.partition) is log

    def served(self) -> list[Log]:
        return [*self.current.values(), *self.future.values()]

    def live(self) -> Iterator[Log]:
        """All served logs. A log whose directory fails during the iteration is left out."""
        return (log for log in self.served() if log.log_dir in self._dirs)

    def checkpointed_in(self, path: str) -> list[Log]:
        """The logs of a directory that the checkpoints name, unclaimed logs included.

        A partition has at most one log in a directory: a future log is never in the directory of the current one.
        """
        if len(self._dirs) == 1 and not self.future and not self.unclaimed:
            return list(self.current.values())
        return [log for log in (*self.served(), *self.unclaimed) if log.log_dir == path]

    def unclaimed_in(self, path: str) -> list[Log]:
        return [log for log in self.unclaimed if log.log_dir == path]

    def drop_dir(self, path: str) -> list[Log]:
        """Forgets everything in a directory whose disk has failed; returns the logs, of which the caller closes the files."""
        for partition in [partition for partition, damaged in self.damaged.items() if damaged.log_dir == path]:
            del self.damaged[partition]
        dropped: list[Log] = []
        for by_partition in (self.current, self.future, self.stray):
            for partition in [partition for partition, log in by_partition.items() if log.log_dir == path]:
                dropped.append(by_partition.pop(partition))
        for logs in (self.unclaimed, self.marked):
            for log in [log for log in logs if log.log_dir == path]:
                logs.remove(log)
                dropped.append(log)
        return dropped
