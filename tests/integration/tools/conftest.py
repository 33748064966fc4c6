"""What Apache Kafka's tools print, and what requests are answered, by our broker and by Apache Kafka: made once for a whole test run."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import broker, kafka_server
from tests.integration.tools import acl_requests, elections, reassignments
from tests.integration.tools.acls import ACLS, SETTINGS
from tests.integration.tools.commands import COMMANDS
from tests.integration.tools.quotas import QUOTAS
from tests.integration.tools.runner import Target, broker_id, run_all
from tests.integration.tools.users import USERS
from tests.once import once


@pytest.fixture(scope="session")
def printed(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[str]]:
    """By command or request: what it came to with our broker, and with Apache Kafka."""
    made = once(tmp_path_factory, worker_id, "kafka-tools.json", lambda: json.dumps(_run(tmp_path_factory.mktemp("tools"))))
    result: dict[str, list[str]] = json.loads(made)
    return result


def _run(directory: Path) -> dict[str, list[str]]:
    for name in ("ours", "ours/data", "kafka"):
        (directory / name).mkdir()
    with _our_broker(directory / "ours/data") as ours:
        number = broker_id(ours)
        with kafka_server.running(directory / "kafka", number, SETTINGS) as theirs:
            targets = [Target(ours, number, directory / "ours"), Target(theirs, number, directory / "kafka")]
            printed = run_all([*COMMANDS, *ACLS, *USERS, *QUOTAS], targets)
            for name in elections.ELECTIONS:
                printed[name] = [elections.ask(name, ours), elections.ask(name, theirs)]
            for name in reassignments.REASSIGNMENTS:
                printed[name] = [reassignments.ask(name, broker, number) for broker in (ours, theirs)]
            for name in acl_requests.REQUESTS:
                printed[name] = [acl_requests.ask(name, each) for each in (ours, theirs)]
            return printed


@contextmanager
def _our_broker(data: Path) -> Generator[str, None, None]:
    """A broker without a topic: not the one that other tests use, unless a running one is given."""
    given = broker.given_bootstrap()
    if given is not None:
        yield given
        return
    options = [f"--override={name}={value}" for name, value in SETTINGS.items()]
    with broker.running(data, options) as address:
        yield address
