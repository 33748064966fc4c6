"""The log files of a broker, one each as Kafka has: server.log, state-change.log, controller.log and so on, rotated and bounded.

A line is one write to the page cache. A file is renamed when an hour has passed, as Kafka's log4j settings do, or when it is large; the
name then ends with the hour. Old files are deleted on a thread, because deleting a large file can take long. A line that cannot be written
goes to standard error, and the first one says why.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Final

from barnabas import loggers
from barnabas.file_modes import DIRECTORY_MODE, FILE_MODE

SERVER: Final = "server.log"
# Each logger, with its children, has its own file and is in no other, as in Kafka's log4j settings. All others are in server.log.
FILES: Final = {
    loggers.STATE_CHANGE: "state-change.log",
    loggers.CONTROLLER: "controller.log",
    loggers.REQUEST: "kafka-request.log",
    loggers.CLEANER: "log-cleaner.log",
    loggers.AUTHORIZER: "kafka-authorizer.log",
}
HOUR_S: Final = 3600
FILE_BYTES_MAX: Final = 64 << 20
OLD_FILES_MAX: Final = 168  # of one log: a week of hours
OLD_BYTES_MAX: Final = 1 << 30  # of the old files of one log


class RotatedFile:
    """One log file. `in_background` runs the deletion of old files."""

    def __init__(
        self,
        directory: str,
        name: str,
        file_bytes_max: int = FILE_BYTES_MAX,
        old_files_max: int = OLD_FILES_MAX,
        old_bytes_max: int = OLD_BYTES_MAX,
        in_background: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._directory = directory
        self._name = name
        self._path = os.path.join(directory, name)
        self._file_bytes_max = file_bytes_max
        self._old_files_max = old_files_max
        self._old_bytes_max = old_bytes_max
        self._in_background = in_background or _on_thread
        self._file = self._open()
        state = os.fstat(self._file)
        self._bytes = state.st_size
        self._hour = int(state.st_mtime // HOUR_S)  # a file that an earlier run left is renamed by the first line of another hour
        self._failing = False

    def write(self, line: str, created: float) -> None:
        """Appends a line that was logged at this time, in seconds since 1970."""
        data = f"{line}\n".encode("utf-8", "backslashreplace")
        try:
            hour = int(created // HOUR_S)
            if self._bytes and (hour != self._hour or self._bytes + len(data) > self._file_bytes_max):
                self._rotate()
            self._hour = hour
            self._bytes += os.write(self._file, data)
            self._failing = False
        except OSError as error:
            if not self._failing:
                self._failing = True
                print(
                    f"barnabas: {self._path} cannot be written ({error}); its lines follow here until it can", file=sys.stderr, flush=True
                )
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        os.close(self._file)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)

    def _rotate(self) -> None:
        hour = datetime.fromtimestamp(self._hour * HOUR_S)
        ended = f"{self._path}.{hour:%Y-%m-%d-%H}"
        number = 1
        name = ended
        while os.path.exists(name):  # at most a few: an hour has as many files as it has multiples of the bound
            name = f"{ended}.{number}"
            number += 1
        os.rename(self._path, name)
        ended_file, self._file = self._file, self._open()
        os.close(ended_file)
        self._bytes = 0
        self._in_background(self._delete_old)

    def _delete_old(self) -> None:
        old = []
        for entry in os.scandir(self._directory):
            if entry.name.startswith(f"{self._name}.") and entry.name[len(self._name) + 1 :][:1].isdigit() and entry.is_file():
                state = entry.stat()
                old.append((state.st_mtime, entry.path, state.st_size))
        old.sort(reverse=True)
        kept_bytes = 0
        for index, (_, path, size) in enumerate(old):
            kept_bytes += size
            if index >= self._old_files_max or kept_bytes > self._old_bytes_max:
                os.unlink(path)


def _on_thread(work: Callable[[], None]) -> None:
    def quietly() -> None:
        try:
            work()
        except OSError as error:
            print(f"barnabas: old log files cannot be deleted: {error}", file=sys.stderr, flush=True)

    threading.Thread(target=quietly, name="old-log-files", daemon=True).start()


class LogFiles(logging.Handler):
    """Writes each line to the file of its logger. Raises OSError if the directory or a file cannot be created or opened."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        os.makedirs(directory, DIRECTORY_MODE, exist_ok=True)
        self._files = {name: RotatedFile(directory, name) for name in (SERVER, *FILES.values())}

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
            return
        self._files[file_of(record.name)].write(line, record.created)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        super().close()


_files_of_loggers: dict[str, str] = {}  # one entry a logger of this process


def file_of(logger: str) -> str:
    """The file of a Python logger."""
    file = _files_of_loggers.get(logger)
    if file is None:
        name = loggers.kafka_name(logger)
        file = next((file for parent, file in FILES.items() if loggers.is_below(name, parent)), SERVER)
        _files_of_loggers[logger] = file
    return file


def is_in_server_log(record: logging.LogRecord) -> bool:
    return file_of(record.name) == SERVER
