"""What Apache Kafka's tools and ours print against Apache Kafka and against our broker: made once for a whole test run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import broker, kafka, kafka_server
from tests.integration.tools.runner import Target, broker_id
from tests.integration.tools_ours import live
from tests.integration.tools_ours.commands import COMMANDS, ELECTIONS
from tests.integration.tools_ours.runner import run_all
from tests.integration.tools_ours.zookeeper_commands import JAVA as ZOOKEEPER_TOOLS
from tests.once import once


@pytest.fixture(scope="session")
def printed(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[str]]:
    """By broker and command: what Kafka's tool printed, and what ours did."""
    made = once(tmp_path_factory, worker_id, "our-tools.json", lambda: json.dumps(_run(tmp_path_factory.mktemp("tools"))))
    result: dict[str, list[str]] = json.loads(made)
    return result


def _run(directory: Path) -> dict[str, list[str]]:
    for name in ("ours", "ours/data", "kafka"):
        (directory / name).mkdir()
    with broker.running(directory / "ours/data") as ours:
        number = broker_id(ours)
        with kafka_server.running(directory / "kafka", number) as theirs:
            targets = {"ours": Target(ours, number, directory / "ours"), "kafka": Target(theirs, number, directory / "kafka")}
            printed = run_all(COMMANDS, targets)
            printed |= run_all(ELECTIONS, targets, prepare=kafka.zookeeper_tools, classes=ZOOKEEPER_TOOLS)
            with live.running(ours), live.running(theirs):
                return printed | run_all(live.COMMANDS, targets)
