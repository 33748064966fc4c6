"""`barnabas backup` of a broker under load, and `barnabas restore`: what was acknowledged before, groups and transactions are there."""

from __future__ import annotations

import json
import re
import stat
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from barnabas import cli
from barnabas.client import Admin, NewTopic
from barnabas.client import Consumer as OurConsumer
from barnabas.client import Producer as OurProducer
from barnabas.metadata import paths
from barnabas.properties import parse_properties
from barnabas.tools.tree.zookeeper_tree import ZooKeeperCluster, on_cluster
from barnabas.topic_partition import TopicPartition as OurTopicPartition
from tests import broker, cluster, kafka, zookeeper
from tests.integration.cluster.describing import Description, until
from tests.integration.cluster.records import Acknowledged, consumed

FILLED = 3000  # records of a kilobyte: three segments
SEGMENT_BYTES = 1 << 20
NOTHING = re.compile("(?!)")
OPTIONS = ("--override", "replica.high.watermark.checkpoint.interval.ms=500")


class Transactions:
    """Writes pairs of records, one into each of two partitions, in transactions, until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.committed = 0
        self._topic = topic
        self._stop = threading.Event()
        self._producer = transactional(bootstrap)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._producer.init_transactions()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            write_pair(self._producer, self._topic, self.committed)
            self.committed += 1


def transactional(bootstrap: str) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "transactional.id": "pairs", "log_level": 0})


def write_pair(producer: Producer, topic: str, number: int) -> None:
    producer.begin_transaction()
    for partition in range(2):
        producer.produce(topic, f"{number}".encode(), partition=partition)
    producer.commit_transaction()


def committed_records(bootstrap: str, topic: str, partition: int) -> list[bytes]:
    """All records below the last stable offset. No transaction hangs: the last stable offset is the end of the log."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "check", "isolation.level": "read_committed", "enable.partition.eof": "true"}
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is None:
                values.append(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:
                return values
    finally:
        consumer.close()
    raise AssertionError(f"the end of {topic}-{partition} was not reached")


def fill(bootstrap: str, topic: str) -> None:
    failures: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "batch.num.messages": 10})
    for number in range(FILLED):
        producer.produce(topic, f"value-{number}".encode().ljust(1000), partition=0, on_delivery=delivered)
    producer.flush()
    assert failures == []


