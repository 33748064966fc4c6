"""kcat, a process for each call: it does not stay connected."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.integration.security.clients.login import VALUE, WAIT_S, Login, Refused


class Kcat:
    def __init__(self, login: Login) -> None:
        program = shutil.which("kcat") or shutil.which("kafkacat")
        if program is None:
            pytest.skip("install kcat (Debian: apt-get install kcat)")
        settings = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(login.authority),
            "sasl.mechanisms": login.mechanism,
            "sasl.username": login.user,
            "sasl.password": login.password,
            "message.timeout.ms": str(WAIT_S * 1000),
        }
        options = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
        self._command = [program, "-b", login.bootstrap, "-t", login.topic, "-p", "0", *options]

    def send(self) -> None:
        self._run(["-P"], VALUE)

    def read(self) -> bytes:
        return self._run(["-C", "-q", "-e", "-o", "beginning", "-c", "1", "-D", ""])

    def close(self) -> None:
        pass

    def _run(self, options: list[str], text: bytes = b"") -> bytes:
        done = subprocess.run([*self._command, *options], input=text, capture_output=True, timeout=WAIT_S, check=False)
        if done.returncode != 0:
            reasons = [line for line in done.stderr.decode().splitlines() if "|FAIL|" in line]
            raise Refused((reasons or [done.stderr.decode()])[0].rpartition("]: ")[2].strip())
        return done.stdout
