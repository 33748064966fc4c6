"""No secret of a running broker is in its log, its command line, its answers, or in clear in its metadata store."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.admin import (
    Admin,
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from barnabas.errors import KafkaError

pytestmark = pytest.mark.linux  # whose process list can be rewritten

TIMEOUT_S = 60
FIRST = "password-of-the-first-user"
LATER = "password-of-a-later-user"
WRONG = "wrong-password"
PLAIN = "password-of-plain-alice"
TOKEN_KEY = "key-of-all-delegation-tokens"
ENCODER = "secret-of-the-password-encoder"
DYNAMIC = "dynamic-password-of-a-key"
SECRETS = (FIRST, LATER, WRONG, PLAIN, TOKEN_KEY, ENCODER, DYNAMIC)
KEY_PASSWORD = "listener.name.plaintext.ssl.key.password"


@dataclass(frozen=True)
class Traces:
    """What others can see of a broker."""

    log: str
    command_line: str
    store: bytes
    answers: str
    hmac: bytes
    scram_keys: tuple[str, ...]


@contextmanager
def running(directory: Path) -> Generator[tuple[subprocess.Popen[bytes], str, str], None, None]:
    """The process, and the addresses of the plain listener and the one of SASL."""
    with ExitStack() as sockets:
        plain, sasl = (sockets.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(2))
    (directory / "server.properties").write_text(
        f"""broker.id=1
log.dirs={directory / "data"}
listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.sasl_plaintext.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PLAIN}";
delegation.token.secret.key={TOKEN_KEY}
password.encoder.secret={ENCODER}
offsets.topic.replication.factor=1
"""
    )
    user = f"SCRAM-SHA-256=[name=first,password={FIRST}]"
    command = [
        sys.executable,
        "-m",
        "barnabas",
        "server",
        str(directory / "server.properties"),
        "--log-level",
        "debug",
        "--add-scram",
        user,
    ]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        _wait_until(lambda: "ready listeners=" in _text(directory / "log") or process.poll() is not None)
        assert process.poll() is None, _text(directory / "log")
        yield process, f"127.0.0.1:{plain}", f"127.0.0.1:{sasl}"
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    directory = tmp_path_factory.mktemp("secrets")
    with running(directory) as (process, plain, sasl):
        command_line = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode()
        hmac, answers = _use(plain, sasl)
    store = b"".join(path.read_bytes() for path in sorted((directory / "data").glob("barnabas.db*")))
    keys = tuple(text.decode() for text in _values(store, b"stored_key=") + _values(store, b"server_key="))
    return Traces(_text(directory / "log"), command_line, store, answers, hmac, keys)


def _use(plain: str, sasl: str) -> tuple[bytes, str]:
    """Uses every kind of secret, rightly and wrongly. Returns the HMAC of a token, and all that the broker answered but that."""
    answers: list[object] = []

    def attempt(call: Callable[[], object]) -> None:
        try:
            answers.append(call())
        except KafkaError as error:
            answers.append(error)

    resource = ConfigResource(ConfigResourceType.BROKER, "1")
    with Admin(bootstrap_servers=plain) as admin:
        loggers = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1")
        admin.incremental_alter_configs({loggers: [AlterConfigOp("kafka.request.logger", "DEBUG")]}).all()
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("later", info, LATER)]).all()
        attempt(lambda: admin.incremental_alter_configs({resource: [AlterConfigOp(KEY_PASSWORD, DYNAMIC)]}).all())
        attempt(lambda: admin.incremental_alter_configs({resource: [AlterConfigOp("sasl.jaas.config", DYNAMIC)]}).all())
        attempt(lambda: admin.describe_configs([resource]).all()[resource])
        attempt(lambda: admin.describe_user_scram_credentials().all())
    for user, password, mechanism in (("first", FIRST, "SCRAM-SHA-256"), ("first", WRONG, "SCRAM-SHA-256"), ("alice", WRONG, "PLAIN")):
        attempt(lambda: _clusters(sasl, user, password, mechanism))  # noqa: B023 - called at once
    with Admin(**_login(sasl, "alice", PLAIN, "PLAIN")) as admin:
        token = admin.create_delegation_token()
        admin.renew_delegation_token(token.hmac)
        attempt(lambda: admin.expire_delegation_token(b"another"))
    return token.hmac, "\n".join(f"{answer!r} {answer}" for answer in answers)


def _login(address: str, user: str, password: str, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": user,
        "sasl_password": password,
    }


def _clusters(address: str, user: str, password: str, mechanism: str) -> object:
    with Admin(**_login(address, user, password, mechanism)) as admin:
        return admin.describe_cluster()


def _values(data: bytes, name: bytes) -> list[bytes]:
    return [part.split(b",")[0] for part in data.split(name)[1:]]


def _text(path: Path) -> str:
    return path.read_text(errors="replace")


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


@pytest.mark.parametrize("secret", SECRETS)
def test_no_password_is_anywhere(secret: str, traces: Traces) -> None:
    assert secret not in traces.log
    assert secret not in traces.command_line
    assert secret not in traces.answers
    assert secret.encode() not in traces.store


def test_no_token_is_in_log_or_store(traces: Traces) -> None:
    text = base64.b64encode(traces.hmac).decode()
    assert text not in traces.log + traces.answers
    assert traces.hmac.hex() not in traces.log
    assert traces.hmac not in traces.store
    assert text.encode() not in traces.store


def test_the_keys_of_scram_users_are_in_the_store_alone(traces: Traces) -> None:
    assert len(traces.scram_keys) >= 4
    for key in traces.scram_keys:
        assert key not in traces.log
        assert key not in traces.answers


def test_the_secrets_were_used(traces: Traces) -> None:
    """So that the tests above have looked at something."""
    assert "--add-scram\0SCRAM-SHA-256=********" in traces.command_line
    assert b"encryptedPassword" in traces.store
    assert "Created delegation token" in traces.log
    assert "SaslAuthentication" in traces.answers
