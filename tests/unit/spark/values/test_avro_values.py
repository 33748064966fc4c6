"""Avro values: what fastavro writes comes back, with Spark's types; by a schema that is given, and by those of a registry."""

from __future__ import annotations

import datetime as dt
import io
import json
import pickle
import struct
from collections.abc import Generator
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from barnabas.client.serialization.avro import AvroSerializer
from barnabas.client.serialization.registry import SchemaRegistryClient
from pyspark_barnabas import values
from pyspark_barnabas.errors import DataSourceError, OptionError
from tests import schema_registry

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "small", "type": "int"},
        {"name": "ok", "type": "boolean"},
        {"name": "ratio", "type": ["float", "null"]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "exactly", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "wall", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "items", "type": {"type": "array", "items": {"type": "record", "name": "Item", "fields": [{"name": "x", "type": "int"}]}}},
        {"name": "best", "type": ["null", "Item"]},
        {"name": "times", "type": {"type": "map", "values": {"type": "long", "logicalType": "timestamp-millis"}}},
        {"name": "either", "type": ["int", "long", "null"]},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
    ],
}
AT = dt.datetime(2020, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC)
DATUM: dict[str, Any] = {
    "id": 2**40, "name": "é", "small": -5, "ok": True, "ratio": 0.5, "price": Decimal("12.34"), "day": dt.date(2020, 2, 29), "at": AT,
    "exactly": AT, "wall": AT.replace(tzinfo=None), "state": "SENT", "hash": b"\0\1\2\3", "tags": ["a", "b"],
    "counts": {"x": 1}, "items": [{"x": 1}, {"x": 2}],
    "best": {"x": 3}, "times": {"t": AT}, "either": 2**33, "uuid": "12345678-1234-5678-1234-567812345678", "clock": dt.time(3, 4, 5),
}  # fmt: skip
ROW = {**DATUM, "counts": [("x", 1)], "times": [("t", AT)], "clock": 11_045_000}


def written(schema: Any, datum: Any) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), datum)
    return buffer.getvalue()


def decode(options: dict[str, str], *rows: bytes | None) -> list[dict[str, Any]]:
    decoder = values.decoder({"value.format": "avro", "subscribe": "orders", **options})
    assert decoder is not None
    decoder = pickle.loads(pickle.dumps(decoder))  # as Spark sends it to its workers
    result: list[dict[str, Any]] = decoder.decode(pa.record_batch({"value": pa.array(rows, pa.binary())})).to_pylist()
    return result


def test_every_type_comes_back() -> None:
    (row,) = decode({"value.schema": json.dumps(ORDER)}, written(ORDER, DATUM))
    assert row["_corrupt"] is None
    assert row["value"] == ROW


def test_the_columns_have_the_types_of_from_avro() -> None:
    decoder = values.decoder({"value.format": "avro", "value.schema": json.dumps(ORDER)})
    assert decoder is not None
    assert decoder.schema()["value"].dataType.simpleString() == (
        "struct<id:bigint,name:string,small:int,ok:boolean,ratio:float,price:decimal(9,2),day:date,at:timestamp,exactly:timestamp,"
        "wall:timestamp_ntz,state:string,hash:binary,tags:array<string>,counts:map<string,bigint>,items:array<struct<x:int>>,"
        "best:struct<x:int>,times:map<string,timestamp>,either:bigint,uuid:string,clock:int>"
    )


def test_many_rows_with_nulls_between_keep_their_places() -> None:
    rows = [None if number % 5 == 0 else written(ORDER, {**DATUM, "id": number, "tags": ["t"] * (number % 3)}) for number in range(50)]
    result = decode({"value.schema": json.dumps(ORDER)}, *rows)
    assert [row["value"] and (row["value"]["id"], len(row["value"]["tags"])) for row in result] == [
        None if number % 5 == 0 else (number, number % 3) for number in range(50)
    ]


