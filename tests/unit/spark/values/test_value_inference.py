"""Schemas inferred from texts and from JSON Schema. tests/spark/values/test_values_sources.py compares them with what Spark infers."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from barnabas.client.serialization.json_schema import JsonSchemaSerializer
from barnabas.client.serialization.registry import SchemaRegistryClient
from pyspark_barnabas import values
from pyspark_barnabas.errors import SchemaError
from pyspark_barnabas.values.csv.csv_inference import infer_csv
from pyspark_barnabas.values.csv.csv_text import CsvSyntax
from pyspark_barnabas.values.json.json_inference import infer_json
from pyspark_barnabas.values.json.json_schema import struct_of_json_schema
from pyspark_barnabas.values.text.times import Times
from tests import schema_registry


@pytest.mark.parametrize(
    ("texts", "simple"),
    [
        (['{"b": 1, "a": "x"}'], "struct<a:string,b:bigint>"),
        (['{"a": 1}', '{"a": 1.5}'], "struct<a:double>"),
        (['{"a": 1}', '{"a": "x"}'], "struct<a:string>"),
        (['{"a": null}', '{"a": ""}'], "struct<a:string>"),
        (['{"a": [1, null]}', '{"a": [2.5]}', '{"a": []}'], "struct<a:array<double>>"),
        (['{"a": {"x": 1}}', '{"a": {"y": true}}'], "struct<a:struct<x:bigint,y:boolean>>"),
        (['{"a": {}, "b": 1}'], "struct<b:bigint>"),
        (['{"a": 12345678901234567890}', '{"a": 1}'], "struct<a:decimal(20,0)>"),
        (["no json", "5", '{"a": true}'], "struct<a:boolean>"),
        (["no json"], "struct<>"),
    ],
)
def test_json_types_hold_all_values(texts: list[str], simple: str) -> None:
    assert infer_json(texts).simpleString() == simple


@pytest.mark.parametrize(
    ("texts", "simple"),
    [
        (["1,x,true", "2,,false"], "struct<_c0:int,_c1:string,_c2:boolean>"),
        (["1", "2147483648"], "struct<_c0:bigint>"),
        (["1", "1.5"], "struct<_c0:double>"),
        (["2020-01-02,2020-01-02 03:04:05"], "struct<_c0:date,_c1:timestamp>"),
        (["1", "x"], "struct<_c0:string>"),
        ([""], "struct<>"),
    ],
)
def test_csv_types_hold_all_cells(texts: list[str], simple: str) -> None:
    assert infer_csv(texts, CsvSyntax(), Times()).simpleString() == simple


def test_a_json_schema_says_the_columns() -> None:
    schema: dict[str, Any] = {
        "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "price": {"type": ["number", "null"]},
            "name": {"oneOf": [{"type": "null"}, {"type": "string"}]},
            "day": {"type": "string", "format": "date"},
            "at": {"type": "string", "format": "date-time"},
            "to": {"$ref": "#/$defs/place"},
            "tags": {"type": "array", "items": {"type": "boolean"}},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "other": {"$ref": "other.json"},
            "any": {},
        },
    }
    assert struct_of_json_schema(
        json.dumps(schema), {"other.json": '{"type": "object", "properties": {"x": {"type": "integer"}}}'}
    ).simpleString() == (
        "struct<id:bigint,price:double,name:string,day:date,at:timestamp,to:struct<city:string>,tags:array<boolean>,counts:map<string,bigint>,"
        "other:struct<x:bigint>,any:string>"
    )


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('{"type": "string"}', "describes no object"),
        ('{"type": "object", "properties": {"a": {"$ref": "#"}}}', "refers to itself"),
        ('{"type": "object", "properties": {"a": {"$ref": "#/x"}}}', "which is not in it"),
        ("{", "is no JSON"),
    ],
)
def test_a_json_schema_that_is_no_table_is_refused(schema: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        struct_of_json_schema(schema)


def test_framed_json_is_read_by_the_registrys_schema_and_unframed_json_is_malformed() -> None:
    schema = {
        "type": "object",
        "title": "Order",
        "properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}},
    }
    with schema_registry.running() as registry:
        serializer = JsonSchemaSerializer(schema, registry=SchemaRegistryClient({"schema.registry.url": registry.url}))
        good = serializer.serialize("orders", {"id": 1, "at": "2020-01-02T03:04:05Z"})
        decoder = values.decoder({"value.format": "json", "subscribe": "orders", "value.schema.registry.url": registry.url})
        assert decoder is not None
        for rows in ([good, None, good], [good, None, b'{"id": 2}', b"\0\0\0\0\x63{}"]):
            result = decoder.decode(pa.record_batch({"value": pa.array(rows, pa.binary())})).to_pylist()
            assert [row["value"] and row["value"]["id"] for row in result[:2]] == [1, None]
            assert [each["_corrupt"] is not None for each in result] == [row is not None and row != good for row in rows]
        assert result[3]["_corrupt"] == {"value": b"\0\0\0\0\x63{}", "reason": "the registry has no schema 99"}
