"""A real ZooKeeper beside a test: `barnabas zookeeper` on a free port. It can be killed, paused and revived."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.links import Links

START_TIMEOUT_S = 60
MACHINE = "zookeeper"  # its name among the links


class ZooKeeper:
    """Sessions may last from two ticks to twenty."""

    def __init__(self, directory: Path, tick_ms: int = 500, links: Links | None = None) -> None:
        self.directory = directory
        self.tick_ms = tick_ms
        self.host = "127.0.0.1" if links is None else links.address(MACHINE)
        self._inside: Sequence[str] = () if links is None else links.inside(MACHINE)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port: int = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def start(self) -> None:
        """Returns when it serves. Skips the test where there is no ZooKeeper, which in CI is a failure."""
        command = [
            *self._inside,
            sys.executable,
            "-m",
            "barnabas",
            "zookeeper",
            "--host",
            self.host,
            "--port",
            str(self.port),
            "--data",
            str(self.directory),
            "--tick-ms",
            str(self.tick_ms),
        ]
        with open(self.directory.parent / f"{self.directory.name}.out", "ab") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out)
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._ask("ruok") != b"imok":
            if self._process.poll() is not None:
                said = Path(out.name).read_text(errors="replace")
                if "was found" in said and not os.environ.get("CI"):
                    pytest.skip(said.strip())
                raise AssertionError(f"ZooKeeper ended: {said[-2000:]}")
            assert time.monotonic() < deadline, f"ZooKeeper does not serve on port {self.port}"
            time.sleep(0.05)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _ask(self, word: str) -> bytes:
        """One of its four letter words."""
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as connection:
                connection.sendall(word.encode())
                return connection.recv(100)
        except OSError:
            return b""


@contextmanager
def running(directory: Path, tick_ms: int = 500, links: Links | None = None) -> Generator[ZooKeeper, None, None]:
    server = ZooKeeper(directory, tick_ms, links)
    server.start()
    try:
        yield server
    finally:
        server.kill()
