"""Partitions move between two brokers of Apache Kafka, told to by Kafka's tool and by ours, which print the same on the way."""

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

from barnabas.client.admin.admin import Admin
from tests import broker, kafka
from tests.integration.tools.runner import Target
from tests.integration.tools_ours.commands import KAFKA_ONLY, Command, run
from tests.integration.tools_ours.runner import run_all
from tests.integration.tools_ours.test_status_and_shell import Printed, tool
from tests.once import once

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parent / "java" / "TwoBrokers.java"
STARTED = re.compile("all nodes have started")
START_TIMEOUT_S = 120
TIMEOUT_S = 60
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
TOPICS = '{"topics":[{"topic":"WHO-far"}],"version":1}'
TOOL = "reassign-partitions"


def plan(replicas: str) -> str:
    return f'{{"version":1,"partitions":[{{"topic":"WHO-far","partition":0,"replicas":{replicas}}}]}}'


def reassign(name: str, words: str, file: str) -> Command:
    return run(f"{TOOL}: {name}", f"{words} --reassignment-json-file {{directory}}/file", file=file, brokers=KAFKA_ONLY)


def stages() -> list[list[Command]]:
    """After each stage what moves must have arrived, except after the first two, where a throttle holds it up."""
    away, both, back = plan("[2]"), plan("[1,2]"), plan("[1]")
    begun = [
        run("topics: made on one broker", "--create --topic {who}-far --replica-assignment 1", brokers=KAFKA_ONLY),
        run("producer-perf-test: filled", "--topic {who}-far --num-records 4000 --record-size 1000 --throughput -1", brokers=KAFKA_ONLY),
        run(f"{TOOL}: generated for a broker with room", "--generate --topics-to-move-json-file {directory}/file --broker-list 2",
            file=TOPICS, brokers=KAFKA_ONLY),
        reassign("begun slowly", "--execute --additional --throttle 1024", away),
    ]  # fmt: skip
    under_way = [
        run(f"{TOOL}: listed while they move", "--list", brokers=KAFKA_ONLY),
        reassign("verified while they move", "--verify", away),
        reassign("begun again while they move", "--execute", away),
        run("topics: described while they move", "--describe --topic {who}-far", brokers=KAFKA_ONLY),
        run("configs: throttles of the topic", "--describe --entity-type topics --entity-name {who}-far", brokers=KAFKA_ONLY),
        run("configs: throttles of a broker", "--describe --entity-type brokers --entity-name 2", brokers=KAFKA_ONLY, any_order=True),
        reassign("cancelled", "--cancel --preserve-throttles", away),
    ]
    cancelled = [
        run(f"{TOOL}: listed after that", "--list", brokers=KAFKA_ONLY),
        reassign("verified after that", "--verify", away),
        reassign("given another replica, which is forbidden", "--execute --disallow-replication-factor-change", both),
    ]
    doubled = [reassign("given another replica", "--execute --additional", both)]
    moved = [
        reassign("verified with two replicas", "--verify", both),
        reassign("taken one replica away", "--execute --additional", back),
    ]
    return [begun, under_way, cancelled, doubled, moved, [reassign("verified at the end", "--verify", back)]]


NAMES = [f"kafka: {command.name}" for stage in stages() for command in stage if not command.name.startswith("producer-perf-test")]


@contextmanager
def two_brokers(directory: Path) -> Generator[Target, None, None]:
    with ExitStack() as sockets:
        made = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        controller, first, second = (listener_socket.getsockname()[1] for listener_socket in made)
    jars = kafka.available(kafka.prepare)
    files = [directory / "1.properties", directory / "2.properties"]
    for number, (file, port) in enumerate(zip(files, (first, second), strict=True), 1):
        file.write_text(_properties(directory, number, port, controller))
        formatting = ["format", "-c", str(file), "-t", CLUSTER_ID, "--feature", "eligible.leader.replicas.version=0"]
        java = [*kafka.java(jars, kafka.QUIET), "kafka.tools.StorageTool"]
        subprocess.run([*java, *formatting], check=True, capture_output=True, timeout=120)
    command = kafka.source_command(jars, PROGRAM, *map(str, files))
    with broker.started(command, STARTED, START_TIMEOUT_S):
        target = Target(f"127.0.0.1:{first}", 1, directory)
        with Admin(bootstrap_servers=target.bootstrap) as admin:
            _wait_until(lambda: len(admin.describe_cluster().nodes) == 2)
        yield target


def _properties(directory: Path, number: int, port: int, controller: int) -> str:
    roles = "broker,controller" if number == 1 else "broker"
    listeners = f"PLAINTEXT://127.0.0.1:{port}" + (f",CONTROLLER://127.0.0.1:{controller}" if number == 1 else "")
    return f"""
process.roles={roles}
node.id={number}
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={directory}/logs{number}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.cleaner.dedupe.buffer.size=4194304
replica.fetch.max.bytes=65536
replica.fetch.response.max.bytes=65536
"""


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline


def _run(directory: Path) -> dict[str, list[str]]:
    with two_brokers(directory) as target, Admin(bootstrap_servers=target.bootstrap) as admin:
        printed: dict[str, list[str]] = {}
        for number, stage in enumerate(stages()):
            printed |= run_all(stage, {"kafka": target})
            if number >= 2:
                _wait_until(lambda: not admin.list_partition_reassignments())
            if number == 3:
                printed["replicas compared"] = _words(
                    tool("replica-verification", "--broker-list", target.bootstrap, "--topics-include", ".*-far", "--time", "-2", "--once")
                )
                printed["status"] = _words(tool("status", "--bootstrap-server", target.bootstrap, "--json"))
        return printed


def _words(printed: Printed) -> list[str]:
    return [str(printed.code), printed.out]


@pytest.fixture(scope="session")
def moving(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, list[str]]:
    """By command: what Kafka's tool printed, and what ours did."""
    made = once(tmp_path_factory, worker_id, "two-brokers.json", lambda: json.dumps(_run(tmp_path_factory.mktemp("two"))))
    result: dict[str, list[str]] = json.loads(made)
    return result


@pytest.mark.parametrize("name", NAMES)
def test_our_tool_prints_what_kafkas_prints(name: str, moving: dict[str, list[str]]) -> None:
    theirs, ours = moving[name]
    assert ours == theirs


def test_replicas_that_are_equal_are_found_to_be_so(moving: dict[str, list[str]]) -> None:
    code, printed = moving["replicas compared"]
    assert code == "0"
    assert printed.endswith(": verification process is started\n")


def test_status_knows_both_brokers(moving: dict[str, list[str]]) -> None:
    code, printed = moving["status"]
    health = json.loads(printed)
    assert (code, health["status"]) == ("0", "HEALTHY")
    assert health["controller"] == 1
    assert [broker["id"] for broker in health["brokers"]] == [1, 2]
    assert sum(each["replicas"] for each in health["brokers"]) == health["replicas"] == health["partitions"] + 2
