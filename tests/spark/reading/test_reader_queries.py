"""Whole queries on a real Spark: the plans, limits, restarts, commits and errors of our source, next to Spark's own connector."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from barnabas.client import Admin, NewPartitions
from pyspark_barnabas.errors import DataSourceError
from pyspark_barnabas.query_progress import readable
from pyspark_barnabas.read.progress_listener import GroupProgressListener
from tests.broker import TopicMaker
from tests.spark.reader_world import FIRST_MS, fill, planned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OURS = "barnabas"
SPARKS = "kafka"
DEADLINE_S = 120


@pytest.fixture(scope="module")
def topic(bootstrap: str, new_topic: TopicMaker) -> str:
    """Partitions of 40, 5 and 100 records."""
    name = new_topic("queries", partitions=3)
    fill(bootstrap, name, (40, 5, 100))
    return name


@pytest.fixture
def group(bootstrap: str, topic: str, request: pytest.FixtureRequest) -> Generator[Callable[[], list[int]], None, None]:
    """What is committed to the group of this test, by partition."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        name = group_of(request)

        def committed() -> list[int]:
            offsets = admin.list_consumer_group_offsets(name)[name]
            return [offset.offset for _, offset in sorted(offsets.items()) if offset is not None]

        yield committed


def group_of(request: pytest.FixtureRequest) -> str:
    return f"group-of-{request.node.name}"


def batch(spark: SparkSession, kind: str, bootstrap: str, **options: Any) -> DataFrame:
    return spark.read.format(kind).option("kafka.bootstrap.servers", bootstrap).options(**options).load()


def stream(spark: SparkSession, bootstrap: str, kind: str = OURS, **options: Any) -> DataFrame:
    reader = spark.readStream.format(kind).option("kafka.bootstrap.servers", bootstrap)
    return reader.options(**{"startingOffsets": "earliest", **options}).load()


Batches = dict[int, list[tuple[int, int]]]


def started(frame: DataFrame, batches: Batches, directory: Path, **trigger: Any) -> StreamingQuery:
    """Puts partition and offset of each row into `batches`, by the number of the batch."""

    def take(rows: DataFrame, number: int) -> None:
        batches[number] = sorted((row["partition"], row["offset"]) for row in rows.select("partition", "offset").collect())

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(directory))
    return writer.trigger(**trigger or {"availableNow": True}).start()


def finish(query: StreamingQuery) -> None:
    assert query.awaitTermination(DEADLINE_S), query.status


def sources_of(query: StreamingQuery) -> list[dict[str, Any]]:
    """What the progress of each batch with rows tells of its source."""
    return [json.loads(one.json)["sources"][0] for one in query.recentProgress if one.numInputRows]


def until(holds: Callable[[], bool], query: StreamingQuery) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert query.exception() is None
        assert time.monotonic() < deadline, (query.status, query.lastProgress)
        time.sleep(0.1)


def ranges_of(frame: DataFrame) -> list[tuple[int, int, int]]:
    """Partition, first and last offset of each task that had rows."""
    from pyspark.sql import functions as F

    tasks = frame.groupBy(F.spark_partition_id(), "partition").agg(F.min("offset").alias("first"), F.max("offset").alias("last"))
    return sorted((row["partition"], row["first"], row["last"] + 1) for row in tasks.collect())


def test_tasks_are_cut_as_sparks_connector_cuts_them(spark: SparkSession, bootstrap: str, topic: str) -> None:
    options = {"subscribe": topic, "minPartitions": 7, "maxRecordsPerPartition": 30}
    ours, theirs = (ranges_of(batch(spark, kind, bootstrap, **options)) for kind in (OURS, SPARKS))
    assert ours == theirs == planned(bootstrap, options)
    assert len(ours) == 7


def test_spark_hands_down_conditions_on_place_and_time(spark: SparkSession, bootstrap: str, topic: str) -> None:
    condition = f"partition in (0, 2) and offset >= 5 and timestamp >= timestamp_millis({FIRST_MS + 30_000}) and key is not null"
    ours, theirs = (batch(spark, kind, bootstrap, subscribe=topic).where(condition) for kind in (OURS, SPARKS))
    assert sorted(ours.select("partition", "offset").collect()) == sorted(theirs.select("partition", "offset").collect())
    plan = ours._jdf.queryExecution().executedPlan().toString()
    (left,) = (line for line in plan.splitlines() if "Filter" in line and "BatchScan" not in line)
    assert "key" in left  # what only Spark can answer is left to it
    assert not any(column in left for column in ("partition#", "offset#", "timestamp#"))


