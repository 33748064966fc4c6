"""Change data capture: the table holds the newest row of each key after every run, whatever was run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pyspark_barnabas.pipelines import change_capture
from pyspark_barnabas.pipelines.change_capture import Changes, Table
from pyspark_barnabas.pipelines.topics import ONCE, Source
from tests.broker import TopicMaker
from tests.spark.topic_contents import Sent, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_MS = 1_763_294_400_000


def change(key: str, value: Any, partition: int = 0) -> Sent:
    return Sent(key, None if value is None else json.dumps(value), AT_MS, partition)


def envelope(op: str, before: Any, after: Any) -> Sent:
    return change(str((before or after)["id"]), {"op": op, "before": before, "after": after, "ts_ms": AT_MS})


def rows(spark: SparkSession, table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in table.read(spark).collect())


def test_rows_are_inserted_changed_and_deleted_run_after_run(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, table = new_topic("customers", partitions=2), Table(str(tmp_path / "table"))
    changes = Changes(schema="id STRING, name STRING, age INT", keys=["id"])

    def run(checkpoint: str = "checkpoint") -> None:
        change_capture.start(spark, Source(bootstrap, topic), table, changes, str(tmp_path / checkpoint), ONCE).awaitTermination()

    send(
        bootstrap,
        topic,
        [change("1", {"id": "1", "name": "Ann", "age": 30}), change("2", {"id": "2", "name": "Bob"}, 1), change("3", {"id": "3"})],
    )
    send(bootstrap, topic, [change("1", {"id": "1", "name": "Anna", "age": 31}), change("3", None)])
    run()
    assert rows(spark, table) == [("1", "Anna", 31), ("2", "Bob", None)]
    send(
        bootstrap,
        topic,
        [change("2", None, 1), change("3", {"id": "3", "name": "Cyd"}), change("1", {"id": "1", "name": "Ann", "age": 32})],
    )
    run()
    expected = [("1", "Ann", 32), ("3", "Cyd", None)]
    assert rows(spark, table) == expected
    run("another-checkpoint")  # from the beginning again
    assert rows(spark, table) == expected
    assert len(list((tmp_path / "table" / "versions").iterdir())) == 2


def test_a_batch_that_runs_again_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(str(tmp_path))
    batch = spark.sql("select 1 id, 'a' name, 5L _sequence, false _deleted, 5L _offset")
    assert table.apply(batch, ["id"], 0, "q")
    assert not table.apply(batch, ["id"], 0, "q")
    later = spark.sql("select 1 id, 'b' name, 6L _sequence, false _deleted, 6L _offset")
    assert table.apply(later, ["id"], 1, "q")
    assert not table.apply(batch, ["id"], 0, "q")
    assert rows(spark, table) == [(1, "b")]


def test_debezium_envelopes_are_understood(spark: SparkSession, our_broker: str, our_topic: TopicMaker, tmp_path: Path) -> None:
    topic, table = our_topic("debezium"), Table(str(tmp_path / "table"))
    one, two = {"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}
    events = [envelope("r", None, one), envelope("c", None, two), envelope("u", one, {"id": 1, "name": "Anna"}), envelope("d", two, None)]
    send(our_broker, topic, [*events, change("2", None)])  # the last is the tombstone that Debezium adds
    changes = Changes(schema="id INT, name STRING", keys=["id"], debezium=True)
    change_capture.start(spark, Source(our_broker, topic), table, changes, str(tmp_path / "checkpoint"), ONCE).awaitTermination()
    assert rows(spark, table) == [(1, "Anna")]


def test_a_late_change_does_not_bring_back_a_deleted_row(
    spark: SparkSession, our_broker: str, our_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, table = our_topic("late", partitions=2), Table(str(tmp_path / "table"))
    changes = Changes(schema="id INT, name STRING, version INT, gone BOOLEAN", keys=["id"], sequence="version", deletes="gone")

    def run() -> None:
        change_capture.start(spark, Source(our_broker, topic), table, changes, str(tmp_path / "checkpoint"), ONCE).awaitTermination()

    send(our_broker, topic, [change("1", {"id": 1, "name": "new", "version": 5}), change("2", {"id": 2, "version": 9, "gone": True}, 1)])
    run()
    send(our_broker, topic, [change("1", {"id": 1, "name": "old", "version": 4}, 1), change("2", {"id": 2, "name": "back", "version": 8})])
    run()
    assert [row[:2] for row in rows(spark, table)] == [(1, "new")]


def test_a_change_that_cannot_be_decoded_ends_the_query_and_leaves_the_table(
    spark: SparkSession, our_broker: str, our_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, table = our_topic("broken"), Table(str(tmp_path / "table"))
    send(our_broker, topic, [change("1", {"id": 1}), Sent("2", "no json", AT_MS)])
    changes = Changes(schema="id INT", keys=["id"])
    query = change_capture.start(spark, Source(our_broker, topic), table, changes, str(tmp_path / "checkpoint"), ONCE)
    with pytest.raises(Exception, match=f"offset 1 of {topic}-0: a value is missing"):
        query.awaitTermination()
    with pytest.raises(FileNotFoundError, match="no table"):
        table.read(spark)
