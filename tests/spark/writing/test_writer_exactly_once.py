"""The exactly-once writer under a real Spark: what Spark tells its tasks, restarts, replays, failures, and that another decides nothing."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.broker import TopicMaker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OURS = "barnabas"
SPARKS = "kafka"
QUERY_TIMEOUT_S = 240
_numbers = itertools.count()


@pytest.fixture
def put(spark: SparkSession, bootstrap: str) -> Callable[[str, range], None]:
    """Writes numbers into a topic."""

    def put(topic: str, numbers: range) -> None:
        rows = spark.range(numbers.start, numbers.stop).selectExpr("cast(id as string) as key", "cast(id as string) as value")
        rows.write.format(OURS).option("kafka.bootstrap.servers", bootstrap).option("topic", topic).mode("append").save()

    return put


@pytest.fixture
def read(spark: SparkSession, bootstrap: str) -> Callable[[str], list[int]]:
    """The numbers in a topic that a read_committed reader sees."""

    def read(topic: str) -> list[int]:
        reader = spark.read.format(SPARKS).option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
        rows = reader.option("kafka.isolation.level", "read_committed").load().selectExpr("cast(value as string) as value").collect()
        return sorted(int(row["value"]) for row in rows)

    return read


@pytest.fixture
def start(spark: SparkSession, bootstrap: str, tmp_path: Path) -> Callable[..., StreamingQuery]:
    """Runs all there is from one topic through a shuffle into another, exactly once."""
    prefix = f"spark-{next(_numbers)}-{tmp_path.name}"

    def start(source: str, target: str, change: Callable[[DataFrame], DataFrame] = lambda rows: rows, **options: str) -> StreamingQuery:
        stream = spark.readStream.format(SPARKS).option("kafka.bootstrap.servers", bootstrap).option("subscribe", source)
        stream = stream.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "40")
        query = (
            change(stream.load().selectExpr("cast(key as string) as key", "cast(value as string) as value").repartition(2, "key"))
            .writeStream.format(OURS)
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", target)
            .option("exactlyOnce", "true")
            .option("transactionalIdPrefix", prefix)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .options(**options)
            .trigger(availableNow=True)
            .start()
        )
        with suppress(StreamingQueryException):  # a test asks for it, and for what it says
            query.awaitTermination(QUERY_TIMEOUT_S)
        return query

    return start


def test_a_batch_that_spark_runs_again_is_not_written_again(
    new_topic: TopicMaker,
    put: Callable[[str, range], None],
    read: Callable[[str], list[int]],
    start: Callable[..., StreamingQuery],
    tmp_path: Path,
) -> None:
    source, target = new_topic("source", partitions=2), new_topic("target", partitions=2)
    put(source, range(100))
    first = start(source, target)
    assert first.exception() is None
    assert read(target) == list(range(100))
    commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in commits[-1:]:
        path.unlink()
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    put(source, range(100, 130))
    second = start(source, target)
    assert second.exception() is None
    assert second.id == first.id
    assert read(target) == list(range(130))


def test_a_checkpoint_that_was_rolled_back_with_other_rows_stops_the_query(
    new_topic: TopicMaker,
    put: Callable[[str, range], None],
    read: Callable[[str], list[int]],
    start: Callable[..., StreamingQuery],
    tmp_path: Path,
) -> None:
    source, target = new_topic("source", partitions=1), new_topic("target", partitions=1)
    put(source, range(10))
    assert start(source, target).exception() is None
    for directory in ("commits", "offsets"):
        shutil.rmtree(tmp_path / "checkpoint" / directory)
    put(source, range(10, 15))
    failed = start(source, target)
    assert "is now repeated with 15 rows instead of 10" in str(failed.exception())
    assert read(target) == list(range(10))


def test_a_task_that_fails_leaves_nothing_behind(
    new_topic: TopicMaker, put: Callable[[str, range], None], read: Callable[[str], list[int]], start: Callable[..., StreamingQuery]
) -> None:
    source, target = new_topic("source", partitions=2), new_topic("target", partitions=2)
    put(source, range(30))
    poisoned = start(
        source, target, lambda rows: rows.selectExpr("key", "case when key = '7' then raise_error('poison') else value end as value")
    )
    assert "poison" in str(poisoned.exception())
    assert read(target) == []
    assert start(source, target).exception() is None
    assert read(target) == list(range(30))


@pytest.mark.parametrize(
    ("options", "named"), [({"transactionalIdPrefix": ""}, "transactionalIdPrefix"), ({"kafka.acks": "1"}, "kafka.acks")]
)
def test_a_wrong_option_is_named_in_the_error_of_the_query(
    new_topic: TopicMaker, start: Callable[..., StreamingQuery], options: dict[str, Any], named: str
) -> None:
    source = new_topic("source")
    try:
        said = str(start(source, source, **options).exception())
    except Exception as error:
        said = str(error)
    assert named in said
