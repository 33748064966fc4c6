"""A ZooKeeper that serves in TLS, to clients with a certificate, and beside it without TLS. It may have users."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests import kafka
from tests.certificates import Certificates
from tests.zookeeper import sasl_flags

START_TIMEOUT_S = 60


class Ports(NamedTuple):
    open: int
    secure: int


@contextmanager
def running(directory: Path, files: Certificates, users: Mapping[str, str] | None = None) -> Generator[Ports, None, None]:
    """`users` authenticate by DIGEST-MD5: passwords by name."""
    jars = kafka.available(kafka.zookeeper_mode)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = Ports(one.getsockname()[1], other.getsockname()[1])
    config = directory / "zoo.cfg"
    config.write_text(
        f"dataDir={directory / 'zookeeper'}\ntickTime=500\nadmin.enableServer=false\nclientPort={ports.open}\nclientPortAddress=127.0.0.1\n"
        f"secureClientPort={ports.secure}\nsecureClientPortAddress=127.0.0.1\n"
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
        f"ssl.keyStore.location={files.server_store}\nssl.keyStore.type=PEM\n"
        f"ssl.trustStore.location={files.authority}\nssl.trustStore.type=PEM\nssl.clientAuth=need\n"
    )
    flags = [kafka.QUIET, *(sasl_flags(directory / "zookeeper-jaas.conf", users).split() if users else ())]
    with open(directory / "zookeeper.log", "wb") as out:
        java = [*kafka.java(jars, *flags), "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)]
        server = subprocess.Popen(java, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not (_is_open(ports.open) and _is_open(ports.secure)):
            assert server.poll() is None and time.monotonic() < deadline, (directory / "zookeeper.log").read_text()[-2000:]
            time.sleep(0.05)
        yield ports
    finally:
        server.kill()
        server.wait()


def _is_open(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
