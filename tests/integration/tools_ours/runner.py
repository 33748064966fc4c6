"""Runs each command with Apache Kafka's tool and with ours against the same broker, and makes what they print comparable.

Kafka's tools run in one JVM, ours in this process. A stack trace of Kafka's is reduced to what it tells: ours never print one.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

from barnabas import cli
from tests import kafka
from tests.integration.tools import runner as java_runner
from tests.integration.tools.runner import Target
from tests.integration.tools_ours.commands import JAVA, Command
from tests.ready import is_readable

ANSWER_TIMEOUT_S = 60
# Options that Kafka has not, or has no longer.
OURS_ALONE = {"json", "tail", "broker-list", "whitelist", "zookeeper", "disable-rack-aware", "force"}
OURS_ALONE |= {"threads", "num-fetch-threads", "once"}


def run_all(
    commands: Sequence[Command],
    targets: dict[str, Target],
    only: str = "",
    *,
    prepare: Callable[[], Path] = kafka.prepare,
    classes: Mapping[str, str] = JAVA,
) -> dict[str, list[str]]:
    """For each broker and command what Kafka's tool printed and what ours did, exit code first."""
    printed: dict[str, list[str]] = {}
    with java(kafka.available(prepare)) as jvm:
        for command in commands:
            for broker in command.brokers:
                if broker in targets and only in f"{broker}: {command.name}":
                    target = targets[broker]
                    results = [
                        run_java(jvm, classes[command.tool], placed(command, target, "jav"), target),
                        run_ours(placed(_as_ours(command), target, "our"), target),
                    ]
                    printed[f"{broker}: {command.name}"] = [comparable(text, command, target) for text in results]
    return printed


@contextmanager
def java(jars: Path) -> Generator[subprocess.Popen[str], None, None]:
    """A JVM with these jars that runs one tool after the other."""
    launch = kafka.source_command(jars, java_runner.PROGRAM)
    launch.insert(1, java_runner.SILENT)
    launch.remove(kafka.QUIET)
    with subprocess.Popen(
        launch, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", bufsize=1
    ) as jvm:
        try:
            yield jvm
        finally:
            jvm.kill()


def _as_ours(command: Command) -> Command:
    """With the arguments that only ours understands, the address in front as ever."""
    return replace(command, arguments=(*command.arguments[:2], *command.ours.split())) if command.ours else command


def placed(command: Command, target: Target, who: str) -> Command:
    places = {"bootstrap": target.bootstrap, "broker": target.broker_id, "directory": target.directory, "who": who}
    return replace(command, arguments=tuple(word.format(**places) for word in command.arguments), file=command.file.replace("WHO", who))


def run_java(jvm: subprocess.Popen[str], main_class: str, command: Command, target: Target) -> str:
    assert jvm.stdin is not None and jvm.stdout is not None
    (target.directory / "file").write_text(command.file)
    if command.ends_jvm:
        done = kafka.run(main_class, command.arguments)
        return f"exit code {done.code}\n{done.err if done.code else done.out}"  # on stderr it logs, too
    stdin = "=" + base64.b64encode(command.stdin.encode()).decode()
    jvm.stdin.write("\t".join([main_class, stdin, *command.arguments]) + "\n")
    if not is_readable(jvm.stdout, ANSWER_TIMEOUT_S):
        raise TimeoutError(f"{command.name} did not end within {ANSWER_TIMEOUT_S} s")
    code, _, printed = jvm.stdout.readline().rstrip("\n").partition("\t")
    return f"exit code {code}\n{base64.b64decode(printed).decode()}"


def run_ours(command: Command, target: Target) -> str:
    (target.directory / "file").write_text(command.file)
    printed = io.BytesIO()
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(command.stdin.encode()))
    stream = io.TextIOWrapper(printed, encoding="utf-8", errors="surrogateescape", write_through=True)
    logging.disable(logging.CRITICAL)  # Kafka's tools do not log here either
    try:
        with redirect_stdout(stream), redirect_stderr(stream):
            code = cli.main([f"{cli.KAFKA_PREFIX}{command.tool}", *command.arguments])
    except SystemExit as ended:  # argparse, once it has shown its help
        code = int(ended.code or 0)
    finally:
        logging.disable(logging.NOTSET)
        sys.stdin = stdin
    return f"exit code {code}\n{printed.getvalue().decode('utf-8', 'replace')}"


def comparable(text: str, command: Command, target: Target) -> str:
    """The text without addresses, ids, times and rates, with its help reduced to the names of the options."""
    text = text.replace(target.bootstrap, "BOOTSTRAP").replace(str(target.directory), "DIRECTORY")
    text = re.sub(r"\b(u-)?(jav|our)(?=[-_.\s:'\"`,]|$)", r"\1WHO", text)
    text = _without_usage(_without_help(_without_traces(text)))
    for pattern, word in REPLACEMENTS:
        text = pattern.sub(word, text)
    text = re.sub(r"\[[\w-]+\](, \[[\w-]+\])+", lambda match: ", ".join(sorted(match[0].split(", "))), text)  # sets, in any order
    lines = text.rstrip("\n").split("\n")
    if command.tool.startswith("verifiable-"):  # the order of fields is the JVM's
        lines = [json.dumps(json.loads(line), sort_keys=True) if line.startswith("{") else line for line in lines]
    if command.distinct:
        return "\n".join([lines[0], *sorted({re.sub(r"(?<=: )\d+", "N", line) for line in lines[1:]})])
    return "\n".join([lines[0], *sorted(lines[1:])] if command.any_order else lines)


