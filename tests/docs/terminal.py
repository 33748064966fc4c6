"""A terminal in which the commands of a page are typed one after the other, in a directory and with a home of its own.

`barnabas` is on its path, and `bin/` and `deploy/` of the checkout are in its directory. The current directory and the variables that one
command leaves are those of the next. A command that runs until it is stopped, such as `barnabas up`, counts as done once clients may
connect: a reader goes on in another terminal.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.docs.commands import Command
from tests.documentation import ROOT

COMMAND_TIMEOUT_S = 120
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 60
_STOPPED = {"up": (0,), "server": (0,), "console": (0,), "zookeeper": (0, 128 + signal.SIGINT)}  # exit codes after Ctrl-C


class CommandFailed(Exception):
    """The message says what the command did instead, and what it printed."""


@dataclass(frozen=True)
class _Running:
    command: Command
    process: subprocess.Popen[bytes]
    output: Path
    messages: Path

    def failed(self, what: str) -> CommandFailed:
        return CommandFailed(f"{what}\n{self.output.read_text(errors='replace')}{self.messages.read_text(errors='replace')}")

    def is_ready(self) -> bool:
        if self.command.service == "zookeeper":
            port = match[1] if (match := re.search(r"--port (\d+)", self.command.text)) else "2181"
            with socket.socket() as probe:
                return probe.connect_ex(("localhost", int(port))) == 0
        return _says_ready(self.output)

    def interrupt(self) -> None:
        """Ctrl-C; the process has to end as the tool promises."""
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            code = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self.failed(f"did not end within {STOP_TIMEOUT_S} s after Ctrl-C") from None
        if code not in _STOPPED[self.command.service or "server"]:
            raise self.failed(f"ended with exit code {code} after Ctrl-C")

    def kill(self) -> None:
        """All that the command has started and that still runs."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Terminal:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._services: list[_Running] = []
        self._daemons: list[_Running] = []
        self._state = directory / ".state"
        programs = self._state / "programs"
        programs.mkdir(parents=True)
        for name, words in {"barnabas": "-m barnabas ", "python": ""}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words}"$@"\n')
            (programs / name).chmod(0o755)
        for name in ("bin", "deploy"):
            (directory / name).symlink_to(ROOT / name)
        (self._state / "left").write_text(f"cd {shlex.quote(str(directory))}\n")
        self._environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LOG_DIR": str(directory / "logs")}

    def run(self, command: Command) -> str:
        """What the command prints to standard output; a service, until clients may connect. Raises CommandFailed."""
        if command.service is None:
            return self._call(command)
        if command.service == "up":
            self.stop("up")  # it listens on the same port
        return self._start(command)

    def stop(self, tool: str | None = None) -> None:
        """Ends services, or those of one tool: brokers before the ZooKeeper that was started earlier."""
        leaving = [service for service in reversed(self._services) if tool in (None, service.command.service)]
        self._services = [service for service in self._services if service not in leaving]
        for service in leaving:
            service.interrupt()

    def close(self) -> None:
        """Ends whatever is left, also after a failure."""
        for running in (*self._services, *self._daemons):
            running.kill()

    def _call(self, command: Command) -> str:
        leave = f"leave() {{ code=$?; {{ export -p; printf 'cd %q\\n' \"$PWD\"; }} >{self._state}/left; exit $code; }}"
        running = self._spawn(command, f"{leave}\ntrap leave EXIT\nset -eo pipefail\n{command.text}\n")
        if "-daemon" in command.text:
            self._daemons.append(running)
        try:
            code = running.process.wait(COMMAND_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            running.kill()
            raise running.failed(f"did not end within {COMMAND_TIMEOUT_S} s") from None
        if code != 0:
            raise running.failed(f"ended with exit code {code}")
        if running in self._daemons:
            self._await_daemon(running)
        return running.output.read_text(errors="replace")

    def _await_daemon(self, started: _Running) -> None:
        """A reader who types the next command gives the broker a moment; on a busy machine that may be many seconds."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _says_ready(self.directory / "logs" / "kafkaServer.out"):
            if time.monotonic() > deadline:
                raise started.failed(f"did not bring up a broker within {START_TIMEOUT_S} s")
            time.sleep(0.05)

    def _start(self, command: Command) -> str:
        service = self._spawn(command, f"exec {command.text}\n")
        self._services.append(service)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not service.is_ready():
            if service.process.poll() is not None:
                self._services.remove(service)
                raise service.failed(f"ended with exit code {service.process.returncode} instead of running on")
            if time.monotonic() > deadline:
                raise service.failed(f"was not ready within {START_TIMEOUT_S} s")
            time.sleep(0.05)
        return service.output.read_text(errors="replace")

    def _spawn(self, command: Command, script: str) -> _Running:
        output, messages = (self._state / f"line-{command.line}.{kind}" for kind in ("out", "err"))
        with output.open("wb") as out, messages.open("wb") as err:
            process = subprocess.Popen(
                ["bash", "-c", f". {self._state}/left\n{script}"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self._environment,
                start_new_session=True,
                preexec_fn=_let_ctrl_c_through,
            )
        return _Running(command, process, output, messages)


def _let_ctrl_c_through() -> None:
    """A shell that runs the tests in the background lets them ignore SIGINT, and whatever they start inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _says_ready(output: Path) -> bool:
    return output.exists() and re.search("^ready ", output.read_text(errors="replace"), re.MULTILINE) is not None
