"""Java's client and kafkajs: a process for each, which has all logins of a test run. See java/SecureClient.java for its commands."""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from tests import clients, kafka
from tests.integration.security.clients.login import WAIT_S, Login, Refused
from tests.ready import is_readable

HERE = Path(__file__).parent


class ClientProcess:
    """Its logins take turns: it does one command at a time."""

    def __init__(self, command: Sequence[str], errors: Path, environment: dict[str, str] | None = None) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._errors = errors
        with errors.open("w") as stream:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                encoding="utf-8",
                bufsize=1,
                env={**os.environ, **(environment or {})},
            )

    def log_in(self, login: Login) -> LoginInProcess:
        number = str(next(self._numbers))
        words = (login.bootstrap, str(login.authority), login.topic, login.mechanism, login.user, login.password, login.token)
        self.ask("open", number, *words)
        return LoginInProcess(self, number)

    def ask(self, *words: str) -> str:
        """What the process answers after `ok`. Raises Refused with what it answers after `error`."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            self._process.stdin.write("\t".join(words) + "\n")
            readable = is_readable(self._process.stdout, 2 * WAIT_S)
            line = self._process.stdout.readline() if readable else ""
        kind, _, text = line.rstrip("\n").partition("\t")
        if kind == "error":
            raise Refused(text)
        assert kind == "ok", f"{line!r} for {words}\n{self._errors.read_text()[-2000:]}"
        return text

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(WAIT_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()


class LoginInProcess:
    def __init__(self, process: ClientProcess, number: str) -> None:
        self._process = process
        self._number = number

    def send(self) -> None:
        self._process.ask("send", self._number)

    def read(self) -> bytes:
        return self._process.ask("read", self._number).encode()

    def close(self) -> None:
        self._process.ask("close", self._number)


def java(version: str, directory: Path, options: Sequence[str] = ()) -> ClientProcess:
    """`options` are for its JVM."""
    jars = kafka.available(kafka.prepare if version == kafka.VERSION else lambda: kafka.client_jars(version))
    program, *arguments = kafka.source_command(jars, HERE / "java" / "SecureClient.java")
    return ClientProcess([program, *options, *arguments], directory / f"java-{version}.err")


def kafkajs(directory: Path) -> ClientProcess:
    modules = kafka.available(clients.kafkajs)
    environment = {"NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    return ClientProcess(["node", str(HERE / "js" / "secure_client.js")], directory / "kafkajs.err", environment)
