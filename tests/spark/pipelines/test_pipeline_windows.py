"""Windowed aggregation of a topic into a topic: windows go out once, late records are left out and counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyspark_barnabas.pipelines import windows
from pyspark_barnabas.pipelines.topics import ONCE, Source, Target
from pyspark_barnabas.pipelines.windows import Windows
from tests.broker import TopicMaker
from tests.spark.queries import finish
from tests.spark.topic_contents import Sent, read, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NOON_MS = 1_763_294_400_000  # 2025-11-16T12:00:00Z
MINUTES = Windows(
    keys={"product": "product"},
    aggregates={"orders": "count(*)", "items": "sum(quantity)"},
    size="1 minute",
    lateness="10 seconds",
    schema="product string, quantity int",
)


def order(second: int, product: str, quantity: int) -> Sent:
    return Sent(product, json.dumps({"product": product, "quantity": quantity}), NOON_MS + second * 1000)


def row(minute: int, product: str, orders: int, items: int) -> dict[str, object]:
    start, end = (f"2025-11-16T12:{minute_of_hour:02d}:00.000Z" for minute_of_hour in (minute, minute + 1))
    return {"window_start": start, "window_end": end, "product": product, "orders": orders, "items": items}


def test_each_window_goes_out_once_and_late_records_are_left_out(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, tmp_path: Path
) -> None:
    orders, sales = new_topic("orders"), new_topic("sales")

    def run() -> StreamingQuery:
        target = Target(bootstrap, sales, transactional_id_prefix=f"windows-{sales}")
        return finish(lambda: windows.start(spark, Source(bootstrap, orders), target, MINUTES, str(tmp_path), ONCE))

    send(bootstrap, orders, [order(0, "apples", 3), order(59, "apples", 1), order(5, "pears", 2), order(75, "apples", 7)])
    run()
    first = read(bootstrap, sales)
    assert sorted((json.loads(record.value or "") for record in first), key=lambda each: str(each["product"])) == [
        row(0, "apples", 2, 4),
        row(0, "pears", 1, 2),
    ]
    assert {record.key for record in first} == {"apples", "pears"}
    assert {record.timestamp_ms for record in first} == {NOON_MS + 60_000}

    send(bootstrap, orders, [order(30, "apples", 100), order(62, "apples", 1), order(150, "pears", 5)])  # the first comes too late
    query = run()
    assert [json.loads(record.value or "") for record in read(bootstrap, sales)[2:]] == [row(1, "apples", 2, 8)]
    assert sum(state.numRowsDroppedByWatermark for progress in query.recentProgress for state in progress.stateOperators) == 1


def test_several_keys_make_a_key_in_json_and_windows_may_overlap(spark: SparkSession) -> None:
    twice = Windows(keys={"shop": "shop", "product": "product"}, size="2 minutes", slide="1 minute", schema="shop int, product string")
    records = spark.sql("select cast('{\"shop\": 1}' as binary) value, timestamp'2025-11-16T12:01:30Z' timestamp")
    rows = twice.records(twice.aggregated(records)).orderBy("timestamp").collect()
    assert [bytes(row.key) for row in rows] == [b'{"shop":1,"product":null}'] * 2
    assert [json.loads(row.value)["window_start"] for row in rows] == ["2025-11-16T12:00:00.000Z", "2025-11-16T12:01:00.000Z"]


def test_names_that_clash_are_refused() -> None:
    with pytest.raises(ValueError, match="a name of its own: count, count, window_start, window_end"):
        Windows(keys={"count": "key"})
