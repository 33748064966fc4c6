"""The console beside a broker: `barnabas up` starts it, watches it, and takes it along when it ends, however that happens."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from barnabas.tools.command_line.exit_codes import ExitCode
from tests.ready import is_readable

DEADLINE_S: Final = 60

pytestmark = pytest.mark.linux  # the children of a process are looked up in /proc


@dataclass
class Up:
    """A running `barnabas up`."""

    process: subprocess.Popen[str]
    log: Path

    @property
    def url(self) -> str:
        match = re.search(r"console at (http://\S+?)[,\n]", self.log.read_text())
        assert match is not None, self.log.read_text()
        return match[1]

    def children(self) -> list[int]:
        tasks = Path(f"/proc/{self.process.pid}/task")
        return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Up]:
    log = folder / "stderr.txt"
    command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--host", "127.0.0.1", "--data", str(folder / "data"), *options]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        assert is_readable(process.stdout, DEADLINE_S), log.read_text()
        assert process.stdout.readline().startswith("ready"), log.read_text()
        yield Up(process, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def wait(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def answer(url: str) -> str:
    """The page at an address. The console may have just started."""
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as response:
        return str(response.read().decode())


def is_closed(url: str) -> bool:
    host, _, port = url.removeprefix("http://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), DEADLINE_S).close()
    except ConnectionRefusedError:
        return True
    return False


def test_up_serves_a_console_that_ends_with_it_and_returns_when_it_is_killed(tmp_path: Path) -> None:
    with running(tmp_path, "--console-port", "0") as up:
        assert "All is well" in answer(up.url)
        (first,) = up.children()
        os.kill(first, signal.SIGKILL)
        wait(lambda: "The console ended with -9" in up.log.read_text())
        assert "All is well" in answer(up.url)  # the connection waits for the next console
        assert up.children() != [first]
        assert up.process.poll() is None
        up.process.terminate()
        assert up.process.wait(DEADLINE_S) == ExitCode.STOPPED
        assert is_closed(up.url)


def test_a_console_ends_when_its_broker_is_killed(tmp_path: Path) -> None:
    with running(tmp_path, "--console-port", "0") as up:
        answer(up.url)
        up.process.kill()
        wait(lambda: is_closed(up.url))


def test_a_port_in_use_is_a_warning(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, running(tmp_path, "--console-port", str(taken.getsockname()[1])) as up:
        assert "There is no console" in up.log.read_text()
        assert "--console-port" in up.log.read_text()
        assert up.children() == []
