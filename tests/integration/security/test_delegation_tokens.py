"""Apache Kafka's tool for delegation tokens prints the same against our broker as against Apache Kafka, and a token logs in at both."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests import broker, kafka_server
from tests.integration.tools.commands import TOOLS, Command
from tests.integration.tools.runner import Target, run_one, tools
from tests.once import once

pytestmark = pytest.mark.java

BROKER_ID = 1
TIMEOUT_S = 60
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
USERS = ("admin", "alice", "bob", "carol")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SETTINGS = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "delegation.token.secret.key": "secret",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN + "".join(f' user_{user}="{user}"' for user in USERS) + ";",
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
    "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
}
MASKS = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d"), "DATE"),
    (re.compile(r" +"), " "),
]
CREATED = re.compile(r"^(\S{22})\s+(\S+==)\s", re.MULTILINE)
STEPS = [
    "created", "described by the owner", "described by a renewer", "described by another", "described for nobody",
    "created for another by one who may not", "created for another", "described by its requester",
    "created with a renewer that is no user", "created without a login", "described without a login",
    "renewed by the owner", "renewed by a renewer", "renewed by another", "renewed by its HMAC with another",
    "expired by another", "expired in a while", *(f"topics listed with {mechanism}" for mechanism in MECHANISMS),
    "created with a token", "renewed with a token", "described with a token", "expired", "renewed afterwards", "expired afterwards",
    "topics listed with an expired token",
]  # fmt: skip


@contextmanager
def both(directory: Path) -> Generator[dict[str, dict[str, Target]], None, None]:
    """By broker and listener."""
    with ExitStack() as sockets:
        made = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(5)]
        plain, sasl, controller, our_plain, our_sasl = (listener_socket.getsockname()[1] for listener_socket in made)
    theirs, ours = directory / "kafka", directory / "ours"
    for path in (theirs, ours, ours / "data"):
        path.mkdir()
    listeners = f"PLAINTEXT://127.0.0.1:{our_plain},SASL_PLAINTEXT://127.0.0.1:{our_sasl}"
    (ours / "override.properties").write_text("".join(f"{name}={value}\n" for name, value in SETTINGS.items()) + f"listeners={listeners}\n")
    advertised = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}"
    settings = SETTINGS | {"listeners": f"{advertised},CONTROLLER://127.0.0.1:{controller}", "advertised.listeners": advertised}
    command = kafka_server.command(theirs, BROKER_ID, plain, controller, settings)
    with (
        broker.started(command, kafka_server.STARTED, kafka_server.START_TIMEOUT_S),
        broker.running(ours / "data", ["--override-file", str(ours / "override.properties")]),
    ):
        yield {
            "ours": {"plain": Target(f"127.0.0.1:{our_plain}", BROKER_ID, ours), "sasl": Target(f"127.0.0.1:{our_sasl}", BROKER_ID, ours)},
            "kafka": {"plain": Target(f"127.0.0.1:{plain}", BROKER_ID, theirs), "sasl": Target(f"127.0.0.1:{sasl}", BROKER_ID, theirs)},
        }


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[str]]:
    """By step: what Kafka's tool printed against our broker, and against Apache Kafka."""
    made = once(tmp_path_factory, worker_id, "tokens.json", lambda: json.dumps(_run(tmp_path_factory.mktemp("tokens"))))
    result: dict[str, list[str]] = json.loads(made)
    return result


def _run(directory: Path) -> dict[str, list[str]]:
    with both(directory) as brokers, tools() as jvm:
        ours, theirs = (Story(jvm, **brokers[name]).play() for name in ("ours", "kafka"))
    return {step: [ours[step], theirs[step]] for step in STEPS}


