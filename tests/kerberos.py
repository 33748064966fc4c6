"""A real MIT key distribution center beside a test, on a free port, with everything in one directory.

Nothing of the machine's own Kerberos is read or written: `KRB5_CONFIG` and `KRB5_KDC_PROFILE` name the files of the directory.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

REALM = "BARNABAS.TEST"
START_TIMEOUT_S = 60
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class Kdc:
    """`environment` is for the processes that use it; for the tests' own process, `monkeypatch.setenv` each."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config = directory / "krb5.conf"
        self.environment = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5RCACHENAME": f"dfl:{directory / 'replay'}",
            "KRB5CCNAME": f"FILE:{directory / 'no-tickets'}",
        }
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port: int = probe.getsockname()[1]

    def create(self) -> None:
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n rdns = false\n"
            " dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self._port}\n }}\n"
        )
        (self.directory / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self._port}\n kdc_tcp_listen = 127.0.0.1:{self._port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {self.directory / 'principal'}\n  key_stash_file = {self.directory / 'stash'}\n"
            f"  supported_enctypes = aes256-cts:normal aes128-cts:normal\n }}\n[logging]\n kdc = FILE:{self.directory / 'kdc.log'}\n"
        )
        self._run("kdb5_util", "-r", REALM, "-P", "master", "create", "-s")

    def keytab(self, principal: str) -> Path:
        """A new principal, and the file with its key."""
        keytab = self.directory / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}@{REALM}")
        self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {keytab} {principal}@{REALM}")
        assert keytab.exists()
        return keytab

    def tickets(self, principal: str) -> Path:
        """The cache of tickets of a new principal that logs in, for KRB5CCNAME."""
        cache = self.directory / f"{principal}.tickets"
        self._run("kinit", "-c", str(cache), "-k", "-t", str(self.keytab(principal)), f"{principal}@{REALM}")
        return cache

    def start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [_program("krb5kdc"), "-r", REALM, "-n"],
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_open():
            assert process.poll() is None and time.monotonic() < deadline, (self.directory / "kdc.log").read_text()[-2000:]
            time.sleep(0.02)
        return process

    def _is_open(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return True
        except OSError:
            return False

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [_program(program), *arguments], env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{program} failed: {done.stdout}{done.stderr}"


@contextmanager
def running(directory: Path) -> Generator[Kdc, None, None]:
    """Skips the test where there is no Kerberos, which in CI is a failure."""
    missing = [program for program in _PROGRAMS if shutil.which(program, path=_PATH) is None]
    if missing or find_spec("gssapi") is None:
        pytest.skip(
            "needs a key distribution center and the package gssapi (Debian: apt-get install krb5-kdc krb5-admin-server libkrb5-dev; "
            "pip install gssapi)"
        )
    kdc = Kdc(directory)
    kdc.create()
    process = kdc.start()
    try:
        yield kdc
    finally:
        process.kill()
        process.wait()


def _program(name: str) -> str:
    program = shutil.which(name, path=_PATH)
    assert program is not None
    return program
