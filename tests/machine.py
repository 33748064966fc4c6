"""A machine with several broker processes, as a user runs it with `--processes`. Parent and children can be killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.ready import is_readable

PARTITIONS = 6
RECORDS = 60  # of one writing, ten for each partition
DEADLINE_S = 120  # for what takes a second on a machine that is not busy
_READY = re.compile(r"ready listeners=\S*?://([^,]*?):(\d+)\S* node\.id=([\d,]+) cluster\.id=(\S+) pid=(\d+)\n")
_CHILD = "barnabas.tools.processes.child"


class Machine:
    """`command` follows `barnabas`."""

    def __init__(self, directory: Path, *command: str) -> None:
        self.log = directory / "stderr.txt"
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def start(self, *options: str) -> None:
        with self.log.open("a") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "barnabas", *self._command, *options], stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline() if is_readable(self._process.stdout, DEADLINE_S) else ""
        ready = _READY.fullmatch(line)
        assert ready is not None, f"{line!r}\n{self.log.read_text()}"
        self.bootstrap = f"{ready[1]}:{ready[2]}"
        self.nodes = [int(node) for node in ready[3].split(",")]
        self.cluster_id = ready[4]

    def children(self) -> dict[int, int]:
        """The process ids of the children by node id."""
        assert self._process is not None
        found = {}
        for entry in os.listdir("/proc"):
            if entry.isdecimal():
                words = _command_line(int(entry))
                if _CHILD in words and _parent(int(entry)) == self._process.pid:
                    found[int(words[-1])] = int(entry)
        return found

    def kill_child(self, node: int) -> int:
        """Returns the process id that it had."""
        process = self.children()[node]
        os.kill(process, signal.SIGKILL)
        return process

    def kill_parent(self) -> list[int]:
        """Returns the process ids of its children, which it leaves behind."""
        assert self._process is not None
        children = list(self.children().values())
        self._process.kill()
        self._close()
        return children

    def kill_all(self) -> None:
        """As the loss of power does, without the loss of what is in the page cache."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)  # so that it starts none again
        children = list(self.children().values())
        for child in children:
            os.kill(child, signal.SIGKILL)
        self._process.kill()
        self._close()
        until(lambda: not any(map(is_running, children)), "the children end, and release their locks")

    def stop(self) -> int:
        """Its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._close()

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill_all()

    def _close(self) -> int:
        assert self._process is not None and self._process.stdout is not None
        code = self._process.wait(DEADLINE_S)
        self._process.stdout.close()
        return code


class Records:
    """What was written and acknowledged, numbered."""

    def __init__(self, topic: str = "t") -> None:
        self.topic = topic
        self.acknowledged: list[int] = []

    def create(self, machine: Machine) -> None:
        admin = AdminClient({"bootstrap.servers": machine.bootstrap})
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)], request_timeout=30)[self.topic].result(60)

    def producer(self, machine: Machine) -> Producer:
        return Producer(
            {"bootstrap.servers": machine.bootstrap, "enable.idempotence": True, "delivery.timeout.ms": DEADLINE_S * 1000, "log_level": 0}
        )

    def write(self, producer: Producer, count: int = RECORDS) -> None:
        """Returns when all are acknowledged, by the leaders of all partitions."""

        def delivered(error: KafkaError | None, message: object) -> None:
            assert error is None, error

        first = len(self.acknowledged)
        for number in range(first, first + count):
            producer.produce(self.topic, str(number).encode(), partition=number % PARTITIONS, on_delivery=delivered)
        assert producer.flush(DEADLINE_S) == 0
        self.acknowledged += range(first, first + count)

    def check(self, machine: Machine) -> None:
        """Each is there once, and in the order of its partition."""
        consumer = Consumer({"bootstrap.servers": machine.bootstrap, "group.id": "none", "enable.auto.commit": False, "log_level": 0})
        read: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
        consumer.assign([TopicPartition(self.topic, number, 0) for number in range(PARTITIONS)])

        def has_all() -> bool:
            for message in consumer.consume(500, 0.1):
                if message.error() is None:
                    read[message.partition() or 0].append(int(message.value() or b""))
            return sum(map(len, read.values())) >= len(self.acknowledged)

        until(has_all, "all records")
        consumer.close()
        assert read == {number: self.acknowledged[number::PARTITIONS] for number in range(PARTITIONS)}


def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def is_running(process: int) -> bool:
    """False also for a process that nobody has reaped."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _command_line(process: int) -> Sequence[str]:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().rstrip("\0").split("\0")
    except OSError:
        return ()


def _parent(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
