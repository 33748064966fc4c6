"""Reads pages as a newcomer does who types what they show, in order: `python -m tests.docs.run_pages DIRECTORY PAGE…`.

Run it in a network of its own, see network.py. The last line of its output is a JSON list with the outcome of each command and each block
of Python.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests import schema_registry, spark_session
from tests.docs import snippets
from tests.docs.commands import Command, commands, missing_line
from tests.docs.network import raise_loopback
from tests.docs.snippets import SnippetFailed, Snippets
from tests.docs.terminal import CommandFailed, Terminal
from tests.documentation import ROOT, Block, blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHELL = "sh"
PYTHON = "python"
# What a reader has done before. A page that is not named here needs `barnabas up` and a topic with some orders.
NOTHING_BEFORE = ("docs/running.md",)
CLUSTER_BEFORE = ("docs/tools.md",)
CLUSTER = ("docs/running.md", "A cluster")  # the section that sets it up
KAFKA_LOGS = ROOT / "tests/data/golden-logs/kafka-4.2.0/first"  # data of Apache Kafka: `kafka-logs` in the reader's directory
STAND_ALONE = ("docs/clients.md", "docs/serializers.md", "docs/testing.md")  # pages whose examples do not continue each other
OPTIONAL_PROGRAMS = ("kcat",)
REGISTRY_PORT = 8081


@dataclass(frozen=True)
class Outcome:
    """`failure` is None where all went well; `missing` is a program that is not installed here, for lack of which nothing was run."""

    place: str
    shown: str
    seconds: float
    failure: str | None = None
    missing: str | None = None

    def __str__(self) -> str:
        shown = self.shown.rstrip().replace("\n", "\n    ")
        return f"{self.place}\n    {shown}\n{self.failure or ''}"


def needs_spark(page: str) -> bool:
    return any("spark." in block.source for block in blocks(page) if block.language == PYTHON and block.is_run)


def main(arguments: Sequence[str]) -> int:
    directory, pages = Path(arguments[0]), arguments[1:]
    raise_loopback()
    os.chdir(directory)  # where relative paths of Spark's are
    outcomes: list[Outcome] = []
    with spark_session.running(directory / "spark-session", connector=False) if any(map(needs_spark, pages)) else nullcontext() as spark:
        for number, page in enumerate(pages):
            outcomes += _outcomes(page, directory / f"{number}-{Path(page).stem}", spark)  # two pages are called README.md
    print(json.dumps([asdict(outcome) for outcome in outcomes]))
    return 0


def _outcomes(page: str, directory: Path, spark: SparkSession | None) -> list[Outcome]:
    directory.mkdir()
    os.environ["HOME"] = str(directory)
    if spark is None:
        os.chdir(directory)
    shutil.copytree(KAFKA_LOGS, directory / "kafka-logs")
    terminal = Terminal(directory)
    reader = _Reader(page, terminal, Snippets(spark, stand_alone=page in STAND_ALONE))
    try:
        with schema_registry.running(port=REGISTRY_PORT):
            reader.prepare()
            reader.read(blocks(page))
            reader.finish()
    finally:
        terminal.close()
    return reader.outcomes


class _Reader:
    def __init__(self, page: str, terminal: Terminal, python: Snippets) -> None:
        self.outcomes: list[Outcome] = []
        self._page = page
        self._terminal = terminal
        self._python = python
        self._printed = ""  # by the latest block

    def prepare(self) -> None:
        if self._page in CLUSTER_BEFORE:
            page, section = CLUSTER
            self.read(block for block in blocks(page) if block.section == section)
        elif self._page not in NOTHING_BEFORE:
            self._try(f"{self._page}:0", "barnabas up", lambda: self._terminal.run(Command(0, "barnabas up")))
            self._try(f"{self._page}:0", "topics with some orders", self._python.prepare)

    def read(self, shown: Iterable[Block]) -> None:
        for block in shown:
            if not block.is_run:
                continue
            if block.is_output:
                self._try(f"{block.page}:{block.line}", block.source, lambda: self._printed, block.source)
            elif block.language == PYTHON:
                self._printed = self._evaluate(block)
            elif block.language == SHELL:
                self._printed = self._type(block)

    def finish(self) -> None:
        self._try(f"{self._page}:0", "the end of the page", self._python.finish)
        self._try(f"{self._page}:0", "Ctrl-C, at the end of the page", self._stop)

    def _evaluate(self, block: Block) -> str:
        return self._try(f"{block.page}:{block.line}", block.source, lambda: self._python.run(block), snippets.prints(block))

    def _type(self, block: Block) -> str:
        """The first service that a block starts ends those that earlier blocks have started."""
        printed, has_started = "", False
        for command in commands(block):
            if command.starts_broker and not has_started:
                has_started = True
                self._try(f"{block.page}:{command.line}", "Ctrl-C, before the next services are started", self._stop)
            printed += self._enter(block.page, command)
        return printed

    def _enter(self, page: str, command: Command) -> str:
        place = f"{page}:{command.line}"
        if command.program in OPTIONAL_PROGRAMS and shutil.which(command.program) is None:
            self.outcomes.append(Outcome(place, command.text, 0, missing=command.program))
            return ""
        return self._try(place, command.text, lambda: self._terminal.run(command), command.prints)

    def _try(self, place: str, shown: str, act: Callable[[], str], expected: str = "") -> str:
        begun, printed, failure = time.monotonic(), "", None
        try:
            printed = act()
            absent = missing_line(printed, expected)
            if absent is not None:
                failure = f"did not print the line: {absent}\nbut:\n{printed}"
        except (CommandFailed, SnippetFailed) as error:
            failure = str(error)
        self.outcomes.append(Outcome(place, shown, round(time.monotonic() - begun, 2), failure))
        print(f"{self.outcomes[-1].seconds:7.2f} s  {place}  {'ok' if failure is None else 'FAILED'}", file=sys.stderr, flush=True)
        return printed

    def _stop(self) -> str:
        self._terminal.stop()
        return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
