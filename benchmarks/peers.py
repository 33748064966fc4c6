"""The brokers that are compared: Apache Kafka and this one, each a process of its own, started alike and asked how much memory it takes."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from benchmarks.wire import Client
from tests import kafka

PORTS: Final = range(20_000, 32_000)
_START_SECONDS_MAX = 60


class Peer:
    """A broker that runs."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], port: int, data: Path, start_seconds: float) -> None:
        self.name = name
        self.process = process
        self.port = port
        self.data = data
        self.start_seconds = start_seconds

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def memory_mb(self) -> float:
        """What it keeps in memory now, of which nothing is the page cache of its logs."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"RssAnon:\s+(\d+) kB", status)
        shared = re.search(r"RssFile:\s+(\d+) kB", status)
        assert match is not None and shared is not None
        return (int(match[1]) + int(shared[1])) / 1024

    def cpu_seconds(self) -> float:
        """Of all threads, from the scheduler's own account in nanoseconds."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def barnabas(data: Path | None = None, files_max: int | None = None) -> Iterator[Peer]:
    with _directory(data) as directory:
        port = _free_port()
        command = [sys.executable, "-m", "barnabas", "up", "--no-console", "--port", str(port), "--data", str(directory)]
        if files_max is not None:
            command = ["sh", "-c", f'ulimit -n {files_max}; exec "$@"', "sh", *command]
        yield from _running("barnabas", command, port, directory)


@contextmanager
def measured(files_max: int | None = None) -> Iterator[tuple[Peer, str]]:
    """This broker with metrics, and the address of them."""
    with _directory(None) as directory:
        port, url = _free_port(), f"http://127.0.0.1:{_free_port()}"
        command = [sys.executable, *_server(port, directory), "--override", f"metrics.listener={url}"]
        if files_max is not None:
            command = ["sh", "-c", f'ulimit -n {files_max}; exec "$@"', "sh", *command]
        for peer in _running("barnabas", command, port, directory):
            yield peer, url


@contextmanager
def without_metrics(checkout: Path | None = None) -> Iterator[Peer]:
    """A broker without metrics, of this code or of another checkout."""
    with _directory(None) as directory:
        port = _free_port()
        command = [sys.executable, *_server(port, directory)]
        if checkout is not None:
            own = checkout.resolve() / ".venv/bin/python"
            command = ["env", f"PYTHONPATH={checkout.resolve() / 'src'}", str(own if own.exists() else sys.executable), *command[1:]]
        yield from _running("barnabas", command, port, directory)


def _server(port: int, directory: Path) -> list[str]:
    """`barnabas server` listens for metrics only if it is told to; `up` does so by itself."""
    properties = directory / "server.properties"
    properties.write_text(f"""broker.id=1
listeners=PLAINTEXT://127.0.0.1:{port}
log.dirs={directory / "logs"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
""")
    return ["-m", "barnabas", "server", str(properties)]


@contextmanager
def apache_kafka() -> Iterator[Peer]:
    """Version 4.2.0 with a heap of 1 GB, one node of KRaft."""
    with _directory(None) as directory:
        port = _free_port()
        properties = directory / "server.properties"
        properties.write_text(_kafka_properties(port, _free_port(), directory / "logs"))
        java = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{kafka.prepare()}/*"]
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        format_storage = [*java, "kafka.tools.StorageTool", "format", "-c", str(properties), "-t", cluster_id]
        subprocess.run(format_storage, check=True, capture_output=True, timeout=120)
        heap = ["-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        yield from _running("Apache Kafka", [java[0], *heap, *java[1:], "kafka.Kafka", str(properties)], port, directory)


def _kafka_properties(port: int, controller_port: int, logs: Path) -> str:
    return f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={logs}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def _running(name: str, command: list[str], port: int, directory: Path) -> Iterator[Peer]:
    started = time.perf_counter()
    with open(directory / f"{name}.out", "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        _await_metadata(name, process, port, started, directory)
        peer = Peer(name, process, port, directory, time.perf_counter() - started)
        yield peer
        peer.stop()
    finally:
        process.kill()
        process.wait()


def _await_metadata(name: str, process: subprocess.Popen[bytes], port: int, started: float, directory: Path) -> None:
    """Until the first Metadata has been answered."""
    while True:
        try:
            with Client("127.0.0.1", port) as client:
                if client.metadata([]).brokers:
                    return
        except OSError:
            pass
        if process.poll() is not None or time.perf_counter() - started > _START_SECONDS_MAX:
            output = (directory / f"{name}.out").read_text(errors="replace")
            raise RuntimeError(f"{name} did not start: {output[-2000:]}")
        time.sleep(0.005)


@contextmanager
def _directory(data: Path | None) -> Iterator[Path]:
    if data is not None:
        yield data
        return
    directory = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _free_port() -> int:
    """Not one of those that the system gives to outgoing connections, which could take it before the broker does."""
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"No port from {PORTS.start} to {PORTS.stop - 1} is free")
