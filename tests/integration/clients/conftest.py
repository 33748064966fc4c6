"""The clients, each started when a test first asks for it and kept for the session."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests import clients, kafka
from tests.integration.clients.client import Client, ClientMaker, ProcessClient
from tests.integration.clients.python_clients import AioKafka, Confluent, KafkaPython

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PYTHON_CLIENTS: dict[str, Callable[[str], Client]] = {"confluent": Confluent, "kafka_python": KafkaPython, "aiokafka": AioKafka}


@pytest.fixture(scope="session")
def client_named(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[ClientMaker, None, None]:
    """A client by its name, such as `aiokafka`, `java-2.8.2` or `old_kafka_python-0.9`."""
    started: dict[str, Client] = {}

    def make(name: str) -> Client:
        if name not in started:
            started[name] = _make(name, bootstrap, tmp_path_factory.mktemp(name))
        return started[name]

    yield make
    for client in started.values():
        client.close()


def _make(name: str, bootstrap: str, directory: Path) -> Client:
    kind, _, version = name.partition("-")
    if kind == "java":
        jars = kafka.available(lambda: kafka.client_jars(version))
        program = "OldClient.java" if version.startswith("0.") else "Client.java"
        return ProcessClient(kafka.source_command(jars, HERE / "java" / program, bootstrap), directory)
    if kind == "kafkajs":
        modules = kafka.available(clients.kafkajs)
        environment = {"NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
        return ProcessClient(["node", str(HERE / "js" / "producer.js"), bootstrap], directory, environment)
    if kind == "old_kafka_python":
        library = kafka.available(clients.old_kafka_python)
        command = [sys.executable, str(HERE / "old_kafka_python.py"), str(library), bootstrap, version]
        return ProcessClient(command, directory, {"PYTHONPATH": str(ROOT)})
    return PYTHON_CLIENTS[name](bootstrap)