def test_bytes_that_are_no_such_record_are_malformed() -> None:
    whole = written(ORDER, DATUM)
    result = decode({"value.schema": json.dumps(ORDER)}, whole[:20], b"", b"\xff" * 40, whole)
    assert [row["_corrupt"] is not None for row in result] == [True, True, True, False]
    assert result[0]["value"]["id"] is None


def test_a_bare_type_is_a_column_of_that_type() -> None:
    assert decode({"value.schema": '"string"'}, written("string", "x")) == [{"value": "x", "_corrupt": None}]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('["int", "string"]', "union of several types"),
        ('{"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}', "refers to itself"),
        ('{"type": "record"}', "no Avro schema"),
        ("{", "no Avro schema"),
    ],
)
def test_a_schema_that_no_table_can_have_is_refused_with_the_reason(schema: str, message: str) -> None:
    with pytest.raises(OptionError, match=f"value.schema.*{message}"):
        values.decoder({"value.format": "avro", "value.schema": schema})


@pytest.fixture
def registry() -> Generator[schema_registry.Registry, None, None]:
    with schema_registry.running() as registry:
        yield registry


OLD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
NEW = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": "-"}]}


def test_values_of_several_versions_are_read_into_the_latest(registry: schema_registry.Registry) -> None:
    client = SchemaRegistryClient({"schema.registry.url": registry.url})
    rows = [
        AvroSerializer(schema, registry=client).serialize("orders", datum)
        for schema, datum in ((OLD, {"id": 1}), (NEW, {"id": 2**40, "note": "x"}), (OLD, {"id": 3}))
    ]
    result = decode({"value.schema.registry.url": registry.url}, *rows, None)
    assert [row["value"] for row in result] == [{"id": 1, "note": "-"}, {"id": 2**40, "note": "x"}, {"id": 3, "note": "-"}, None]


def test_a_chosen_version_says_the_columns(registry: schema_registry.Registry) -> None:
    client = SchemaRegistryClient({"schema.registry.url": registry.url})
    first = AvroSerializer(OLD, registry=client).serialize("orders", {"id": 1})
    AvroSerializer(NEW, registry=client).serialize("orders", {"id": 2, "note": "x"})
    options = {"value.schema.registry.url": registry.url, "value.schema.version": "1", "value.schema.subject": "orders-value"}
    assert decode(options, first)[0]["value"] == {"id": 1}


def test_a_value_without_a_frame_or_with_an_unknown_schema_is_malformed(registry: schema_registry.Registry) -> None:
    client = SchemaRegistryClient({"schema.registry.url": registry.url})
    good = AvroSerializer(OLD, registry=client).serialize("orders", {"id": 1})
    result = decode({"value.schema.registry.url": registry.url}, good, b"\2", b"\0\0\0", struct.pack(">bI", 0, 77) + b"\2")
    reasons = [row["_corrupt"] and row["_corrupt"]["reason"] for row in result]
    assert reasons == [
        None,
        "it does not begin with the number of a schema (Unknown magic byte!)",
        "it is too short to name its schema",
        "the registry has no schema 77",
    ]


def test_a_registry_that_fails_fails_the_task_and_makes_no_record_malformed(registry: schema_registry.Registry) -> None:
    client = SchemaRegistryClient({"schema.registry.url": registry.url})
    good = AvroSerializer(OLD, registry=client).serialize("orders", {"id": 1})
    decoder = values.decoder(
        {"value.format": "avro", "subscribe": "orders", "value.schema.registry.url": registry.url, "value.max.retries": "0"}
    )
    assert decoder is not None
    registry.failures.extend([500] * 5)
    with pytest.raises(DataSourceError, match=r"value\.schema\.registry\.url"):
        decoder.decode(pa.record_batch({"value": pa.array([good], pa.binary())}))


def test_an_unknown_subject_is_named(registry: schema_registry.Registry) -> None:
    with pytest.raises(OptionError, match=r"value\.schema\.subject.*no subject 'orders-value'"):
        decode({"value.schema.registry.url": registry.url})
