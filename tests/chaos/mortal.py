"""A broker that is killed and started again, on the same port and with the same directory, by a test or by a thread beside it.

BARNABAS_CHAOS_BROKER=kafka makes it an Apache Kafka, to judge the tests by.
"""

from __future__ import annotations

import os
import random
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests import broker, kafka, kafka_server

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
}
START_TIMEOUT_S = 90


def seconds() -> float:
    """How long a test may go on killing: short in `make test`, long in `make chaos`."""
    return float(os.environ.get("BARNABAS_CHAOS_SECONDS", "15"))


def seed() -> int:
    return int(os.environ.get("BARNABAS_CHAOS_SEED", "1"))


class MortalBroker:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port, self._controller_port = _free_ports()
        self._life = ExitStack()
        self._process: subprocess.Popen[str] | None = None
        self.kills = 0

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        command, ready, bad = self._kafka() if _is_kafka() else self._barnabas()
        self._process, _ = self._life.enter_context(broker.started(command, ready, START_TIMEOUT_S, bad))

    def kill(self) -> None:
        """SIGKILL; raises where it had logged a crash before."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the broker had ended by itself with code {self._process.returncode}")
        self._process.kill()
        self.kills += 1
        self._life.close()

    def kill_and_start(self) -> None:
        self.kill()
        self.start()

    def close(self) -> None:
        self._life.close()

    def _barnabas(self) -> tuple[list[str], re.Pattern[str], re.Pattern[str] | None]:
        options = [f"--override={key}={value}" for key, value in SETTINGS.items()]
        where = ["--host", "127.0.0.1", "--port", str(self._port), "--data", str(self._directory)]
        return [sys.executable, "-m", "barnabas", "up", "--no-console", *where, *options], broker.READY, broker.CRASH

    def _kafka(self) -> tuple[list[str], re.Pattern[str], re.Pattern[str] | None]:
        command = kafka_server.command(self._directory, 1, self._port, self._controller_port, SETTINGS)
        return command, kafka_server.STARTED, None


@contextmanager
def mortal(directory: Path) -> Generator[MortalBroker, None, None]:
    one = MortalBroker(directory)
    try:
        one.start()
        yield one
    finally:
        one.close()


@contextmanager
def killing(one: MortalBroker, shortest_s: float, longest_s: float) -> Generator[threading.Event, None, None]:
    """Kills and starts it again and again, until the event is set or the block ends; whatever goes wrong is raised at the end."""
    enough = threading.Event()
    chance = random.Random(seed())
    problems: list[BaseException] = []

    def work() -> None:
        try:
            while not enough.wait(chance.uniform(shortest_s, longest_s)):
                one.kill_and_start()
        except (AssertionError, OSError, broker.NotReady) as problem:
            problems.append(problem)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield enough
    finally:
        enough.set()
        thread.join()
    if problems:
        raise problems[0]


def _is_kafka() -> bool:
    return os.environ.get("BARNABAS_CHAOS_BROKER") == "kafka"


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        return first.getsockname()[1], second.getsockname()[1]


def java_jars() -> Path:
    return kafka.available(kafka.prepare)
