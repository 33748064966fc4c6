"""Apache Kafka started on the `__consumer_offsets` that we have written shows the groups and offsets that we have shown.

Kafka makes the topics, we adopt its directory and serve groups from it, and Kafka goes on with what we have left: with members that live in
the groups, as after a crash.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import broker, kafka_server
from tests.integration.groups.commands import groups
from tests.integration.groups.stage import BUSY, EMPTY, EMPTY_CONSUMER, LIVE, ONE, RECORDS, STATIC, commit, make_topics, with_groups
from tests.integration.tools.commands import Command
from tests.integration.tools.runner import Target, run_all
from tests.once import once

pytestmark = pytest.mark.java

NODE_ID = 1
ADOPT_TIMEOUT_S = 60
VIEWS = {"offsets": "--offsets", "members": "--members --verbose", "state": "--state --verbose"}
FROM_KAFKA = "from-kafka"  # a group that Kafka has made
GROUPS = (FROM_KAFKA, EMPTY, EMPTY_CONSUMER, LIVE, STATIC, BUSY)
MOVED = ("__consumer_offsets", *RECORDS)


def described(group: str, view: str) -> Command:
    return groups(f"{view} of {group}", f"--describe --group {group} {VIEWS[view]}")


LISTED = groups("listed", "--list --state --type")
COMMANDS = [LISTED, *(described(group, view) for group in GROUPS for view in VIEWS)]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[str]]:
    """By command: what it printed while we served the groups, and then on Kafka."""
    made = once(tmp_path_factory, worker_id, "taken-over.json", lambda: json.dumps(hand_over(tmp_path_factory.mktemp("taken-over"))))
    result: dict[str, list[str]] = json.loads(made)
    return result


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("group", GROUPS)
def test_kafka_shows_a_group_as_we_did(group: str, view: str, told: dict[str, list[str]]) -> None:
    ours, theirs = told[described(group, view).name]
    assert ours.startswith("exit code 0")
    assert theirs == ours


def test_kafka_lists_the_groups_that_we_listed(told: dict[str, list[str]]) -> None:
    ours, theirs = (sorted(text.splitlines()) for text in told[LISTED.name])
    assert all(any(line.startswith(f"{group} ") for line in ours) for group in GROUPS)
    assert theirs == ours


def hand_over(directory: Path) -> dict[str, list[str]]:
    for name in ("ours", "kafka"):
        (directory / name).mkdir()
    data, logs = directory / "ours/data", kafka_server.logs_of(directory / "kafka")
    with kafka_server.running(directory / "kafka", NODE_ID) as kafka:
        make_topics(kafka)
        commit(kafka, FROM_KAFKA, {(ONE, 0): 2})  # which makes the topic of the offsets
    shutil.copytree(logs, data)
    adopt(data)
    with broker.running(data, ["--host", "127.0.0.1"]) as ours, with_groups(ours):
        before = run_all(COMMANDS, [Target(ours, NODE_ID, directory / "ours")])
        replace_partitions(logs, data)
    with kafka_server.running(directory / "kafka", NODE_ID) as kafka:
        after = run_all(COMMANDS, [Target(kafka, NODE_ID, directory / "kafka")])
    return {name: [*before[name], *after[name]] for name in before}


def adopt(data: Path) -> None:
    command = [sys.executable, "-m", "barnabas", "adopt", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ADOPT_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr


def replace_partitions(logs: Path, data: Path) -> None:
    """Kafka's partitions of the topics that matter, by ours."""
    for topic in MOVED:
        for partition in data.glob(f"{topic}-[0-9]*"):
            shutil.rmtree(logs / partition.name)
            shutil.copytree(partition, logs / partition.name)
