"""What every client under test is asked to do, whatever its language: send records, and read them back without a group.

A start is `beginning`, `offset:N` or `time:MS`, the same words that clients in other processes are given.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tests.integration.clients.records import Record, read_records, write_records
from tests.ready import is_readable

WAIT_S = 30
BEGINNING = "beginning"


class Refused(Exception):
    """The client could not do it; the message is what the client said."""


class Client(Protocol):
    sends_nothing: bool  # whether it sends records with neither key nor value, and headers without a value

    def produce(self, topic: str, codec: str, records: Sequence[Record]) -> None:
        """Sends the records to partition 0, in order, with their timestamps; returns when all are acknowledged, else raises Refused."""

    def consume(self, topic: str, start: str, count: int) -> list[Record]:
        """Reads `count` records of partition 0."""

    def close(self) -> None: ...


ClientMaker = Callable[[str], Client]  # a client by its name


class ProcessClient:
    """A client in another language or of another age: a process that takes commands on stdin (see java/Client.java) and lives on."""

    sends_nothing = True

    def __init__(self, command: Sequence[str], directory: Path, environment: dict[str, str] | None = None) -> None:
        self._directory = directory
        self._errors = (directory / "stderr").open("w+")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            bufsize=1,
            env={**os.environ, **(environment or {})},
        )

    def produce(self, topic: str, codec: str, records: Sequence[Record]) -> None:
        file = self._directory / "sent"
        write_records(file, records)
        self._tell("produce", topic, codec, str(file))

    def consume(self, topic: str, start: str, count: int) -> list[Record]:
        file = self._directory / "read"
        self._tell("consume", topic, start, str(count), str(file))
        return read_records(file)

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(WAIT_S)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._process.stdout.close()
            self._errors.close()

    def _tell(self, *words: str) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        if self._process.poll() is not None:
            raise Refused("the client has ended, see what failed before")
        self._process.stdin.write("\t".join(words) + "\n")
        if not is_readable(self._process.stdout, 2 * WAIT_S):
            self._process.kill()  # else a late answer would be taken for that of the next command
            self._process.wait()
        answer = self._process.stdout.readline().rstrip("\n")
        if answer != "ok":
            self._errors.seek(0)
            raise Refused(f"{answer or f'no answer within {2 * WAIT_S} s'}\n{self._errors.read()[-2000:]}".strip())


def place(start: str) -> tuple[str, int]:
    """A start as (kind, number)."""
    kind, _, number = start.partition(":")
    return kind, int(number or 0)
