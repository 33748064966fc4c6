"""The broker that is attacked: a process of its own, as a user starts it; its log is in a file, its memory and descriptors in sight."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest
from barnabas.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.slices import Records
from barnabas.uuid import Uuid
from benchmarks.wire import Client
from tests.broker import START_TIMEOUT_S, started
from tests.fuzz.batches import plain
from tests.fuzz.values import STABLE

HOST = "127.0.0.1"
READY = re.compile(r"^ready listeners=PLAINTEXT://\S+?:(\d+),SASL://\S+?:(\d+)")
SASL_USER = "fuzz"
SASL_PASSWORD = "fuzz-secret"
STOP_TIMEOUT_S = 30
# What nobody may cause from outside: anything with a traceback, and errors other than those that Kafka logs as errors too.
UNEXPECTED = re.compile(
    r" CRITICAL | exception=|Traceback|never retrieved|UNKNOWN_SERVER_ERROR"
    r"| ERROR +\S+ (?!Error processing (?:append operation|fetch with max size -))"
)
STABLE_CONFIGS = {
    "fuzz-plain": {},
    "fuzz-compact": {"cleanup.policy": "compact"},
    "fuzz-old": {"segment.bytes": "1048576", "retention.bytes": "4194304"},
    "fuzz-timed": {"message.timestamp.type": "LogAppendTime", "compression.type": "gzip"},
}
PARTITIONS = 3
FILES_AT_REST = 100  # what a broker with these few topics needs
SETTINGS = (
    "log.segment.delete.delay.ms=1000",  # the files of a deleted topic stay open so long, a minute by default
    "log.cleaner.dedupe.buffer.size=4194304",  # the first compaction takes this for good, 128 MB by default: it would hide what leaks
    f"listeners=PLAINTEXT://{HOST}:0,SASL://{HOST}:0",
    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name=PLAINTEXT",
    "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
    f"listener.name.sasl.barnabas.sasl.plain.users={SASL_USER}:{SASL_PASSWORD}",
    "connection.failed.authentication.delay.ms=0",  # the fuzzer waits until a refused connection is closed
)
RECORDS = 50
PREPARE_TRIES = 10
LEADER_TIMEOUT_S = 5


class Target:
    """`sasl_port` is that of the listener at which clients must log in, as SASL_USER."""

    def __init__(self, process: subprocess.Popen[str], port: int, sasl_port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.sasl_port = sasl_port
        self.log = log
        self._log_read = 0

    def client(self, timeout: float = 30) -> Client:
        return Client(HOST, self.port, timeout)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def memory_mb(self) -> float:
        return self._status("VmRSS") / 1024

    def peak_memory_mb(self) -> float:
        return self._status("VmHWM") / 1024

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def connections(self) -> int:
        """How many sockets it has open, its listening one among them."""
        directory = f"/proc/{self.process.pid}/fd"
        count = 0
        for name in os.listdir(directory):
            try:
                count += os.readlink(f"{directory}/{name}").startswith("socket:")
            except OSError:
                pass
        return count

    def complaints(self) -> list[str]:
        """The lines of its log, since this was last asked, that no peer may be the cause of."""
        with self.log.open(encoding="utf-8", errors="replace") as lines:
            lines.seek(self._log_read)
            unexpected = [line for line in lines if UNEXPECTED.search(line)]
            self._log_read = lines.tell()
        return unexpected

    def await_connections(self, most: int, timeout_s: float = 30) -> int:
        """Waits until it has noticed who is gone."""
        until = time.monotonic() + timeout_s
        while (connections := self.connections()) > most and time.monotonic() < until:
            time.sleep(0.05)
        return connections

    def await_files(self, most: int, timeout_s: float = 30) -> int:
        """Waits until it has closed what it deletes in its own time."""
        until = time.monotonic() + timeout_s
        while (open_files := self.open_files()) > most and time.monotonic() < until:
            time.sleep(0.05)
        return open_files

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
        raise AssertionError(f"{name} is not in /proc/{self.process.pid}/status")


@contextmanager
def running(directory: Path, overrides: tuple[str, ...] = ()) -> Generator[Target, None, None]:
    """A broker for as long as the block lasts; it must then still end cleanly on SIGTERM."""
    log = directory / "broker.log"
    options = [f"--override={setting}" for setting in (*SETTINGS, *overrides)]
    # Its log goes to a file by the shell, which then becomes the broker: what it prints itself is one line.
    command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--data", str(directory / "data"), *options]
    shell = ["/bin/sh", "-c", 'log=$1; shift; exec "$@" 2>>"$log"', "broker", str(log), *command]
    with started(shell, READY, START_TIMEOUT_S) as (process, address):
        target = Target(process, int(address[1]), int(address[2]), log)
        yield target
        assert target.is_alive, f"The broker has died with code {process.returncode}: {log.read_text()[-3000:]}"
        process.terminate()
        code = process.wait(STOP_TIMEOUT_S)
    assert code == 0, f"The broker ended with code {code} on SIGTERM: {log.read_text()[-3000:]}"


def prepare_topics(target: Target, keep: str) -> dict[str, Uuid]:
    """Deletes all topics but `keep`, makes those that the fuzzer counts on, with some data, and tells their ids."""
    for _ in range(PREPARE_TRIES):
        try:
            return _prepare_topics(target, keep)
        except RuntimeError as error:  # a request of the storm that came late has created one of them
            last = error
    raise last


def _prepare_topics(target: Target, keep: str) -> dict[str, Uuid]:
    with target.client(60) as client:
        names = [topic.name for topic in client.metadata(None).topics if topic.name is not None and topic.name != keep]
        if names:
            client.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=60_000), 5)
        for name in STABLE:
            client.create_topics([name], PARTITIONS, STABLE_CONFIGS[name])
            for partition in range(PARTITIONS):
                _produce(client, name, partition)
        return {topic.name: topic.topic_id for topic in client.metadata(STABLE).topics if topic.name is not None}


def _produce(client: Client, topic: str, partition: int) -> None:
    """Tries again as long as the leader does not know yet that it is: that may come a moment after the metadata."""
    data = PartitionProduceData(partition, Records(plain(RECORDS, int(time.time() * 1000))))
    request = ProduceRequest(None, -1, 30_000, [TopicProduceData(topic, partition_data=[data])])
    until = time.monotonic() + LEADER_TIMEOUT_S
    while (error := client.ask(request, 9).responses[0].partition_responses[0].error_code) and time.monotonic() < until:
        pass
    if error:
        raise RuntimeError(f"Producing to {topic}-{partition}: error {error}")
