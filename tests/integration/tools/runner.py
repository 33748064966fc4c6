"""Runs the commands against two brokers, in one JVM for all of them, and takes out of what they print what must differ."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests import kafka
from tests.integration.tools.commands import Command
from tests.ready import is_readable

PROGRAM = Path(__file__).parent / "java" / "Tools.java"
ANSWER_TIMEOUT_S = 60
HUNG = "exit code 124\n"  # the JVM gave up on the tool
HUNG_MAX = 3
SILENT = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"


@dataclass(frozen=True)
class Target:
    """A broker to run tools against."""

    bootstrap: str
    broker_id: int
    directory: Path


def broker_id(bootstrap: str) -> int:
    return min(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).brokers)


def run_all(commands: Sequence[Command], targets: Sequence[Target]) -> dict[str, list[str]]:
    """For each command what it printed against each target, exit code first, made comparable."""
    with tools() as jvm:
        return _run_all(jvm, commands, targets)


@contextmanager
def tools() -> Generator[subprocess.Popen[str], None, None]:
    """A JVM that runs one tool after the other."""
    jars = kafka.available(kafka.prepare)
    launch = kafka.source_command(jars, PROGRAM)
    launch.insert(1, SILENT)
    launch.remove(kafka.QUIET)
    with subprocess.Popen(
        launch, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", bufsize=1
    ) as jvm:
        try:
            yield jvm
        finally:
            jvm.kill()


def _run_all(jvm: subprocess.Popen[str], commands: Sequence[Command], targets: Sequence[Target]) -> dict[str, list[str]]:
    printed: dict[str, list[str]] = {}
    hung = 0
    for command in commands:
        if hung >= HUNG_MAX:
            printed[command.name] = [f"not run, since {hung} tools before it hung", "not run"]
            continue
        printed[command.name] = [run_one(jvm, command, target) for target in targets]
        hung += sum(text.startswith(HUNG) for text in printed[command.name])
    return printed


def run_one(jvm: subprocess.Popen[str], command: Command, target: Target) -> str:
    """What a tool printed, exit code first, made comparable."""
    assert jvm.stdin is not None and jvm.stdout is not None
    (target.directory / "file").write_text(command.file)
    places = {"bootstrap": target.bootstrap, "broker": target.broker_id, "directory": target.directory}
    arguments = [word.format(**places) for word in command.arguments]
    if command.own_process:
        done = kafka.run(command.main_class, arguments)
        return f"exit code {done.code}\n{comparable(done.out, target)}"
    stdin = "=" + base64.b64encode(command.stdin.encode()).decode()
    jvm.stdin.write("\t".join([command.main_class, stdin, *arguments]) + "\n")
    if not is_readable(jvm.stdout, ANSWER_TIMEOUT_S):
        raise TimeoutError(f"{command.name} did not end within {ANSWER_TIMEOUT_S} s")
    code, _, printed = jvm.stdout.readline().rstrip("\n").partition("\t")
    text = comparable(base64.b64decode(printed).decode(), target)
    return f"exit code {code}\n" + ("\n".join(sorted(text.split("\n"))) if command.any_order else text)


def comparable(text: str, target: Target) -> str:
    """The text with addresses, ids, times and rates replaced by words, and without the frames of stack traces."""
    text = text.replace(target.bootstrap, "BOOTSTRAP").replace(str(target.directory), "DIRECTORY")
    for pattern, word in REPLACEMENTS:
        text = pattern.sub(word, text)
    return text


REPLACEMENTS = [
    (re.compile(r"(SCRAM-SHA-512=iterations=\d+), (SCRAM-SHA-256=iterations=\d+)"), r"\2, \1"),  # Kafka has them in the order of a hash map
    (re.compile(r"^(\tat |\t\.\.\. \d+ more).*\n", re.MULTILINE), ""),
    (re.compile(r"TopicId: [\w-]{22}"), "TopicId: ID"),
    (re.compile(r"\b(adminclient|producer|consumer|perf-producer-client|console-\w+)-\d+"), r"\1-N"),
    (re.compile(r'"logDir":"[^"]*"'), '"logDir":"DIRECTORY"'),
    (re.compile(r'"log_dirs":\["DIRECTORY/\w+"\]'), '"log_dirs":["DIRECTORY"]'),
    (re.compile(r'"timestamp":\d+'), '"timestamp":TIME'),
    (re.compile(r'"avg_throughput":[\d.E]+'), '"avg_throughput":RATE'),
    # producer-perf-test: how often it reports on its way depends on the speed; the last line stays, without its figures.
    (re.compile(r"^\d+ records sent.*max latency\.\n(?=\d+ records sent)", re.MULTILINE), ""),
    (re.compile(r"(?<=[ (])[\d.]+(?= (records/sec|MB/sec|ms))"), "N"),
]
