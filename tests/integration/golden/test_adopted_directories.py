"""Directories that Apache Kafka 4.2 and 2.8 wrote, adopted, are served to Java's console consumer and to clients of Kafka 0.9 and 0.10."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import broker, clients, golden, kafka
from tests.integration.clients.client import BEGINNING, ProcessClient

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
OLD_CLIENT = Path(__file__).parents[1] / "clients" / "old_kafka_python.py"
ROOT = Path(__file__).parents[3]
DEADLINE_S = 60
NULL = "null"  # as the console consumer prints it

Pair = tuple[str | None, str | None]


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, str], None, None]:
    """The bootstrap addresses of the brokers that serve the directories, by the version of Kafka that wrote them."""
    with ExitStack() as brokers:
        served: dict[str, str] = {}
        for version in ("4.2.0", "2.8.2"):
            data = Path(shutil.copytree(golden.LOGS / f"kafka-{version}" / "first", tmp_path_factory.mktemp("adopted") / "data"))
            subprocess.run([sys.executable, "-m", "barnabas", "adopt", str(data)], capture_output=True, timeout=DEADLINE_S, check=True)
            served[version] = brokers.enter_context(broker.running(data, ["--host", "127.0.0.1"]))
        yield served


@pytest.mark.java
@pytest.mark.parametrize(
    ("version", "topic"),
    [("4.2.0", "g-zstd"), ("4.2.0", "g-compact"), ("2.8.2", "m082-gzip"), ("2.8.2", "m0100-lz4"), ("2.8.2", "m28-zstd")],
)
def test_the_console_consumer_prints_what_kafka_wrote(adopted: dict[str, str], version: str, topic: str) -> None:
    expected = dumped(version, topic)
    options = ["--partition", "0", "--offset", "earliest", "--max-messages", str(len(expected)), "--timeout-ms", "20000"]
    shown = ["--formatter-property", "print.key=true", "--formatter-property", "key.separator=|"]
    done = kafka.run(CONSOLE_CONSUMER, ["--bootstrap-server", adopted[version], "--topic", topic, *options, *shown])
    assert done.code == 0, done.err
    assert done.out.splitlines() == [f"{NULL if key is None else key}|{NULL if value is None else value}" for key, value in expected]


@pytest.mark.parametrize("age", ["0.9", "0.10.0"])
@pytest.mark.parametrize(
    ("version", "topic"), [("4.2.0", "g-gzip"), ("2.8.2", "m082-snappy"), ("2.8.2", "m0100-gzip"), ("2.8.2", "m28-none")]
)
def test_an_old_client_reads_what_kafka_wrote(adopted: dict[str, str], tmp_path: Path, age: str, version: str, topic: str) -> None:
    expected = dumped(version, topic)
    library = kafka.available(clients.old_kafka_python)
    command = [sys.executable, str(OLD_CLIENT), str(library), adopted[version], age]
    client = ProcessClient(command, tmp_path, {"PYTHONPATH": str(ROOT)})
    try:
        read = client.consume(topic, BEGINNING, len(expected))
    finally:
        client.close()
    assert [(decoded(record.key), decoded(record.value)) for record in read] == expected


def dumped(version: str, topic: str) -> list[Pair]:
    """Keys and values of partition 0, as Kafka's own dump shows them."""
    files = golden.read_dump(golden.LOGS / f"kafka-{version}" / "first" / f"{topic}-0", ".log").values()
    return [(record.key, record.payload) for file in files for batch in file.batches for record in batch.records]


def decoded(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
