"""The leader of a partition moves to another broker while a task reads it: each record is read once, in order. Without a Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable

from barnabas.client import Admin, NewTopic, TopicPartition
from barnabas.client.admin import ElectionType, NewPartitionReassignment
from tests import zookeeper
from tests.cluster import Cluster
from tests.spark.reader_world import batch_reader, stream_reader

TOPIC = "moving"
PARTITION = TopicPartition(TOPIC, 0)
RECORDS = 5_000
TIMEOUT_S = 90
SETTINGS = {
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "default.replication.factor": "2",
}
SMALL_FETCHES = {"kafka.max.partition.fetch.bytes": 16_384}  # a read takes many, and few of them are under way when the leader moves


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster, None, None]:
    """Two brokers; the first leads the topic."""
    directory = tmp_path_factory.mktemp("two")
    with zookeeper.running(_made(directory / "zookeeper")) as ensemble:
        cluster = Cluster(directory, f"{ensemble.address}/moving", SETTINGS, brokers=2)
        try:
            cluster.start()
            with Admin(bootstrap_servers=cluster.bootstrap) as admin:
                admin.create_topics([NewTopic(TOPIC, replicas_assignments={0: [1, 2]})]).all()
            write(cluster, RECORDS)
            yield cluster
            assert not cluster.tracebacks()
        finally:
            cluster.end()


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def write(cluster: Cluster, count: int) -> None:
    """In batches each of which is more than a fetch asks for: it then brings one."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "batch.num.messages": 100})
    for _ in range(count):
        producer.produce(TOPIC, bytes(200), partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def leader(cluster: Cluster) -> int:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        described = admin.describe_topics([TOPIC]).all()[TOPIC].partitions[0]
        return -1 if described.leader is None or len(described.isr) < 2 else described.leader.id


def move(cluster: Cluster, to: int) -> None:
    """Makes a broker the preferred leader, and elects it."""
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.alter_partition_reassignments({PARTITION: NewPartitionReassignment([to, 3 - to])}).all()
        wait(lambda: not admin.list_partition_reassignments())
        if leader(cluster) != to:
            admin.elect_leaders(ElectionType.PREFERRED, [PARTITION])
    wait(lambda: leader(cluster) == to)


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "the leader does not move"
        time.sleep(0.05)


def offsets(reader: DataSourceReader | DataSourceStreamReader, parts: list[Any], meanwhile: Callable[[], None]) -> list[int]:
    """The offsets that one task reads; after its first rows something happens."""
    (part,) = parts
    batches: Iterator[Any] = iter(reader.read(part))
    offsets: list[int] = next(batches).column("offset").to_pylist()
    assert len(offsets) <= 100
    meanwhile()
    for batch in batches:
        offsets += batch.column("offset").to_pylist()
    return offsets


def test_a_batch_is_exact_while_the_leader_moves(two: Cluster) -> None:
    before = leader(two)
    reader = batch_reader(two.bootstrap, {"subscribe": TOPIC, **SMALL_FETCHES})
    assert offsets(reader, list(reader.partitions()), lambda: move(two, 3 - before)) == list(range(RECORDS))
    assert leader(two) == 3 - before


def test_a_stream_is_exact_while_the_leader_moves_and_goes_on_with_the_new_one(two: Cluster) -> None:
    before = leader(two)
    reader = stream_reader(two.bootstrap, {"subscribe": TOPIC, "startingOffsets": "earliest", **SMALL_FETCHES})
    start = reader.initialOffset()
    middle = reader.latestOffset(start, ReadAllAvailable())
    assert offsets(reader, list(reader.partitions(start, middle)), lambda: move(two, 3 - before)) == list(range(RECORDS))
    write(two, 1_000)
    end = reader.latestOffset(middle, ReadAllAvailable())
    moved_back = offsets(reader, list(reader.partitions(middle, end)), lambda: move(two, before))
    assert moved_back == list(range(RECORDS, RECORDS + 1_000))
    reader.stop()


def test_a_read_goes_on_when_its_leader_is_killed(two: Cluster) -> None:
    """The last of this file: one broker is left."""
    killed = two.brokers[leader(two)]
    reader = batch_reader(two.bootstrap, {"subscribe": TOPIC, **SMALL_FETCHES, "endingOffsets": f'{{"{TOPIC}":{{"0":{RECORDS}}}}}'})
    assert offsets(reader, list(reader.partitions()), killed.kill) == list(range(RECORDS))