def test_without_push_down_nothing_is_pushed_and_nothing_breaks(spark: SparkSession, our_broker: str, our_topic: TopicMaker) -> None:
    topic = our_topic("unpushed", partitions=2)
    fill(our_broker, topic, (3, 2))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert batch(spark, OURS, our_broker, subscribe=topic).where("partition = 1").count() == 2
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_a_schema_chooses_columns(spark: SparkSession, our_broker: str, our_topic: TopicMaker) -> None:
    topic = our_topic("chosen", partitions=3)
    fill(our_broker, topic, (2, 2, 2))
    reader = spark.read.format(OURS).schema("offset long, partition int").option("kafka.bootstrap.servers", our_broker)
    frame = reader.option("subscribe", topic).option("filter", f"timestamp < {FIRST_MS + 1000}").load()
    assert sorted(tuple(row) for row in frame.collect()) == [(0, 0), (0, 1), (0, 2)]


def test_what_is_available_is_read_within_the_limit_and_committed_to_the_last(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path, group: Callable[[], list[int]], request: pytest.FixtureRequest
) -> None:
    options: dict[str, Any] = {"subscribe": topic, "maxOffsetsPerTrigger": 80, "kafka.group.id": group_of(request)}
    batches: Batches = {}
    query = started(stream(spark, bootstrap, **options), batches, tmp_path / "ours")
    finish(query)
    rows = sorted(row for held in batches.values() for row in held)
    assert rows == [(partition, offset) for partition, count in enumerate((40, 5, 100)) for offset in range(count)]
    assert group() == [40, 5, 100]
    theirs = started(stream(spark, bootstrap, SPARKS, **options), {}, tmp_path / "theirs")
    finish(theirs)
    ends, their_ends = ([source["endOffset"][topic] for source in sources_of(one)] for one in (query, theirs))
    assert ends == their_ends
    assert [len(batches[number]) for number in sorted(batches)] == [79, 66]
    shown = readable(query.recentProgress[0]).sources[0]
    assert shown.description == f"barnabas: subscribe {topic} at {bootstrap}"
    assert shown.metrics["offsetsBehindLatest"] == "66"


