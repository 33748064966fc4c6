"""A broker in a process of its own, as a user starts it: `barnabas up` on a free port, with a data directory that is thrown away.

With BARNABAS_TEST_BOOTSTRAP=host:port the tests use a running broker instead, for example an Apache Kafka to judge the tests by.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.client.admin import Admin, AlterConfigOp, ConfigResource, ConfigResourceType

ERROR = re.compile(r"^\S+ (ERROR|CRITICAL) |^Traceback ")  # a broker's log line that no well-behaved client may cause
CRASH = re.compile(r"^Traceback ")  # a line that not even clients that do wrong may cause
READY = re.compile(r"\bready\b.*?([\w.-]+|\[[0-9a-fA-F:.]+\]):(\d+)")  # the line a broker prints once clients may come
START_TIMEOUT_S = 120  # a start takes half a second; with many processes that want the CPU, 30 s were not enough
STOP_TIMEOUT_S = 60
LINES_KEPT = 200

TopicMaker = Callable[..., str]  # the fixture new_topic
Started = tuple[subprocess.Popen[str], re.Match[str]]


class NotReady(Exception):
    """The process ended or stayed silent; the message carries the last lines it printed."""


@contextmanager
def running(data: Path, options: Sequence[str] = (), bad: re.Pattern[str] = ERROR) -> Generator[str, None, None]:
    """The bootstrap address of a broker that runs as long as the block does; it must log nothing bad, and end with code 0 on SIGTERM."""
    command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--data", str(data), *options]
    with started(command, READY, START_TIMEOUT_S, bad) as (process, address):
        yield f"{address[1]}:{address[2]}"
        process.terminate()
        code = process.wait(STOP_TIMEOUT_S)
    if code != 0:
        raise AssertionError(f"barnabas up ended with code {code} on SIGTERM")


@contextmanager
def started(
    command: Sequence[str], ready: re.Pattern[str], timeout_s: float, bad: re.Pattern[str] | None = None
) -> Generator[Started, None, None]:
    """A process once it has printed a line that matches; what it prints is read to its end, so that it never blocks on it.

    Where the block ends well, a line that matches `bad` still fails it, with what was printed after that line.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
    )
    assert process.stdout is not None
    output = _Output(process.stdout, ready, bad)
    try:
        output.settled.wait(timeout_s)
        if output.match is None:
            raise NotReady(f"{' '.join(command)} was not ready within {timeout_s} s:\n{''.join(output.lines)}")
        yield process, output.match
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        output.reader.join()
        process.stdout.close()
    if output.problem:
        raise AssertionError(f"{' '.join(command)} logged an error:\n{''.join(output.problem)}")


class _Output:
    """Reads a process's lines on a thread; `settled` is set by the line waited for, or by the end."""

    def __init__(self, stream: IO[str], ready: re.Pattern[str], bad: re.Pattern[str] | None) -> None:
        self.match: re.Match[str] | None = None
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self.problem: list[str] = []  # the first bad line, and some after it
        self.settled = threading.Event()
        self.reader = threading.Thread(target=self._read, args=(stream, ready, bad), daemon=True)
        self.reader.start()

    def _read(self, stream: IO[str], ready: re.Pattern[str], bad: re.Pattern[str] | None) -> None:
        for line in stream:
            self.lines.append(line)
            if bad is not None and len(self.problem) < LINES_KEPT and (self.problem or bad.search(line)):
                self.problem.append(line)
            if self.match is None:
                self.match = ready.search(line)
                if self.match is not None:
                    self.settled.set()
        self.settled.set()


def given_bootstrap() -> str | None:
    return os.environ.get("BARNABAS_TEST_BOOTSTRAP") or None


def set_session_timeout(bootstrap: str, group: str, timeout_ms: int) -> None:
    """Of the members of a group of KIP-848's protocol, whose sessions the broker decides about."""
    resource = ConfigResource(ConfigResourceType.GROUP, group)
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.incremental_alter_configs({resource: [AlterConfigOp("consumer.session.timeout.ms", str(timeout_ms))]}).all()


def topic_maker(bootstrap: str, worker_id: str) -> TopicMaker:
    """Makes an empty topic with a name of its own: `new_topic("hint", partitions=1, **config)`, dots in config keys written as `_`.

    Records are kept forever, for their timestamps may be of any age.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    numbers = itertools.count()
    names = set(admin.list_topics(timeout=30).topics)

    def make(hint: str, partitions: int = 1, **config: str) -> str:
        name = next(name for number in numbers if (name := f"{hint}-{worker_id}-{number}") not in names)
        settings = {"retention.ms": "-1"} | {key.replace("_", "."): value for key, value in config.items()}
        made = admin.create_topics([NewTopic(name, partitions, replication_factor=1, config=settings)])
        made[name].result(timeout=30)
        return name

    return make
