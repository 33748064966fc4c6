"""Reads the event log of a Spark that runs: what it tells its listeners of streaming queries, as soon as Spark has written it.

Spark has no other way to tell another process of every batch: its metrics show the last batch only, and nothing once a query has ended. The
log is plain JSON in files that Spark rolls; those that were read are removed, so that it never takes more than two files' space.
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
    """Settings of the Spark that is to write the log."""
    return {
        f"{PREFIX}enabled": "true",
        f"{PREFIX}dir": directory.as_uri(),
        f"{PREFIX}compress": "false",
        f"{PREFIX}rolling.enabled": "true",
        f"{PREFIX}rolling.maxFileSize": _FILE_SIZE,
    }


class SparkEventLog:
    """The log in a directory that is this Spark's own. `events` gives each event once: its kind and its content."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._positions: dict[Path, int] = {}

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What was written since the last call."""
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
                    break  # Spark is writing it
                self._positions[path] = self._positions.get(path, 0) + len(line)
                if line.startswith(_START):
                    event = json.loads(line)
                    yield event["Event"].removeprefix(_LISTENER), event
