"""Three brokers in processes of their own on one ZooKeeper, as a user runs them: `barnabas server`. They can be killed, paused and started
again, each with its port and its directory."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

SESSION_TIMEOUT_MS = 4_000  # longer than a busy machine lets a process wait for its turn
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60

_SETTINGS = {
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "zookeeper.connection.timeout.ms": "20000",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "default.replication.factor": "3",
    "replica.lag.time.max.ms": "5000",
    "replica.fetch.wait.max.ms": "300",
    "replica.fetch.backoff.ms": "200",
    "controlled.shutdown.retry.backoff.ms": "500",
}


class BrokerProcess:
    def __init__(self, number: int, directory: Path, zookeeper: str, settings: Mapping[str, str]) -> None:
        self.id = number
        self.data = directory / f"broker-{number}"
        self.log = directory / f"broker-{number}.log"
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port: int = probe.getsockname()[1]
        properties = {
            **_SETTINGS,
            "broker.id": str(number),
            "log.dirs": str(self.data),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "zookeeper.connect": zookeeper,
            **settings,
        }
        self._file = directory / f"server-{number}.properties"
        self._file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with open(self.log, "ab") as out:
            self._process = subprocess.Popen([sys.executable, "-m", "barnabas", "server", str(self._file)], stdout=out, stderr=out)
        self._starts = self.said().count("ready listeners=") if self.log.exists() else 0

    def wait_ready(self) -> None:
        """Until it has said so, once more than it had when it was started."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._ready_count() <= self._starts:
            assert self.is_running, f"broker {self.id} ended:\n{self.said()[-3000:]}"
            assert time.monotonic() < deadline, f"broker {self.id} is not ready:\n{self.said()[-3000:]}"
            time.sleep(0.02)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def stop(self) -> int:
        """Cleanly; its exit code."""
        self.signal(signal.SIGTERM)
        assert self._process is not None
        return self._process.wait(STOP_TIMEOUT_S)

    def signal(self, number: int) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _ready_count(self) -> int:
        return self.said().count("ready listeners=")


class Cluster:
    def __init__(self, directory: Path, zookeeper: str, settings: Mapping[str, str] | None = None, brokers: int = 3) -> None:
        self.brokers = {number: BrokerProcess(number, directory, zookeeper, settings or {}) for number in range(1, brokers + 1)}

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def start(self) -> None:
        for broker in self.brokers.values():
            broker.start()
        for broker in self.brokers.values():
            broker.wait_ready()

    def end(self) -> None:
        for broker in self.brokers.values():
            if broker.is_running:
                broker.kill()

    def tracebacks(self) -> list[str]:
        """What no broker may ever print."""
        return [
            f"broker {broker.id}: {broker.said().partition('Traceback')[2][:2000]}"
            for broker in self.brokers.values()
            if "Traceback" in broker.said()
        ]


@contextmanager
def running(directory: Path, zookeeper: str, settings: Mapping[str, str] | None = None) -> Generator[Cluster, None, None]:
    cluster = Cluster(directory, zookeeper, settings)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
