"""Directories written by Apache Kafka 4.2 (KRaft) and 2.8 (ZooKeeper mode), adopted and served: clients read what Kafka's dump shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from barnabas.tools.command_line.exit_codes import ExitCode
from tests import broker, golden

DEADLINE_S = 30
VERSIONS = ["4.2.0", "2.8.2"]
TOPICS = [directory for directory in golden.partitions() if directory.parent.name == "first" and not golden.is_internal(directory)]


@dataclass(frozen=True)
class Adopted:
    data: Path
    bootstrap: str
    printed: str


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, Adopted], None, None]:
    with serving(tmp_path_factory, "4.2.0") as new, serving(tmp_path_factory, "2.8.2") as old:
        yield {"4.2.0": new, "2.8.2": old}


@contextmanager
def serving(factory: pytest.TempPathFactory, version: str) -> Generator[Adopted, None, None]:
    data = copied(factory.mktemp("adopted"), version)
    done = adopt(data)
    assert done.returncode == 0, done.stderr
    with broker.running(data, ["--host", "127.0.0.1"]) as bootstrap:
        yield Adopted(data, bootstrap, done.stdout)


def copied(tmp_path: Path, version: str) -> Path:
    return Path(shutil.copytree(golden.LOGS / f"kafka-{version}" / "first", tmp_path / "data"))


def adopt(*arguments: Path | str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas", "adopt", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def consumed(bootstrap: str, topic: str, isolation: str = "read_uncommitted") -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of every record of partition 0, from its beginning to its end."""
    settings = {"group.id": "reader", "enable.partition.eof": True, "check.crcs": True, "enable.auto.commit": False}
    consumer = Consumer({**settings, "bootstrap.servers": bootstrap, "isolation.level": isolation, "auto.offset.reset": "earliest"})
    contents: list[tuple[int, bytes | None, bytes | None]] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, f"nothing more of {topic} after {len(contents)} records"
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return contents
            offset = message.offset()
            assert offset is not None
            contents.append((offset, message.key(), message.value()))
    finally:
        consumer.close()


def dumped(directory: Path) -> list[tuple[int, bytes | None, bytes | None]]:
    """What Kafka's own dump shows of the partition, without control records."""
    return [
        (int(record.fields["offset"]), encoded(record.key), encoded(record.payload))
        for file in golden.read_dump(directory, ".log").values()
        for batch in file.batches
        if batch.fields.get("isControl") != "true"
        for record in batch.records
    ]


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def start_offsets(directory: Path) -> dict[str, int]:
    lines = [line.split() for line in (directory / "log-start-offset-checkpoint").read_text().splitlines()[2:]]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in lines}


@pytest.mark.parametrize("directory", TOPICS, ids=golden.name)
def test_clients_read_what_kafka_wrote(adopted: dict[str, Adopted], directory: Path) -> None:
    version = directory.parents[1].name.removeprefix("kafka-")
    start = start_offsets(directory.parent).get(directory.name, 0)
    expected = [record for record in dumped(directory) if record[0] >= start]
    assert consumed(adopted[version].bootstrap, directory.name.rpartition("-")[0]) == expected


def test_aborted_transactions_stay_aborted(adopted: dict[str, Adopted]) -> None:
    every = consumed(adopted["4.2.0"].bootstrap, "g-txn")
    committed = consumed(adopted["4.2.0"].bootstrap, "g-txn", "read_committed")
    assert 0 < len(committed) < len(every)
    assert set(committed) < set(every)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_topic_is_listed(adopted: dict[str, Adopted], version: str) -> None:
    metadata: Any = AdminClient({"bootstrap.servers": adopted[version].bootstrap}).list_topics(timeout=DEADLINE_S)
    expected = {directory.name.rpartition("-")[0] for directory in adopted[version].data.iterdir() if (directory / "DUMP.txt").exists()}
    made_since = {"__consumer_offsets"} - expected  # by the consumers of the other tests
    assert set(metadata.topics) - made_since == expected - {"__cluster_metadata"}


