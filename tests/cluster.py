"""Three brokers in processes of their own on one ZooKeeper, as a user runs them: `barnabas server`. They can be killed, paused and started
again, each with its port and its directory, and be put each on a machine of its own between which links can be cut."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.links import Links

SESSION_TIMEOUT_MS = 4_000  # longer than a busy machine lets a process wait for its turn
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 60
LINKED_PORT = 9092

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
    READY = "ready listeners="  # what it says once clients may come
    SECURITY = "PLAINTEXT"

    def __init__(self, number: int, directory: Path, zookeeper: str, settings: Mapping[str, str], links: Links | None = None) -> None:
        self.id = number
        self.data = directory / f"broker-{number}"
        self.log = directory / f"broker-{number}.log"
        self.host = "127.0.0.1" if links is None else links.address(machine(number))
        self.port = free_port() if links is None else LINKED_PORT
        self.environment: dict[str, str] = {}  # beside this process's
        self._inside: Sequence[str] = () if links is None else links.inside(machine(number))
        self._properties = {
            **_SETTINGS,
            "broker.id": str(number),
            "log.dirs": str(self.data),
            "listeners": f"{self.SECURITY}://{self.host}:{self.port}",
            "zookeeper.connect": zookeeper,
            **settings,
        }
        self._file = directory / f"server-{number}.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self.change({})

    def setting(self, name: str) -> str:
        return self._properties[name]

    def change(self, settings: Mapping[str, str]) -> None:
        """For the next start."""
        self._properties.update(settings)
        self._file.write_text("".join(f"{name}={value}\n" for name, value in self._properties.items()))

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """With which it ended."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        self._said_before = self.log.stat().st_size if self.log.exists() else 0
        self._starts = self._ready_count()
        with open(self.log, "ab") as out:
            self._process = subprocess.Popen(
                [*self._inside, *self.command(self._file)], stdout=out, stderr=out, env={**os.environ, **self.environment}
            )

    def command(self, properties: Path) -> list[str]:
        return [sys.executable, "-m", "barnabas", "server", str(properties)]

    def wait_ready(self) -> None:
        assert self.becomes_ready(), f"broker {self.id} ended:\n{self.said()[-3000:]}"

    def becomes_ready(self) -> bool:
        """Waits until it has said so since it was started, or until it has ended."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._ready_count() <= self._starts:
            if not self.is_running:
                return False
            assert time.monotonic() < deadline, f"broker {self.id} is not ready:\n{self.said()[-3000:]}"
            time.sleep(0.02)
        return True

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def stop(self) -> int:
        """Cleanly; its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Until it has ended by itself; its exit code."""
        assert self._process is not None
        return self._process.wait(timeout_s)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _ready_count(self) -> int:
        """How often it has said so, not counting what it said before this start: its log may have grown long."""
        if not self.log.exists():
            return 0
        with open(self.log, "rb") as said:
            said.seek(self._said_before)
            return said.read().count(self.READY.encode())


class Cluster:
    def __init__(
        self,
        directory: Path,
        zookeeper: str,
        settings: Mapping[str, str] | None = None,
        brokers: int = 3,
        links: Links | None = None,
    ) -> None:
        self.brokers = {number: BrokerProcess(number, directory, zookeeper, settings or {}, links) for number in range(1, brokers + 1)}

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


def machine(number: int) -> str:
    """The name among the links of the machine of a broker."""
    return f"broker-{number}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    directory: Path, zookeeper: str, settings: Mapping[str, str] | None = None, links: Links | None = None
) -> Generator[Cluster, None, None]:
    cluster = Cluster(directory, zookeeper, settings, links=links)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
