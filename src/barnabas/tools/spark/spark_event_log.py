"""Reads the event log of a running Spark: the events of streaming queries, as soon as Spark has written them.

This is the only way for another process to see every batch: Spark's metrics show only the last batch, and nothing after the end of a query.
The log is JSON in rolling files; files that were read are removed, so that it takes the space of two files at most.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

STARTED: Final = "QueryStartedEvent"
PROGRESS: Final = "QueryProgressEvent"
TERMINATED: Final = "QueryTerminatedEvent"
PREFIX: Final = "spark.eventLog."

_LISTENER: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$"
_START: Final = f'{{"Event":"{_LISTENER}'.encode()
_FILE: Final = re.compile(r"events_(\d+)_.*")
_FILE_SIZE: Final = "10m"  # the smallest that Spark allows


def log_settings(directory: Path) -> dict[str, str]:
    """The Spark settings that enable the log."""
    return {
        f"{PREFIX}enabled": "true",
        f"{PREFIX}dir": directory.as_uri(),
        f"{PREFIX}compress": "false",
        f"{PREFIX}rolling.enabled": "true",
        f"{PREFIX}rolling.maxFileSize": _FILE_SIZE,
    }


class SparkEventLog:
    """The log in a directory of one Spark. `events` returns each event once: its kind and its content."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._positions: dict[Path, int] = {}

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The events since the last call."""
        files = sorted(self._files())
        for _, file in files:
            yield from self._read(file)
        for _, file in files[:-1]:
            file.unlink()
            self._positions.pop(file, None)

    def _files(self) -> Iterator[tuple[int, Path]]:
        for file in self._directory.glob("*/events_*"):
            name = _FILE.fullmatch(file.name)
            if name is not None:
                yield int(name[1]), file

    def _read(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        with path.open("rb") as file:
            file.seek(self._positions.get(path, 0))
            for line in file:
                if not line.endswith(b"\n"):
                    break  # Spark is still writing this file
                self._positions[path] = self._positions.get(path, 0) + len(line)
                if line.startswith(_START):
                    event = json.loads(line)
                    yield event["Event"].removeprefix(_LISTENER), event