def test_a_restarted_query_goes_on_and_repeats_a_batch_that_was_not_finished(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = new_topic("restart", partitions=1)
    fill(bootstrap, topic, (3,))
    first: Batches = {}
    finish(started(stream(spark, bootstrap, subscribe=topic), first, tmp_path))
    (tmp_path / "commits" / "0").unlink()  # as if the driver had died before it noted that the batch was done
    (tmp_path / "commits" / ".0.crc").unlink()
    fill(bootstrap, topic, (2,))
    again: Batches = {}
    finish(started(stream(spark, bootstrap, subscribe=topic), again, tmp_path))
    assert first == {0: [(0, 0), (0, 1), (0, 2)]}
    assert again == {**first, 1: [(0, 3), (0, 4)]}


def test_partitions_that_come_under_a_query_are_read_and_stopping_loses_no_commit(
    spark: SparkSession,
    bootstrap: str,
    new_topic: TopicMaker,
    tmp_path: Path,
    group: Callable[[], list[int]],
    request: pytest.FixtureRequest,
) -> None:
    topic = new_topic("under", partitions=1)
    fill(bootstrap, topic, (2,))
    options = {"subscribe": topic, "kafka.group.id": group_of(request)}
    listener = GroupProgressListener({"kafka.bootstrap.servers": bootstrap, **options})
    spark.streams.addListener(listener)
    batches: Batches = {}
    query = started(stream(spark, bootstrap, **options), batches, tmp_path, processingTime="1 second")
    try:
        until(lambda: [(0, 0), (0, 1)] in batches.values(), query)
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_partitions({topic: NewPartitions(2)}).all()
        fill(bootstrap, topic, (0, 3))
        until(lambda: sum(map(len, batches.values())) == 5, query)
        until(lambda: group() == [2, 3], query)
    finally:
        query.stop()
        spark.streams.removeListener(listener)
        listener.close()


REFUSED: list[dict[str, str]] = [
    {"subscribe": ""},
    {"subscribe": "", "subscribePattern": ""},
    {"subscribe": "", "assign": "TOPIC"},
    {"subscribe": "", "assign": '{"TOPIC":0}'},
    {"assign": '{"TOPIC":[0]}'},
    {"subscribe": "no-such-topic"},
    {"minPartitions": "0"},
    {"minPartitions": "few"},
    {"maxRecordsPerPartition": "0"},
    {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
    {"startingOffsets": "latest"},
    {"startingOffsets": "first"},
    {"startingOffsets": '{"TOPIC":{"0":0}}'},
    {"startingOffsets": '{"TOPIC":{"0":-1,"1":0,"2":0}}'},
    {"startingOffsets": '{"TOPIC":{"0":5,"1":0,"2":0}}', "endingOffsets": '{"TOPIC":{"0":4,"1":0,"2":0}}'},
    {"startingOffsets": '{"TOPIC":{"0":5,"1":0,"2":0}}', "endingOffsets": '{"TOPIC":{"0":6,"1":0}}'},
    {"endingOffsets": "earliest"},
    {"endingOffsets": '{"TOPIC":{"0":-2,"1":-1,"2":-1}}'},
    {"startingTimestamp": "soon"},
    {"startingTimestamp": str(2**60)},
    {"startingTimestamp": "1", "startingOffsetsByTimestampStrategy": "guess"},
    {"startingOffsetsByTimestamp": '{"TOPIC":{"0":1}}'},
    {"kafka.auto.offset.reset": "earliest"},
    {"kafka.key.deserializer": "x"},
    {"kafka.value.deserializer": "x"},
    {"kafka.enable.auto.commit": "true"},
    {"kafka.interceptor.classes": "x"},
    {"kafka.bootstrap.servers": ""},
]


def test_what_sparks_connector_refuses_is_refused(spark: SparkSession, our_broker: str, our_topic: TopicMaker) -> None:
    topic = our_topic("refused", partitions=3)
    fill(our_broker, topic, (10, 10, 10))
    for refused in REFUSED:
        given = {"subscribe": topic, **{name: value.replace("TOPIC", topic) for name, value in refused.items()}}
        options = {name: value for name, value in given.items() if value or name != "subscribe"}
        retries = {"fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "1"}
        with pytest.raises(Exception):  # noqa: B017 - whatever Spark raises; that it does is what is asked
            batch(spark, SPARKS, our_broker, **{**options, **retries}).count()
        with pytest.raises(DataSourceError) as caught:
            planned(our_broker, options)
        names = [*refused, "subscribe", "subscribePattern", "assign"]
        assert any(f"'{name}'" in str(caught.value) for name in names), (options, str(caught.value))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"subscribe": "t", "startingOfsets": "earliest"},
            "Option 'startingofsets': is not known in reading. Did you mean 'startingOffsets'?",
        ),
        ({"startingOffsets": "earliest"}, "one of the options subscribe, subscribePattern, assign must be set"),
        ({"subscribe": "no-such-topic"}, "Option 'subscribe': there is no topic no-such-topic on the cluster"),
    ],
)
def test_spark_shows_what_is_wrong(spark: SparkSession, our_broker: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(PySparkException) as caught:
        batch(spark, OURS, our_broker, **options).count()
    first_line, _, rest = str(caught.value).partition("\n")
    assert message in first_line
    assert "Traceback (most recent call last)" in rest


def test_the_checkpoint_of_another_query_is_refused(spark: SparkSession, our_broker: str, our_topic: TopicMaker, tmp_path: Path) -> None:
    one, other = our_topic("one", partitions=1), our_topic("other", partitions=1)
    fill(our_broker, other, (1,))
    finish(started(stream(spark, our_broker, subscribe=other), {}, tmp_path))
    query = started(stream(spark, our_broker, subscribe=one), {}, tmp_path)
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination(DEADLINE_S)
    assert re.search(f"{other}-0, which this query does not read .*checkpointLocation", str(caught.value).partition("\n")[0])
