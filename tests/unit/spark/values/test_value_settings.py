"""The options of values: what goes together, and what is refused by which name."""

from __future__ import annotations

import pytest

from pyspark_barnabas import values
from pyspark_barnabas.errors import OptionError, SchemaError
from pyspark_barnabas.values.schema_text import struct_of


def test_without_a_format_values_stay_bytes() -> None:
    assert values.decoder({"subscribe": "t", "kafka.bootstrap.servers": "localhost:9092"}) is None


def test_names_of_options_have_no_case() -> None:
    decoder = values.decoder({"VALUE.FORMAT": "JSON", "value.SCHEMA": "a INT", "Value.AllowSingleQuotes": "false"})
    assert decoder is not None
    assert decoder.schema().simpleString() == "struct<value:struct<a:int>,_corrupt:struct<value:binary,reason:string>>"


def test_decoded_values_may_stand_beside_their_bytes() -> None:
    decoder = values.decoder({"value.format": "string", "value.column": "text"})
    assert decoder is not None
    assert decoder.schema().names == ["value", "text", "_corrupt"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value.schema": "a INT"}, "value.schema.*needs the option 'value.format'"),
        ({"value.format": "xml"}, "value.format.*must be one of json, avro"),
        ({"value.format": "json"}, "value.schema.*must be set"),
        ({"value.format": "json", "value.schema": "a INT", "value.inferSchema": "true"}, "value.inferSchema.*there must be one"),
        (
            {"value.format": "json", "value.schema": "a INT", "value.sep": ";"},
            "value.sep.*not known in decoding values of value.format=json",
        ),
        ({"value.format": "csv", "value.schema": "a INT", "value.delimeter": ";"}, "Did you mean 'value.delimiter'"),
        ({"value.format": "json", "value.schema": "a INT", "value.mode": "lenient"}, "value.mode.*must be one of permissive"),
        (
            {"value.format": "json", "value.schema": "a INT", "value.mode": "failfast", "value.columnNameOfCorruptRecord": "c"},
            "there is no such column",
        ),
        (
            {
                "value.format": "json",
                "value.schema": "a INT",
                "value.mode": "failfast",
                "value.deadLetterTopic": "d",
                "kafka.bootstrap.servers": "x:1",
            },
            "value.mode.*does not go with 'value.deadLetterTopic'",
        ),
        ({"value.format": "string", "value.schema": "a INT"}, "value.schema.*does not go with value.format=string"),
        ({"value.format": "string", "value.encoding": "klingon"}, "value.encoding.*no encoding named 'klingon'"),
        (
            {"value.format": "json", "value.schema": "a INT", "value.flatten": "true", "value.column": "c"},
            "value.flatten.*does not go with",
        ),
        ({"value.format": "json", "value.schema": "a INT", "value.timeZone": "Mars/Base"}, "value.timeZone.*no time zone 'Mars/Base'"),
        ({"value.format": "json", "value.schema": "a TIMESTAMP", "value.timestampFormat": "yyyy-QQ"}, "letters 'QQ'"),
        ({"value.format": "csv", "value.schema": "a ARRAY<INT>"}, "CSV has no columns of type array<int>"),
        ({"value.format": "csv", "value.schema": "a INT", "value.quote": "ab"}, "value.quote.*single character"),
        ({"value.format": "csv", "value.schema": "a INT", "value.maxColumns": "x"}, "value.maxColumns.*whole number"),
        ({"value.format": "json", "value.schema.registry.url": "http://localhost:1"}, "subscribe"),
        (
            {"value.format": "json", "value.schema.registry.url": "http://localhost:1", "subscribe": "a,b"},
            "value.schema.subject.*must be set",
        ),
        ({"value.format": "json", "value.inferSchema": "true", "logDirs": "/x"}, "value.inferSchema.*asks a broker"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        values.decoder(options)


def test_a_map_in_json_has_texts_for_keys() -> None:
    with pytest.raises(SchemaError, match="MAP<STRING"):
        values.decoder({"value.format": "json", "value.schema": "a MAP<INT, INT>"})


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("a INT", "struct<a:int>"),
        ("a: int, b bigint not null comment 'it''s'", "struct<a:int,b:bigint>"),
        ("`a b` DECIMAL, c DECIMAL(5), d NUMERIC(38, 18)", "struct<a b:decimal(10,0),c:decimal(5,0),d:decimal(38,18)>"),
        ("a ARRAY<STRUCT<x: MAP<STRING, DOUBLE>, y TIMESTAMP_NTZ>>", "struct<a:array<struct<x:map<string,double>,y:timestamp_ntz>>>"),
        ("a VARCHAR(10), b CHAR(3), c BYTE, d REAL", "struct<a:string,b:string,c:tinyint,d:float>"),
        ('{"type":"struct","fields":[{"name":"a","type":"long","nullable":false,"metadata":{}}]}', "struct<a:bigint>"),
    ],
)
def test_ddl_and_json_are_read_as_spark_reads_them(text: str, simple: str) -> None:
    assert struct_of(text).simpleString() == simple
    assert all(field.nullable for field in struct_of(text).fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no columns"),
        ("a", "type is missing at the end"),
        ("a INT,", "name is missing at the end"),
        ("a ARRAY<INT", "'>' is missing at the end"),
        ("a DECIMAL(40,2)", "at most 38 digits"),
        ("a INTERVAL", "'INTERVAL' is no type"),
        ("a INT b INT", "',' is expected where 'b' stands"),
        ("a-b INT", "backquotes"),
        ("a INT; DROP", "cannot be read"),
        ("{}", "neither DDL nor the JSON"),
    ],
)
def test_a_text_that_is_no_schema_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        struct_of(text)
