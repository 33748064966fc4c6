"""A network in which the ports that the pages name are free: localhost:9092 there is the broker of the test, whatever runs on the machine.

It is a network namespace. Where none can be made (some containers forbid it), processes take turns at the ports of the machine itself.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

PORTS = (2181, 8081, 9092, 9093, 9094, 15002)  # those that the pages name, or that Spark takes for them

_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP of Linux


@contextmanager
def own_network() -> Generator[list[str], None, None]:
    """What a command begins with that runs there. Skips the test where other programs hold the ports and there are no namespaces."""
    prefix = _unshare()
    if prefix is not None:
        yield prefix
        return
    with (Path(tempfile.gettempdir()) / f"barnabas-ports-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        taken = [port for port in PORTS if _is_taken(port)]
        if taken:
            pytest.skip(f"port {taken[0]} of this machine is in use, and `unshare --net` is not allowed here")
        yield []


def raise_loopback() -> None:
    """A new namespace has a loopback device that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, _GET_FLAGS, struct.pack("16sH14x", b"lo", 0))
        flags: int = struct.unpack("16sH14x", answer)[1]
        if not flags & _UP:
            fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))


@cache
def _unshare() -> list[str] | None:
    if shutil.which("unshare") is None:
        return None
    for prefix in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
            return prefix
    return None


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("localhost", port)) == 0