class Story:
    """The life of a few tokens at one broker."""

    def __init__(self, jvm: subprocess.Popen[str], plain: Target, sasl: Target) -> None:
        self._jvm = jvm
        self._plain = plain
        self._sasl = sasl
        self._secrets: list[tuple[str, str]] = []  # what differs from broker to broker, and its word
        for user in USERS:
            self._login(user, "PLAIN", f'{PLAIN} username="{user}" password="{user}";')
        (sasl.directory / "nobody.conf").write_text("")

    def play(self) -> dict[str, str]:
        create = "--create --max-life-time-period -1"
        steps: dict[str, str] = {}
        steps["created"] = created = self._tokens("alice", f"{create} --renewer-principal User:bob")
        token_id, hmac = self._made(created, "1")
        self._wait_until(lambda: token_id in self._tokens("alice", "--describe --owner-principal User:alice"))
        steps["described by the owner"] = self._tokens("alice", "--describe --owner-principal User:alice")
        steps["described by a renewer"] = self._tokens("bob", "--describe --owner-principal User:alice")
        steps["described by another"] = self._tokens("carol", "--describe --owner-principal User:alice")
        steps["described for nobody"] = self._tokens("admin", "--describe --owner-principal User:nobody")
        steps["created for another by one who may not"] = self._tokens("alice", f"{create} --owner-principal User:carol")
        steps["created for another"] = other = self._tokens("admin", f"{create} --owner-principal User:carol")
        other_id, _ = self._made(other, "2")
        self._wait_until(lambda: other_id in self._tokens("carol", "--describe --owner-principal User:carol"))
        steps["described by its requester"] = self._tokens("admin", "--describe --owner-principal User:admin")
        steps["created with a renewer that is no user"] = self._tokens("alice", f"{create} --renewer-principal Group:g")
        steps["created without a login"] = self._tokens("nobody", create, self._plain)
        steps["described without a login"] = self._tokens("nobody", "--describe --owner-principal User:alice", self._plain)
        renew, expire = f"--renew --renew-time-period -1 --hmac {hmac}", f"--expire --expiry-time-period -1 --hmac {hmac}"
        steps["renewed by the owner"] = self._tokens("alice", renew)
        steps["renewed by a renewer"] = self._tokens("bob", renew)
        steps["renewed by another"] = self._tokens("carol", renew)
        steps["renewed by its HMAC with another"] = self._tokens("alice", "--renew --renew-time-period -1 --hmac AAAA")
        steps["expired by another"] = self._tokens("carol", expire)
        steps["expired in a while"] = self._tokens("bob", f"--expire --expiry-time-period 900000 --hmac {hmac}")
        for mechanism in MECHANISMS:
            self._login("token", mechanism, f'{SCRAM} username="{token_id}" password="{hmac}" tokenauth="true";')
            steps[f"topics listed with {mechanism}"] = self._topics("token")
        steps["created with a token"] = self._tokens("token", create)
        steps["renewed with a token"] = self._tokens("token", renew)
        steps["described with a token"] = self._tokens("token", "--describe --owner-principal User:alice")
        steps["expired"] = self._tokens("alice", expire)
        self._wait_until(lambda: token_id not in self._tokens("alice", "--describe --owner-principal User:alice"))
        steps["renewed afterwards"] = self._tokens("alice", renew)
        steps["expired afterwards"] = self._tokens("alice", expire)
        steps["topics listed with an expired token"] = self._topics("token")
        return {step: self._masked(text) for step, text in steps.items()}

    def _login(self, name: str, mechanism: str, jaas: str) -> None:
        text = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n"
        (self._sasl.directory / f"{name}.conf").write_text(text)

    def _tokens(self, user: str, arguments: str, target: Target | None = None) -> str:
        return self._tool(f"{TOOLS}.DelegationTokenCommand", user, arguments, target or self._sasl)

    def _topics(self, user: str) -> str:
        return self._tool(f"{TOOLS}.TopicCommand", user, "--list", self._sasl)

    def _tool(self, main_class: str, user: str, arguments: str, target: Target) -> str:
        login = ("--bootstrap-server", "{bootstrap}", "--command-config", f"{{directory}}/{user}.conf")
        return run_one(self._jvm, Command(user, main_class, (*login, *arguments.split())), target)

    def _made(self, text: str, number: str) -> tuple[str, str]:
        created = CREATED.search(text)
        assert created is not None, text
        self._secrets += [(created[1], f"ID{number}"), (created[2], f"HMAC{number}")]
        return created[1], created[2]

    def _masked(self, text: str) -> str:
        for secret, word in self._secrets:
            text = text.replace(secret, word)
        for mask, word in MASKS:
            text = mask.sub(word, text)
        return text

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline


@pytest.mark.parametrize("step", STEPS)
def test_the_tool_prints_the_same_as_against_kafka(step: str, told: dict[str, list[str]]) -> None:
    ours, theirs = told[step]
    assert ours == theirs


def test_what_should_succeed_does(told: dict[str, list[str]]) -> None:
    succeeded = {step for step in STEPS if told[step][0].startswith("exit code 0")}
    logins = {f"topics listed with {mechanism}" for mechanism in MECHANISMS}
    assert {"created", "renewed by a renewer", "expired", *logins} <= succeeded
    assert not {"created with a token", "topics listed with an expired token", "renewed by another"} & succeeded
