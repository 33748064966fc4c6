"""Our tools print what Apache Kafka's print where a cluster needs an authorizer, several log directories, or users who log in."""

from __future__ import annotations

import io
import json
import re
import socket
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path

import pytest

from barnabas import cli
from barnabas.client.admin.admin import Admin
from tests import broker, kafka_server
from tests.integration.tools.acls import SETTINGS
from tests.integration.tools.runner import Target
from tests.integration.tools_ours.runner import run_all
from tests.integration.tools_ours.secured_commands import CHANCE, stages
from tests.integration.tools_ours.test_status_and_shell import tool
from tests.once import once

pytestmark = pytest.mark.java

BROKER_ID = 1
TIMEOUT_S = 30
COMPARED = {
    f"{where}: {command.name}": command.any_order
    for stage in stages("", "")
    for command in stage
    for where in command.brokers
    if not command.name.endswith(CHANCE)
}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
# What differs from run to run: tokens, and sets that Kafka prints in any order.
MASKS = [
    (re.compile(r"(tokenId : )\S+"), r"\1ID"),
    (re.compile(r"^\S{22} \S+== ", re.MULTILINE), "ID HMAC "),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d"), "DATE"),
    (re.compile(r"User:WHO +"), "User:WHO "),
    (re.compile(r"(?<=Request )Request\(.*envelope=None\)"), "REQUEST"),
    (re.compile(r"^ \t", re.MULTILINE), "\t"),  # before the first of a set
    (re.compile(r"^(org\.apache\.kafka\.tools\.AdminOperation|com\.fasterxml\.jackson)\S*Exception: .*\n at.*\n?", re.MULTILINE), ""),
    (re.compile(r"^(org\.apache\.kafka\.tools\.AdminOperation|com\.fasterxml\.jackson)\S*Exception: .*\n?", re.MULTILINE), ""),
    (re.compile(r"(?s)^(This tool helps to quickly reset|Lets an application).*?(?=OPTIONS)", re.MULTILINE), "ABOUT\n"),
]
OPERATIONS = re.compile(r"(?<=only supports operations )\[.*\]")


@contextmanager
def secured_kafka(directory: Path) -> Generator[dict[str, Target], None, None]:
    """By listener: the plain one, where everybody is a super user, the one where users log in, and the controller's."""
    with ExitStack() as sockets:
        made = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        plain, controller, sasl = (listener_socket.getsockname()[1] for listener_socket in made)
    addresses = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}"
    settings = {
        "listeners": f"{addresses},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": addresses,
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": ",".join(log_dirs(directory)),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
        "sasl.enabled.mechanisms": "PLAIN",
        "delegation.token.secret.key": "secret",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} user_admin="admin" user_alice="alice";',
    }
    for name, user, password in (("alice", "alice", "alice"), ("admin", "admin", "admin"), ("wrong", "alice", "wrong")):
        login = f'sasl.jaas.config={PLAIN} username="{user}" password="{password}";'
        (directory / f"{name}.conf").write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{login}\n")
    command = kafka_server.command(directory, BROKER_ID, plain, controller, settings)
    with broker.started(command, kafka_server.STARTED, kafka_server.START_TIMEOUT_S):
        ports = {"kafka": plain, "sasl": sasl, "controller": controller}
        yield {listener: Target(f"127.0.0.1:{port}", BROKER_ID, directory) for listener, port in ports.items()}


def log_dirs(directory: Path) -> list[str]:
    return [str(kafka_server.logs_of(directory)), str(directory / "logs2")]


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[str]]:
    """By listener and command: what Kafka's tool printed, and what ours did; and what our tools did with a token."""
    made = once(tmp_path_factory, worker_id, "secured-tools.json", lambda: json.dumps(_run(tmp_path_factory.mktemp("secured"))))
    result: dict[str, list[str]] = json.loads(made)
    return result


