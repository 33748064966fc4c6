"""Clean, validate, route: every record comes out once, on its way or as a dead letter that says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyspark_barnabas.pipelines import route
from pyspark_barnabas.pipelines.route import Routes
from pyspark_barnabas.pipelines.topics import ONCE, Source, Target
from tests.broker import TopicMaker
from tests.spark.topic_contents import Sent, read, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_MS = 1_763_294_400_000


def test_records_go_where_their_content_says_and_wrong_ones_to_dead_letters(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, tmp_path: Path
) -> None:
    orders, big, small, dead = (new_topic(hint) for hint in ("orders", "big", "small", "dead"))
    routes = Routes(
        dead_letters=dead,
        schema="product STRING, quantity INT",
        clean={"product": "lower(trim(product))"},
        checks={"quantity is positive": "quantity > 0", "product is named": "product <> ''"},
        routes={big: "quantity >= 100", small: "quantity < 50"},
    )
    values = [
        '{"product": " Apples ", "quantity": 3}',
        '{"product": "Pears", "quantity": 100}',
        '{"product": "Plums", "quantity": "many"}',
        '{"product": "Plums", "quantity": 0}',
        '{"product": "Plums", "quantity": 70}',
        "no json",
        None,
        '{"quantity": 5}',
    ]
    send(
        bootstrap, orders, [Sent(f"k{number}", value, AT_MS + number, headers=(("from", b"shop"),)) for number, value in enumerate(values)]
    )
    target = Target(bootstrap, transactional_id_prefix=f"route-{orders}")
    route.start(spark, Source(bootstrap, orders), target, routes, str(tmp_path), ONCE).awaitTermination()
    assert [(record.key, json.loads(record.value or "")) for record in read(bootstrap, small)] == [
        ("k0", {"product": "apples", "quantity": 3})
    ]
    assert [(record.key, json.loads(record.value or "")) for record in read(bootstrap, big)] == [
        ("k1", {"product": "pears", "quantity": 100})
    ]
    letters = read(bootstrap, dead)
    assert {record.key: record.value for record in letters} == {f"k{number}": values[number] for number in range(2, 8)}
    reasons = {record.key: dict(record.headers)["__barnabas.errors.message"] for record in letters}
    assert reasons == {
        "k2": b"malformed: quantity: it is a text, not a whole number",
        "k3": b"check: quantity is positive",
        "k4": b"no route: no condition is true of it",
        "k5": b"malformed: a value is missing, at character 1",
        "k6": b"malformed: there is no value",
        "k7": b"check: product is named",
    }
    third = next(record for record in letters if record.key == "k3")
    assert third.timestamp_ms == AT_MS + 3
    assert third.headers == (
        ("from", b"shop"),
        ("__barnabas.errors.message", b"check: quantity is positive"),
        ("__barnabas.errors.topic", orders.encode()),
        ("__barnabas.errors.partition", b"0"),
        ("__barnabas.errors.offset", b"3"),
    )

    send(bootstrap, orders, [Sent("again", '{"product": "x", "quantity": 1}', AT_MS)])
    route.start(spark, Source(bootstrap, orders), target, routes, str(tmp_path), ONCE).awaitTermination()
    assert [record.key for record in read(bootstrap, small)] == ["k0", "again"]
    assert len(read(bootstrap, dead)) == 6


def test_without_cleaning_values_pass_as_they_came(spark: SparkSession, our_broker: str, our_topic: TopicMaker, tmp_path: Path) -> None:
    lines, kept, dead = our_topic("lines"), our_topic("kept"), our_topic("dead")
    send(our_broker, lines, [Sent(None, "1,a", AT_MS), Sent(None, "x,b", AT_MS)])
    source = Source(our_broker, lines, options={"value.format": "csv", "value.schema": "number INT, name STRING"})
    routes = Routes(dead_letters=dead, otherwise=kept, checks={"from the right topic": f"record.topic = '{lines}'"})
    route.start(spark, source, Target(our_broker), routes, str(tmp_path), ONCE).awaitTermination()
    assert [record.value for record in read(our_broker, kept)] == ["1,a"]
    assert [record.value for record in read(our_broker, dead)] == ["x,b"]


def test_routes_that_lose_records_or_mix_them_are_refused() -> None:
    with pytest.raises(ValueError, match="dead_letters"):
        Routes(dead_letters="", otherwise="a")
    with pytest.raises(ValueError, match="routes"):
        Routes(dead_letters="d")
    with pytest.raises(ValueError, match="topic of dead letters"):
        Routes(dead_letters="d", routes={"d": "true"})
    with pytest.raises(ValueError, match="in one place"):
        Routes(dead_letters="d", otherwise="a").source(Source("localhost:9092", "t"))
