"""An Apache Kafka broker beside ours, for tests that compare the two: one node on free ports, with a data directory that is thrown away."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests import broker, kafka

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
STARTED = re.compile(r"Kafka Server started")
START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 60
LOGGING = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",  # says when it has started
)


@contextmanager
def running(directory: Path, node_id: int, settings: Mapping[str, str] | None = None, *, stop: bool = False) -> Generator[str, None, None]:
    """The bootstrap address of an Apache Kafka that runs as long as the block does; skips where there is no Java.

    It is killed at the end, which is faster, unless it is to `stop` and leave its files whole. One that has run in the directory before
    goes on with what it finds there.
    """
    port, controller_port = _free_ports()
    with broker.started(command(directory, node_id, port, controller_port, settings or {}), STARTED, START_TIMEOUT_S) as (process, _):
        yield f"127.0.0.1:{port}"
        if stop:
            process.terminate()
            process.wait(STOP_TIMEOUT_S)


def command(directory: Path, node_id: int, port: int, controller_port: int, settings: Mapping[str, str]) -> list[str]:
    """What starts it in this directory, which is made ready for it first."""
    jars = kafka.available(kafka.prepare)
    properties = _write_properties(directory, node_id, port, controller_port, settings)
    java = kafka.java(jars, "-Xmx512m", *LOGGING)
    # With eligible leader replicas, which only a Raft quorum keeps, it would set min.insync.replicas for all topics by itself.
    formatting = ["format", "-c", str(properties), "-t", CLUSTER_ID, "--feature", "eligible.leader.replicas.version=0"]
    if not logs_of(directory).exists():
        subprocess.run([*java, "kafka.tools.StorageTool", *formatting], check=True, capture_output=True, timeout=120)
    return [*java, "kafka.Kafka", str(properties)]


def prepared(directory: Path) -> tuple[Path, str]:
    """The properties of a broker in this directory, which is not formatted yet, and its bootstrap address."""
    port, controller_port = _free_ports()
    return _write_properties(directory, 1, port, controller_port, {}), f"127.0.0.1:{port}"


def logs_of(directory: Path) -> Path:
    """Where a Kafka that runs in this directory keeps its logs."""
    return directory / "logs"


def _write_properties(directory: Path, node_id: int, port: int, controller_port: int, settings: Mapping[str, str]) -> Path:
    properties = directory / "server.properties"
    more = "".join(f"{key}={value}\n" for key, value in settings.items())
    properties.write_text(_properties(logs_of(directory), node_id, port, controller_port) + more)
    return properties


def _properties(logs: Path, node_id: int, port: int, controller_port: int) -> str:
    return f"""
process.roles=broker,controller
node.id={node_id}
controller.quorum.voters={node_id}@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
log.dirs={logs}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        return first.getsockname()[1], second.getsockname()[1]