def commit(bootstrap: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed_offset(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    try:
        return int(consumer.committed([TopicPartition(topic, 0)], timeout=60)[0].offset)
    finally:
        consumer.close()


@pytest.mark.java
@pytest.mark.timeout(300)
def test_a_backup_under_load_has_all_that_was_acknowledged_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, backup, restored = tmp_path / "data", tmp_path / "backup", tmp_path / "restored"
    with broker.running(data, OPTIONS) as bootstrap:
        described = Description(bootstrap)
        described.create("t", 1, 1)
        described.create("pairs", 2, 1)
        described.create("filled", 1, 1, segment_bytes=str(SEGMENT_BYTES))
        fill(bootstrap, "filled")
        commit(bootstrap, "filled", 1234)
        checkpoint = data / "replication-offset-checkpoint"
        until(lambda: f"filled 0 {FILLED}" in checkpoint.read_text().splitlines(), "the high watermark is checkpointed")
        written, transactions = Acknowledged(bootstrap, "t"), Transactions(bootstrap, "pairs")
        written.start()
        transactions.start()
        written.wait_for_more(300)
        until(lambda: transactions.committed > 20, "transactions")
        acknowledged, pairs = sorted(written.values), transactions.committed
        assert cli.main(["backup", str(backup), "--bootstrap-server", bootstrap]) == 0
        assert "linked" in capsys.readouterr().out
        written.wait_for_more(100)
        transactions.stop()
        written.stop()

    copy = backup / "broker-1" / "log-dir-0"
    segments = sorted((copy / "filled-0").glob("*.log"))
    assert [path.stat().st_nlink for path in segments] == [2] * (len(segments) - 1) + [1] and len(segments) > 2
    for path in (*segments, *(copy / "t-0").glob("*.log")):
        dumped = kafka.dump_log(["--deep-iteration", "--files", str(path)])
        assert dumped.code == 0 and "isvalid: false" not in dumped.out and "Mismatches" not in dumped.out, dumped

    assert cli.main(["restore", str(backup), "--data", str(restored)]) == 0
    with broker.running(restored, OPTIONS) as bootstrap:
        there = consumed_all(bootstrap, "t")
        assert there[: len(acknowledged)] == acknowledged
        assert [value for _, value in there] == [f"value-{number}".encode() for number in range(len(there))]
        assert [value.strip() for _, value in consumed(bootstrap, "filled", FILLED)] == [f"value-{n}".encode() for n in range(FILLED)]
        assert committed_offset(bootstrap, "filled") == 1234
        check_pairs(bootstrap, pairs)
        commit(bootstrap, "filled", 2345)
        assert committed_offset(bootstrap, "filled") == 2345
    assert cli.main(["restore", str(backup), "--data", str(restored)]) == 1
    assert (
        capsys.readouterr().err
        == f"{restored} has data: stop its broker and move the directory away, or name another directory with --data\n"
    )


def test_a_log_directory_that_is_offline_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    good, failed, backup = tmp_path / "data", tmp_path / "file" / "disk", tmp_path / "backup"
    options = ("--override", f"log.dirs={good},{failed}")
    with broker.running(good, options, NOTHING) as bootstrap:
        assert cli.main(["backup", str(backup), "--bootstrap-server", bootstrap]) == 0
    assert capsys.readouterr().err.splitlines() == [f"WARNING: the log directory {failed} of broker 1 is offline, and not in the backup"]


def consumed_all(bootstrap: str, topic: str) -> list[tuple[int, bytes]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "end"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
    consumer.close()
    return consumed(bootstrap, topic, end)


def check_pairs(bootstrap: str, pairs: int) -> None:
    """The transactions committed before are there, both halves of each; the transactional id goes on, and no transaction hangs."""
    producer = transactional(bootstrap)
    producer.init_transactions()
    first, second = (committed_records(bootstrap, "pairs", partition) for partition in range(2))
    assert first == second == [f"{number}".encode() for number in range(len(first))]
    assert len(first) >= pairs
    write_pair(producer, "pairs", len(first))
    for partition in range(2):
        until(lambda partition=partition: committed_records(bootstrap, "pairs", partition)[-1:] == [b"%d" % len(first)], "one more")  # type: ignore[misc]


def alter_topic(bootstrap: str, topic: str, config: str) -> None:
    assert cli.main(["kafka-configs", "--bootstrap-server", bootstrap, "--alter", "--topic", topic, "--add-config", config]) == 0


async def expire_two_notifications(zookeeper_cluster: ZooKeeperCluster) -> None:
    """As brokers do after a quarter of an hour: the numbers of later notifications are then greater than their count."""
    children = await zookeeper_cluster.tree.children(paths.CONFIG_CHANGES)
    assert children is not None
    first, second, _ = sorted(children.names)
    for name in (first, second):
        await zookeeper_cluster.tree.delete(f"{paths.CONFIG_CHANGES}/{name}")


def is_too_large(bootstrap: str, topic: str, size: int) -> bool:
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce(topic, b"x" * size, on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    return [error and error.code() for error in errors] == [KafkaError.MSG_SIZE_TOO_LARGE]


@pytest.mark.timeout(300)
def test_a_cluster_on_zookeeper_is_restored_with_its_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "zookeeper").mkdir()
    backup, restored = tmp_path / "backup", tmp_path / "restored"
    with zookeeper.running(tmp_path / "zookeeper") as ensemble:
        with cluster.running(tmp_path, f"{ensemble.address}/first") as three:
            Description(three.bootstrap).create("t", 1, 3, min_insync_replicas="2", retention_ms="123456789")
            written = Acknowledged(three.bootstrap, "t")
            written.start()
            written.wait_for_more(300)
            acknowledged = sorted(written.values)
            for size in (200_000, 300_000, 400_000):
                alter_topic(three.bootstrap, "t", f"max.message.bytes={size}")
            on_cluster(f"{ensemble.address}/first", expire_two_notifications)
            assert cli.main(["backup", str(backup), "--bootstrap-server", three.bootstrap]) == 0
            written.wait_for_more(50)
            written.end()
        assert cli.main(["restore", str(backup), "--data", str(restored)]) == 1
        assert "name the chroot for it with --zookeeper" in capsys.readouterr().err
        tree = f"{ensemble.address}/second"
        assert cli.main(["restore", str(backup), "--data", str(restored), "--zookeeper", tree]) == 0
        again = cluster.Cluster(tmp_path, tree)
        for broker in again.brokers.values():
            broker.change({"log.dirs": str(restored / f"broker-{broker.id}")})
        try:
            again.start()
            described = Description(again.bootstrap)
            until(lambda: described.isr("t") == {1, 2, 3}, "all in sync")
            assert consumed(again.bootstrap, "t", len(acknowledged))[: len(acknowledged)] == acknowledged
            capsys.readouterr()
            cli.main(["kafka-configs", "--bootstrap-server", again.bootstrap, "--describe", "--topic", "t"])
            assert "retention.ms=123456789" in capsys.readouterr().out
            alter_topic(again.bootstrap, "t", "max.message.bytes=1000")
            until(lambda: is_too_large(again.bootstrap, "t", 5000), "the new config applies")
        finally:
            again.end()
        assert again.tracebacks() == []
    manifest = json.loads((backup / "manifest.json").read_text())
    assert [each["broker_id"] for each in manifest["brokers"]] == [1, 2, 3]


@pytest.mark.timeout(300)
def test_a_secured_broker_is_backed_up_and_restored_with_its_passwords_and_certificates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, backup, restored = tmp_path / "data", tmp_path / "backup", tmp_path / "restored"
    secure = ("--secure", *OPTIONS)
    with broker.running(data, secure) as bootstrap:
        client = client_config(data, bootstrap)
        with Admin(client) as admin:
            admin.create_topics([NewTopic("t", 1, 1)]).all()
        with OurProducer(client) as producer:
            for number in range(10):
                producer.send("t", f"{number}".encode())
        assert cli.main(["backup", str(backup), "--bootstrap-server", bootstrap]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
        assert not (backup / "manifest.json").exists()
        config = ("--command-config", str(data / "secure" / "client.properties"))
        assert cli.main(["backup", str(backup), "--bootstrap-server", bootstrap, *config]) == 0
    assert stat.S_IMODE((backup / "manifest.json").stat().st_mode) & 0o007 == 0
    assert cli.main(["restore", str(backup), "--data", str(restored)]) == 0
    assert f"Start it with: barnabas up --data {restored} --secure\n" in capsys.readouterr().out
    with broker.running(restored, secure) as bootstrap, OurConsumer(client_config(restored, bootstrap)) as consumer:
        consumer.assign([OurTopicPartition("t", 0)])
        consumer.seek_to_beginning([OurTopicPartition("t", 0)])
        values: list[object] = []
        until(lambda: values.extend(record.value for record in consumer.poll(1)) or len(values) == 10, "all records")  # type: ignore[func-returns-value]
        assert values == [f"{number}".encode() for number in range(10)]


def client_config(data: Path, bootstrap: str) -> dict[str, str]:
    """The settings of the clients of a secured broker, as `barnabas up --secure` writes them."""
    return {**parse_properties((data / "secure" / "client.properties").read_text()), "bootstrap.servers": bootstrap}
