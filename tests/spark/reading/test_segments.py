"""The direct reader on a real Spark: the directory of a broker read without the broker gives the rows that the broker gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from tests import broker, kafka_server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

FLUSH_S = 30


def fill(bootstrap: str) -> None:
    admin = broker.topic_maker(bootstrap, "x")
    plain, transactional = admin("plain", partitions=2), admin("transactional")
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "zstd", "linger.ms": 5, "batch.num.messages": 100})
    for number in range(2000):
        producer.produce(plain, b"value %d" % number, b"key %d" % number, headers=[("number", b"%d" % number)] if number % 3 else None)
    assert producer.flush(FLUSH_S) == 0
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer"})
    writer.init_transactions(FLUSH_S)
    for round_ in range(4):
        writer.begin_transaction()
        for number in range(5):
            writer.produce(transactional, b"%d %d" % (round_, number))
        writer.abort_transaction(FLUSH_S) if round_ % 2 else writer.commit_transaction(FLUSH_S)


def rows(frame: DataFrame) -> list[Row]:
    return frame.orderBy("topic", "partition", "offset").collect()


def from_broker(spark: SparkSession, bootstrap: str) -> list[Row]:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribePattern": ".*-x-.*", "includeHeaders": "true"}
    return rows(spark.read.format("kafka").options(**options, **{"kafka.isolation.level": "read_committed"}).load())


def from_files(spark: SparkSession, directory: Path, **options: str) -> list[Row]:
    return rows(spark.read.format("barnabas").options(logDirs=str(directory), includeHeaders="true", **options).load())


@pytest.mark.parametrize("kind", ["barnabas", "kafka"])
def test_files_give_the_rows_of_the_broker_while_it_runs_and_after_it_stopped(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    if kind == "kafka":
        running, directory = kafka_server.running(tmp_path, node_id=1, stop=True), kafka_server.logs_of(tmp_path)
    else:
        running, directory = broker.running(tmp_path / "data"), tmp_path / "data"
    with running as bootstrap:
        fill(bootstrap)
        expected = from_broker(spark, bootstrap)
        in_use = from_files(spark, directory, subscribePattern=".*-x-.*")
    assert len(expected) == 2010
    assert in_use == expected
    assert from_files(spark, directory, subscribePattern=".*-x-.*", minPartitions="8") == expected
    middle = expected[len(expected) // 2]
    frame = spark.read.format("barnabas").options(logDirs=str(directory), includeHeaders="true", subscribe=middle.topic).load()
    late = (frame["offset"] >= middle.offset) & (frame["timestamp"] >= middle.timestamp)
    some = frame.where((frame["partition"] == middle.partition) & late)
    assert rows(some) == [
        row
        for row in expected
        if (row.topic, row.partition) == (middle.topic, middle.partition)
        and row.offset >= middle.offset
        and row.timestamp >= middle.timestamp
    ]