def _run(directory: Path) -> dict[str, list[str]]:
    for name in ("ours", "ours/data", "kafka"):
        (directory / name).mkdir()
    options = [f"--override={name}={value}" for name, value in SETTINGS.items()]
    with broker.running(directory / "ours/data", options) as address, secured_kafka(directory / "kafka") as targets:
        ours = Target(address, BROKER_ID, directory / "ours")
        printed: dict[str, list[str]] = {}
        for stage in stages(*log_dirs(directory / "kafka")):
            printed |= run_all(stage, {"ours": ours, **targets})
            _wait_for_moves(targets["kafka"])
        printed["a token's life"] = _token_life(targets["sasl"])
        printed["asked before removing"] = _removed_after_asking(targets["kafka"])
        return printed


def _token_life(target: Target) -> list[str]:
    """A token is made, renewed and ended with our tool alone. Brokers learn of it from the controller a moment later."""
    login = ["--bootstrap-server", target.bootstrap, "--command-config", str(target.directory / "alice.conf")]
    token = json.loads(_ours(*login, "--create", "--max-life-time-period", "100000000", "--json"))
    _wait_until(lambda: token["tokenId"] in _ours(*login, "--describe", "--json"))
    renewed = _ours(*login, "--renew", "--renew-time-period", "-1", "--hmac", token["hmac"])
    expired = _ours(*login, "--expire", "--expiry-time-period", "-1", "--hmac", token["hmac"])
    _wait_until(lambda: token["tokenId"] not in _ours(*login, "--describe", "--json"))
    return [renewed, expired]


def _removed_after_asking(target: Target) -> list[str]:
    """Kafka's tool asks on a console, which a test has not; ours reads the answer wherever it comes from."""
    rule = ("--bootstrap-server", target.bootstrap, "--topic", "asked")
    tool("acls", *rule, "--add", "--allow-principal", "User:bob")
    refused = tool("acls", *rule, "--remove", stdin="n\n")
    unanswered = tool("acls", *rule, "--remove")
    still = tool("acls", *rule, "--list")
    agreed = tool("acls", *rule, "--remove", "--allow-principal", "User:bob", stdin="Y\n")
    gone = tool("acls", *rule, "--list")
    return [refused.out, unanswered.out, still.out, agreed.out, gone.out]


def _wait_for_moves(target: Target) -> None:
    """Until no replica is on its way from one log directory to another."""
    with Admin(bootstrap_servers=target.bootstrap) as admin:

        def settled() -> bool:
            dirs = admin.describe_log_dirs([BROKER_ID])[BROKER_ID].values()
            return not any(info.is_future for log_dir in dirs for info in log_dir.replica_infos.values())

        _wait_until(settled)


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline


def _ours(*arguments: str) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert cli.main(["delegation-tokens", *arguments]) == 0
    return printed.getvalue()


@pytest.mark.parametrize("name", COMPARED)
def test_our_tool_prints_what_kafkas_prints(name: str, secured: dict[str, list[str]]) -> None:
    theirs, ours = (masked(text, any_order=COMPARED[name]) for text in secured[name])
    assert ours == theirs


def test_a_token_is_made_renewed_shown_and_ended(secured: dict[str, list[str]]) -> None:
    renewed, expired = secured["a token's life"]
    assert "Completed renew operation. New expiry date : " in renewed
    assert "Completed expire operation. New expiry date : " in expired


def test_rules_are_removed_only_after_a_yes(secured: dict[str, list[str]]) -> None:
    refused, unanswered, still, agreed, gone = secured["asked before removing"]
    pattern = "ResourcePattern(resourceType=TOPIC, name=asked, patternType=LITERAL)"
    entry = "(principal=User:bob, host=*, operation=ALL, permissionType=ALLOW)"
    assert refused == unanswered == f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)\n"
    assert still == f"Current ACLs for resource `{pattern}`:\n\t{entry}\n\n"
    assert agreed == f"Are you sure you want to remove ACLs: \n \t{entry}\n from resource filter `{pattern}`? (y/n)\n"
    assert gone == ""


def masked(text: str, *, any_order: bool) -> str:
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    text = OPERATIONS.sub(lambda match: str(sorted(match[0].strip("[]").split(", "))), text).rstrip()
    return "\n".join(sorted(text.split("\n"))) if any_order else text
