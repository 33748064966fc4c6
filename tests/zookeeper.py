"""A real ZooKeeper beside a test: `barnabas zookeeper` on a free port. It can be killed, paused and revived."""

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

import pytest

from tests.links import Links

START_TIMEOUT_S = 60
MACHINE = "zookeeper"  # its name among the links


class ZooKeeper:
    """Sessions may last from two ticks to twenty. `jvm_flags` are passed to Java."""

    def __init__(self, directory: Path, tick_ms: int = 500, links: Links | None = None, jvm_flags: str = "") -> None:
        self.directory = directory
        self.tick_ms = tick_ms
        self._environment = {**os.environ, "JAVA_TOOL_OPTIONS": jvm_flags} if jvm_flags else None
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
            self._process = subprocess.Popen(command, stdout=out, stderr=out, env=self._environment)
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
def running(directory: Path, tick_ms: int = 500, links: Links | None = None, jvm_flags: str = "") -> Generator[ZooKeeper, None, None]:
    server = ZooKeeper(directory, tick_ms, links, jvm_flags)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def sasl_flags(jaas_file: Path, users: Mapping[str, str]) -> str:
    """The flags of a server that authenticates these users by DIGEST-MD5. A client without a user is served, too."""
    names = "".join(f' user_{name}="{password}"' for name, password in users.items())
    jaas_file.write_text(f"Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required{names}; }};\n")
    provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    return f"-Djava.security.auth.login.config={jaas_file} -Dzookeeper.authProvider.sasl={provider}"