def _without_traces(text: str) -> str:
    """A trace says what caused it last; where the line before it says as much, it says nothing."""
    lines = text.split("\n")
    kept: list[str] = []
    index = 0
    while index < len(lines):
        if not (index + 1 < len(lines) and lines[index + 1].startswith("\tat ")):
            # Kafka's own exceptions have no frames.
            if not (lines[index].startswith("org.apache.kafka.common.errors.") and kept and _message(lines[index]) in kept[-1]):
                kept.append(lines[index])
            index += 1
            continue
        header = cause = lines[index]
        index += 1
        while index < len(lines) and lines[index].startswith(("\tat ", "\t...", "Caused by: ", "\tSuppressed", "\t\t")):
            if lines[index].startswith("Caused by: "):
                cause = lines[index]
            index += 1
        last_line = next((line for line in reversed(kept) if line.strip()), "")
        if last_line and (header.endswith(last_line) or _message(header) in last_line):
            if cause != header and _message(cause.removeprefix("Caused by: ")) not in last_line:
                kept.append(cause)
            if index < len(lines) and not lines[index]:
                index += 1
        else:
            kept.append(cause.removeprefix("Caused by: "))
    return "\n".join(kept)


def _message(header: str) -> str:
    return header.partition(": ")[2] or header


def _without_help(text: str) -> str:
    """The table of options becomes the list of their names."""
    match = re.search(r"^Option( \(\* = required\))? +Description *\n", text, re.MULTILINE)
    if match is None:
        return text
    names = set(re.findall(r"^(?:\* )?--([a-z][\w.-]*)", text[match.end() :], re.MULTILINE)) - OURS_ALONE
    return text[: match.start()] + f"OPTIONS {sorted(names)}\n"


def _without_usage(text: str) -> str:
    """argparse's usage has its own line breaks; its errors are compared, joined to one line."""
    match = re.search(r"^[\w.-]+: +error: (?:.|\n)*", text, re.MULTILINE)
    if match is None:
        return text
    return re.sub(r"usage: (?:.|\n)*", "", text[: match.start()]) + re.sub("-- (?=[a-z])", "--", " ".join(match[0].split()))


REPLACEMENTS = [
    # Metrics by name alone, and without those that say of which build of Java a client is.
    (re.compile(r"^Metric Name +Value$", re.MULTILINE), "METRICS"),
    (re.compile(r"^(app-info:commit-id|producer-metrics:txn-prepare-time-ns-total):.*\n", re.MULTILINE), ""),
    (re.compile(r"^([a-z-]+:[\w.-]+):\{.*$", re.MULTILINE), r"\1"),
    # Kafka's older tool names here those that it has just elected.
    (re.compile(r"^(Preferred replica already elected for partitions).*", re.MULTILINE), r"\1"),
    (re.compile(r"^(kafka\.admin|kafka\.common|com\.fasterxml\.jackson\.databind)\.\w+Exception: ", re.MULTILINE), ""),
    (re.compile(r"duplicate partitions: \[?([\w-]+)\]?$", re.MULTILINE), r"duplicate partitions: \1"),
    (re.compile(r"\bjoptsimple\.\w+Exception: "), ""),
    (re.compile(r"^Caused by: java\.lang\.NumberFormatException: .*\n?", re.MULTILINE), ""),
    (re.compile(r"^Caused by: Value \[.*\n?", re.MULTILINE), ""),
    (re.compile(r"Epoch: \d+$", re.MULTILINE), "Epoch: N"),  # of the features, which counts all changes of the metadata
    (re.compile(r"\b\d{13} +\t\d+ +\t"), "TIME\tDURATION\t"),  # of a transaction
    (re.compile(r"\b(Call: |callName=)\w+"), r"\1NAME"),  # the names of the clients' own steps, Java's and Python's
    (re.compile(r"; the last connection error: .*?(?=\. Enable debug|$)", re.MULTILINE), ""),  # which Java's client only logs
    (
        re.compile(r"(Invalid url in bootstrap.servers: \S+): (?:the port is missing, )?write \S+"),
        r"\1",
    ),  # Java gives no reason
    (re.compile(r"\(api=METADATA\)"), ""),
    (re.compile(r" \(Commit:\w+\)"), ""),
    (re.compile(r"(Valid types are: )Consumer, Classic"), r"\1Classic, Consumer"),
    # Where a broker sends an empty message, Java's client shows nothing and ours what the error means.
    (re.compile(r"(UnknownTopicOrPartitionException: )This server does not host this topic-partition\."), r"\1"),
    (re.compile(r"TopicId: [\w-]{22}"), "TopicId: ID"),
    (re.compile(r"\b(adminclient|producer|consumer|perf-producer-client|console-\w+)-\d+"), r"\1-N"),
    (re.compile(r'"logDir":"[^"]*"'), '"logDir":"DIRECTORY"'),
    (re.compile(r'"timestamp":\d+'), '"timestamp":0'),
    (re.compile(r'"avg_throughput":[\d.E]+'), '"avg_throughput":0'),
    (re.compile(r"^\d+ records sent.*max latency\.\n(?=\d+ records sent)", re.MULTILINE), ""),
    (re.compile(r"(?<=[ (])[\d.]+(?= (records/sec|MB/sec|ms))"), "N"),
    # consumer-perf-test and e2e-latency: all figures but the number of records
    (re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d+, .*$", re.MULTILINE), "FIGURES"),
    (re.compile(r"^\d+\t[\d.E-]+$", re.MULTILINE), "LATENCY"),
    (re.compile(r"(Avg latency: )[\d.]+"), r"\1N"),
    (re.compile(r"(50th|99th|99\.9th) = \d+"), r"\1 = N"),
]
