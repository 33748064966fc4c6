"""A tool that reaches no broker says in one line why, and which option to correct, and ends with 1."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.testing import broker
from tests import certificates


class Case(NamedTuple):
    servers: str
    line: str  # a pattern of all that the tool says
    settings: str = ""


@pytest.fixture
def refused() -> Case:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return Case(f"localhost:{port}", rf"localhost:{port} \(--bootstrap-server\) refused the connection: no broker listens on this port")


@pytest.fixture
def unknown() -> Case:
    return Case("host.invalid:9092", r"host\.invalid:9092: the host name host\.invalid is not known \(.*\); correct --bootstrap-server")


@pytest.fixture
def dropped() -> Iterator[Case]:
    """A listening socket whose backlog is full: the system drops further attempts, as a firewall does."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        reason = r"has not answered for \d+ ms: is a firewall in the way, or the host down\?"
        yield Case(f"127.0.0.1:{port}", rf"127\.0\.0\.1:{port} \(--bootstrap-server\) {reason}")
        for each in waiting:
            each.close()


@pytest.fixture
def plain_port() -> Iterator[Case]:
    with broker() as kafka:
        reason = r"closed the connection during the TLS handshake: if the port does not speak TLS set security\.protocol=PLAINTEXT.*"
        yield Case(kafka.bootstrap_servers, rf"\S+:\d+ \(--bootstrap-server\) {reason}", "security.protocol=SSL\n")


@pytest.fixture
def tls_port(tmp_path: Path) -> Iterator[Case]:
    settings = {
        "listeners": "SSL://localhost:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.make(tmp_path).server_store),
    }
    with broker(config=settings) as kafka:
        reason = r"closed the connection before it answered ApiVersions: if the broker speaks TLS on this port set security\.protocol=SSL.*"
        yield Case(kafka.bootstrap_servers, rf"localhost:\d+ \(--bootstrap-server\) {reason}")


@pytest.fixture
def untrusted(tls_port: Case) -> Case:
    """Its certificate is signed by nobody that the client knows."""
    reason = r"The TLS handshake with localhost:\d+ \(--bootstrap-server\) failed: unable to get local issuer certificate; .*"
    return Case(tls_port.servers, reason, "security.protocol=SSL\n")


@pytest.fixture(params=["refused", "unknown", "dropped", "plain_port", "tls_port", "untrusted"])
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.getfixturevalue(request.param)
    return found


def test_a_tool_says_once_why_it_reaches_no_broker(case: Case, tmp_path: Path) -> None:
    check("topics --list", case, tmp_path)


@pytest.mark.parametrize("tool", ["console-consumer --topic t", "console-producer --topic t"])
def test_a_tool_that_runs_for_long_says_it_too(tool: str, refused: Case, tmp_path: Path) -> None:
    check(tool, refused, tmp_path)


def check(tool: str, case: Case, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(f"{case.settings}request.timeout.ms=1500\n")  # which wins over the ten seconds of the tools
    words = [*tool.split(), "--bootstrap-server", case.servers]
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", *words, "--command-config", str(config)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"barnabas: {case.line}\n", done.stderr), done.stderr