@pytest.mark.parametrize("version", VERSIONS)
def test_cluster_and_node_stay_the_same(adopted: dict[str, Adopted], version: str) -> None:
    metadata: Any = AdminClient({"bootstrap.servers": adopted[version].bootstrap}).list_topics(timeout=DEADLINE_S)
    expected = {"4.2.0": ("MkU3OEVBNTcwNTJENDM2Qg", [1]), "2.8.2": ("GJgbVD27Q5mnbFAPsF86-Q", [0])}
    assert (metadata.cluster_id, list(metadata.brokers)) == expected[version]


def test_settings_of_topics_are_kept(adopted: dict[str, Adopted]) -> None:
    admin = AdminClient({"bootstrap.servers": adopted["4.2.0"].bootstrap})
    (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "g-compact")]).values()
    configs = {name: entry.value for name, entry in described.result(DEADLINE_S).items()}
    assert (configs["cleanup.policy"], configs["segment.ms"]) == ("compact", "5000")


@pytest.mark.parametrize(("version", "topic"), [("4.2.0", "g-none"), ("2.8.2", "m082-none"), ("2.8.2", "m0100-gzip")])
def test_an_adopted_topic_is_written_on(tmp_path: Path, version: str, topic: str) -> None:
    data = copied(tmp_path, version)
    assert adopt(data).returncode == 0
    with broker.running(data, ["--host", "127.0.0.1"]) as bootstrap:
        before = consumed(bootstrap, topic)
        delivered: list[int | None] = []
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        producer.produce(topic, b"new", b"key", partition=0, on_delivery=lambda error, message: delivered.append(message.offset()))
        assert producer.flush(DEADLINE_S) == 0
        assert consumed(bootstrap, topic) == [*before, (before[-1][0] + 1, b"key", b"new")]
        assert delivered == [before[-1][0] + 1]


def test_adopting_again_says_that_all_is_known(tmp_path: Path) -> None:
    data = copied(tmp_path, "4.2.0")
    assert adopt(data).returncode == 0
    done = adopt(data)
    assert done.returncode == 0
    assert "Adopted 0 topics; 16 were known already." in done.stdout


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    data = copied(tmp_path, "4.2.0")
    before = sorted(path.name for path in data.iterdir())
    done = adopt("--dry-run", data)
    assert done.returncode == 0
    assert "Nothing was written" in done.stdout
    assert sorted(path.name for path in data.iterdir() if path.name != ".lock") == before


def test_it_prints_what_it_found(adopted: dict[str, Adopted]) -> None:
    printed = adopted["4.2.0"].printed
    assert "Apache Kafka (KRaft), cluster MkU3OEVBNTcwNTJENDM2Qg, node 1" in printed
    assert "configs=index.interval.bytes=300,retention.ms=-1,segment.ms=10000" in printed
    assert f"barnabas up --data {adopted['4.2.0'].data}" in printed


def test_a_directory_in_use_is_refused(adopted: dict[str, Adopted]) -> None:
    done = adopt(adopted["4.2.0"].data)
    assert (done.returncode, done.stderr.count("\n")) == (ExitCode.DIRECTORY_IN_USE, 1)


def test_a_directory_that_is_not_kafkas_is_refused(tmp_path: Path) -> None:
    done = adopt(tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (ExitCode.FOREIGN_DIRECTORY, 1)
    assert "no log directory of Apache Kafka" in done.stderr


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = adopt(tmp_path / "missing")
    assert done.returncode == ExitCode.FOREIGN_DIRECTORY
    assert not (tmp_path / "missing").exists()


def test_missing_partitions_are_refused_unless_they_may_begin_empty(tmp_path: Path) -> None:
    data = copied(tmp_path, "4.2.0")
    shutil.rmtree(data / "g-gzip-0")
    refused = adopt(data)
    assert refused.returncode == ExitCode.FOREIGN_DIRECTORY
    assert "these partitions are not here: g-gzip-0" in refused.stderr
    assert adopt("--create-missing", data).returncode == 0
    with broker.running(data, ["--host", "127.0.0.1"]) as bootstrap:
        assert consumed(bootstrap, "g-gzip") == []
