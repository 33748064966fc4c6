"""DataFrames and streams written to topics on a real Spark: the same records in the same places as Spark's own connector writes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.broker import TopicMaker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OURS = "barnabas"
SPARKS = "kafka"


@pytest.fixture
def read(spark: SparkSession, bootstrap: str) -> Callable[[str], list[dict[str, Any]]]:
    """All records of a topic, as Spark's own connector shows them to a read_committed reader."""

    def read(topic: str) -> list[dict[str, Any]]:
        reader = spark.read.format(SPARKS).option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
        reader = reader.option("includeHeaders", "true").option("kafka.isolation.level", "read_committed")
        return [row.asDict(recursive=True) for row in reader.load().orderBy("partition", "offset").collect()]

    return read


def write(rows: DataFrame, format_name: str, bootstrap: str, **options: str) -> None:
    rows.write.format(format_name).option("kafka.bootstrap.servers", bootstrap).options(**options).mode("append").save()


def contents(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["partition"], row["key"], row["value"], row["headers"]) for row in rows]


def test_keys_values_and_headers_lie_where_sparks_connector_puts_them_whatever_the_codec(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, read: Callable[[str], list[dict[str, Any]]]
) -> None:
    rows = spark.range(300).selectExpr(
        "cast(concat('key-', id) as binary) as key",
        "case when id % 7 = 0 then null else cast(repeat(cast(id as string), 1 + int(id % 5)) as binary) end as value",
        "case when id % 3 = 0 then array(named_struct('key', 'h', 'value', cast(cast(id as string) as binary))) end as headers",
    )
    ours = {codec: new_topic("written", partitions=4) for codec in ("none", "gzip", "snappy", "lz4", "zstd")}
    for codec, topic in ours.items():
        write(rows.coalesce(1), OURS, bootstrap, topic=topic, **{"kafka.compression.type": codec})
    sparks = new_topic("written", partitions=4)
    write(rows.coalesce(1), SPARKS, bootstrap, topic=sparks)
    found = read(",".join((sparks, *ours.values())))
    expected = contents([row for row in found if row["topic"] == sparks])
    assert len(expected) == 300
    for codec, topic in ours.items():
        assert contents([row for row in found if row["topic"] == topic]) == expected, codec


def test_partition_topic_and_timestamp_of_a_row_hold(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, read: Callable[[str], list[dict[str, Any]]]
) -> None:
    first, second = new_topic("first", partitions=3), new_topic("second", partitions=3)
    moment = datetime(2024, 5, 6, 7, 8, 9, 123000)
    rows = spark.createDataFrame(
        [(first, "a", 2, moment), (second, "b", 1, None), (first, "c", None, moment)],
        "topic string, value string, partition int, timestamp timestamp",
    )
    before = datetime.now(UTC).replace(tzinfo=None)
    write(rows, OURS, bootstrap)
    found = {row["value"]: row for topic in (first, second) for row in read(topic)}
    assert {bytes(value).decode(): row["topic"] for value, row in found.items()} == {"a": first, "b": second, "c": first}
    assert (found[b"a"]["partition"], found[b"b"]["partition"]) == (2, 1)
    assert found[b"a"]["timestamp"] == moment
    assert (found[b"b"]["timestamp"] - before).total_seconds() > -1


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ("id", {"topic": "t"}),
        ("cast(id as string) as value", {}),
        ("id as value", {"topic": "t"}),
        ("'v' as value, id as key", {"topic": "t"}),
        ("'v' as value, id as topic", {}),
        ("'v' as value, id as partition", {"topic": "t"}),
        ("'v' as value, id as headers", {"topic": "t"}),
        ("'v' as value, cast(null as string) as topic", {}),
    ],
)
def test_what_sparks_connector_refuses_is_refused_in_its_words(
    spark: SparkSession, our_broker: str, columns: str, options: dict[str, str]
) -> None:
    rows = spark.range(1).selectExpr(*columns.split(", "))
    messages = []
    for format_name in (SPARKS, OURS):
        with pytest.raises(Exception) as raised:
            write(rows, format_name, our_broker, **options)
        messages.append(str(raised.value))
    said = next(line for line in messages[0].splitlines() if "attribute" in line or "topic" in line)
    core = said[said.find("]") + 1 :].strip().split(" SQLSTATE")[0].lower().rstrip(".").replace('"', "")
    assert core.split(": ")[-1] in messages[1].lower().replace('"', "")


def test_a_stream_writes_every_row_and_goes_on_where_it_was(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, read: Callable[[str], list[dict[str, Any]]], tmp_path: Path
) -> None:
    source, target = new_topic("source", partitions=2), new_topic("target", partitions=3)
    for part in range(2):
        some = spark.range(part * 50, part * 50 + 50).selectExpr("cast(id as string) as key", "cast(id * 2 as string) as value")
        write(some, SPARKS, bootstrap, topic=source)
        stream = spark.readStream.format(SPARKS).option("kafka.bootstrap.servers", bootstrap).option("subscribe", source)
        query = (
            stream.option("startingOffsets", "earliest")
            .load()
            .select("key", "value")
            .writeStream.format(OURS)
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", target)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
        assert query.exception() is None
    assert sorted(int(row["value"]) for row in read(target)) == [number * 2 for number in range(100)]


def test_a_topic_that_is_not_there_is_named(spark: SparkSession, bootstrap: str) -> None:
    settings = {"kafka.max.block.ms": "1000", "topic": "no such topic!"}
    with pytest.raises(Exception, match="Invalid topics"):
        write(spark.range(1).selectExpr("'v' as value"), OURS, bootstrap, **settings)


def test_a_batch_too_large_for_the_topic_is_split(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, read: Callable[[str], list[dict[str, Any]]]
) -> None:
    topic = new_topic("small", max_message_bytes="3000")
    write(spark.range(100).coalesce(1).selectExpr("repeat(cast(id as string), 100) as value"), OURS, bootstrap, topic=topic)
    assert [row["value"] for row in read(topic)] == [str(number).encode() * 100 for number in range(100)]
