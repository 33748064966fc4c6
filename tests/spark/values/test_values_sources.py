"""Values decoded in the source on a real Spark: inferred and registered schemas, dead letters, streams, and what stands beside them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from barnabas.client.serialization.avro import AvroSerializer
from barnabas.client.serialization.registry import SchemaRegistryClient
from tests import schema_registry
from tests.broker import TopicMaker
from tests.spark.topic_contents import Sent, read, send

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT_MS = 1_763_294_400_000


def load(spark: SparkSession, bootstrap: str, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    return reader.options(**options).load()


def of_values(**options: str) -> dict[str, str]:
    return {f"value.{name}": value for name, value in options.items()}


JSON_TEXTS = [
    '{"b": 1, "a": "x", "n": null, "e": "", "o": {}, "l": [1, 2.5], "s": {"y": true, "x": [{"q": 1}]}}',
    '{"b": 2.5, "a": null, "big": 12345678901234567890, "s": {"z": "t"}, "l": [], "m": 1}',
    "not json",
    '{"m": "text", "Z": false, "é": 1, "d": [[1], ["x"]]}',
]
CSV_TEXTS = ["1,x,true,2020-01-02,2020-01-02 03:04:05,1.5,,1", "2147483648,,false,2020-01-03,2020-01-02 03:04:05,2,,x"]


def test_inferred_columns_are_those_that_spark_infers(spark: SparkSession, our_broker: str, our_topic: TopicMaker) -> None:
    from pyspark.sql import functions as F

    topic = our_topic("inferred", partitions=2)
    send(our_broker, topic, [Sent(None, text, AT_MS, number % 2) for number, text in enumerate(JSON_TEXTS)])
    ours = load(spark, our_broker, topic, **of_values(format="json", inferSchema="true"))
    texts = load(spark, our_broker, topic).select(F.col("value").cast("string"))
    sparks = spark.read.option("mode", "DROPMALFORMED").json(texts.rdd.map(lambda row: row[0]))
    assert ours.schema["value"].dataType == sparks.schema
    assert {row.b for row in ours.select("value.b").collect()} == {1.0, 2.5, None}

    topic = our_topic("inferred-csv")
    send(our_broker, topic, [Sent(None, text, AT_MS) for text in CSV_TEXTS])
    ours = load(spark, our_broker, topic, **of_values(format="csv", inferSchema="true"))
    lines = load(spark, our_broker, topic).select(F.col("value").cast("string")).rdd.map(lambda row: row[0])
    assert ours.schema["value"].dataType == spark.read.option("inferSchema", "true").csv(lines).schema


def test_an_empty_topic_gives_no_schema_and_says_what_to_do(spark: SparkSession, our_broker: str, our_topic: TopicMaker) -> None:
    with pytest.raises(Exception, match=r"value\.inferSchema.*Set 'value\.schema'"):
        load(spark, our_broker, our_topic("empty"), **of_values(format="json", inferSchema="true")).schema  # noqa: B018


def test_dead_letters_are_sent_with_the_reason_and_the_rows_go_on(
    spark: SparkSession, bootstrap: str, new_topic: TopicMaker, tmp_path: Path
) -> None:
    topic, dead = new_topic("lively", partitions=2), new_topic("dead")
    values = ['{"a": 1}', "poison", '{"a": "x"}', None, '{"a": 4}']
    send(bootstrap, topic, [Sent(f"k{number}", text, AT_MS + number, number % 2, (("h", b"1"),)) for number, text in enumerate(values)])
    reader = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    reader = reader.option("startingOffsets", "earliest").option("includeHeaders", "true")
    rows = reader.options(**of_values(format="json", schema="a INT", deadLetterTopic=dead, flatten="true")).load()
    assert rows.columns == ["key", "a", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    query = (
        rows.writeStream.format("memory").queryName("lively").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    assert sorted((bytes(row.key).decode(), row.a) for row in spark.table("lively").collect()) == [("k0", 1), ("k3", None), ("k4", 4)]
    letters = sorted(read(bootstrap, dead), key=lambda letter: letter.key or "")
    assert [(letter.key, letter.value, letter.timestamp_ms) for letter in letters] == [
        ("k1", "poison", AT_MS + 1),
        ("k2", '{"a": "x"}', AT_MS + 2),
    ]
    assert letters[1].headers == (
        ("h", b"1"),
        ("__barnabas.errors.message", b"a: it is a text, not a whole number"),
        ("__barnabas.errors.format", b"json"),
        ("__barnabas.errors.topic", topic.encode()),
        ("__barnabas.errors.partition", b"0"),
        ("__barnabas.errors.offset", b"1"),
    )


def test_failfast_ends_the_query_with_the_place_of_the_record(spark: SparkSession, our_broker: str, our_topic: TopicMaker) -> None:
    topic = our_topic("failfast")
    send(our_broker, topic, [Sent(None, '{"a": 1}', AT_MS), Sent(None, "poison", AT_MS)])
    options = of_values(format="json", schema="a INT", mode="FAILFAST")
    with pytest.raises(Exception, match=f"offset 1 of {topic}-0 is no json of this schema"):
        load(spark, our_broker, topic, **options).collect()


def test_avro_of_a_registry_and_avro_of_a_given_schema_are_rows(spark: SparkSession, our_broker: str, our_topic: TopicMaker) -> None:
    from confluent_kafka import Producer

    schema: dict[str, Any] = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "counts", "type": {"type": "map", "values": "int"}},
        ],
    }
    datum = {"id": 1, "tags": ["a", "b"], "at": AT_MS, "counts": {"x": 1}}
    bare, framed = our_topic("avro"), our_topic("avro-framed")
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), datum)
    with schema_registry.running() as registry:
        serializer = AvroSerializer(schema, registry=SchemaRegistryClient({"schema.registry.url": registry.url}))
        producer = Producer({"bootstrap.servers": our_broker})
        producer.produce(bare, buffer.getvalue())
        producer.produce(framed, serializer.serialize(framed, datum))
        producer.produce(framed, b"poison")
        producer.flush()
        given = load(spark, our_broker, bare, **of_values(format="avro", schema=json.dumps(schema)))
        registered = load(spark, our_broker, framed, **{"value.format": "avro", "value.schema.registry.url": registry.url})
        expected = {"id": 1, "tags": ["a", "b"], "at": "2025-11-16 12:00:00", "counts": {"x": 1}}
        columns = ["value.id", "value.tags", "cast(value.at as string) at", "value.counts"]
        assert [row.asDict() for row in given.selectExpr(*columns).collect()] == [expected]
        rows = registered.orderBy("offset").selectExpr(*columns, "_corrupt.reason")
        first, second = (row.asDict() for row in rows.collect())
    assert first == {**expected, "reason": None}
    assert second["reason"] == "it does not begin with the number of a schema (Unknown magic byte!)"
