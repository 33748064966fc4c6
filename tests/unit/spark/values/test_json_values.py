"""JSON values: the whole-column way and the row-by-row way mean the same, and both mean what Spark's from_json does.

What Spark itself gives is in tests/spark/values/test_values_json.py, with the same rows.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_barnabas import values
from pyspark_barnabas.values.json.json_format import JsonFormat, JsonReader
from pyspark_barnabas.values.schema_text import struct_of

SCHEMA = "a INT, b STRING, c DOUBLE, d BOOLEAN, e ARRAY<STRUCT<x: BIGINT, y: DATE>>, f STRUCT<t: TIMESTAMP, n: TIMESTAMP_NTZ>"


def decoded(schema: str, *rows: bytes | None, **options: str) -> list[dict[str, Any]]:
    given_options = {"value.format": "json", "value.schema": schema, **{f"value.{name}": value for name, value in options.items()}}
    decoder = values.decoder(given_options)
    assert decoder is not None
    batch = pa.record_batch({"value": pa.array(rows, pa.binary())})
    result: list[dict[str, Any]] = decoder.decode(batch).to_pylist()
    return result


def test_an_object_becomes_a_row() -> None:
    (row,) = decoded("a INT, b STRING", b'{"a": 1, "b": "x"}')
    assert row == {"value": {"a": 1, "b": "x"}, "_corrupt": None}


def test_a_tombstone_stays_null_and_is_not_malformed() -> None:
    assert decoded("a INT", None, b"") == [{"value": None, "_corrupt": None}] * 2


def test_a_malformed_record_is_in_the_column_for_such_with_its_bytes_and_the_reason() -> None:
    (row,) = decoded("a INT", b'{"a": \xff')
    assert row["value"] == {"a": None}
    assert row["_corrupt"]["value"] == b'{"a": \xff'
    assert "at character" in row["_corrupt"]["reason"]


def test_a_field_that_does_not_fit_is_null_and_the_others_stay() -> None:
    (row,) = decoded("a INT, b STRING", b'{"a": "one", "b": "x"}')
    assert row["value"] == {"a": None, "b": "x"}
    assert row["_corrupt"]["reason"] == "a: it is a text, not a whole number"


def test_a_poison_record_among_thousands_spoils_no_other() -> None:
    rows = [b'{"a": %d}' % number for number in range(5000)]
    rows[1234] = b'{"a": "x"}'
    rows[4000] = b"not json"
    result = decoded("a INT", *rows)
    assert [row for row, decoded_row in enumerate(result) if decoded_row["_corrupt"] is not None] == [1234, 4000]
    assert all(each["value"]["a"] == (None if number in (1234, 4000) else number) for number, each in enumerate(result))


def test_two_halves_of_an_object_in_two_records_are_two_malformed_records() -> None:
    result = decoded("a INT", b'{"a":', b"1}", b'{"a":1}{"a":2}')
    assert [row["value"]["a"] for row in result] == [None, None, 1]
    assert [each["_corrupt"] is None for each in result] == [False, False, True]


def test_what_follows_the_first_object_is_not_looked_at() -> None:
    assert [row["value"]["a"] for row in decoded("a INT", b'{"a":1}}', b'{"a":2} x', b'{"a":3}{"a":4}')] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', "1"),
        ('{"a": 1e5}', "100000.0"),
        ('{"a": 12345678901234567890.123456789012345678901}', "1.2345678901234567E19"),
        ('{"a": 0.00010}', "1.0E-4"),
        ('{"a": {"b": 1 , "c": [1, 2.50, "x"]}}', '{"b":1,"c":[1,2.5,"x"]}'),
        ('{"a": "\\ud83d\\ude00"}', "😀"),
        ('{"a": NaN}', '"NaN"'),
        ("{'a': 'x'}", "x"),
    ],
)
def test_a_string_takes_any_json_as_spark_writes_it(text: str, value: str) -> None:
    assert decoded("a STRING", text.encode())[0]["value"] == {"a": value}


def test_failfast_names_the_record() -> None:
    decoder = values.decoder({"value.format": "json", "value.schema": "a INT", "value.mode": "FAILFAST"})
    assert decoder is not None
    batch = pa.record_batch(
        {
            "value": pa.array([b'{"a": 1}', b"x"], pa.binary()),
            "topic": pa.array(["t", "t"]),
            "partition": pa.array([3, 3], pa.int32()),
            "offset": pa.array([70, 71], pa.int64()),
        }
    )
    with pytest.raises(Exception, match="offset 71 of t-3 is no json of this schema: a value is missing"):
        decoder.decode(batch)


def test_dropmalformed_leaves_malformed_records_out() -> None:
    assert decoded("a INT", b'{"a": 1}', b"x", b'{"a": 2}', mode="dropmalformed") == [{"value": {"a": 1}}, {"value": {"a": 2}}]


def test_flattened_fields_are_columns_in_the_place_of_the_value() -> None:
    decoder = values.decoder({"value.format": "json", "value.schema": "a INT, b STRING", "value.flatten": "true"})
    assert decoder is not None
    batch = pa.record_batch({"key": pa.array([b"k"]), "value": pa.array([b'{"a": 1}'], pa.binary()), "topic": pa.array(["t"])})
    result = decoder.decode(batch)
    assert result.schema.names == ["key", "a", "b", "_corrupt", "topic"]
    assert result.to_pylist() == [{"key": b"k", "a": 1, "b": None, "_corrupt": None, "topic": "t"}]
    assert decoder.schema().names == ["a", "b", "_corrupt"]


def both_ways(texts: list[bytes | None]) -> tuple[Any, Any]:
    reader = JsonReader(JsonFormat(struct_of(SCHEMA)))
    column = pa.array(texts, pa.binary())
    return reader.read(column), reader._singly(column)


def assert_same(texts: list[bytes | None]) -> None:
    at_once, singly = both_ways(texts)
    assert at_once.column.equals(singly.column)
    assert at_once.faults.keys() == singly.faults.keys()


_DATES = st.one_of(st.dates().map(str), st.sampled_from(["2020-02-30", "2020-1-2", "", "x", "0000-01-01", "2020-01-02T03:04:05"]))
_TIMES = st.one_of(
    st.datetimes().map(lambda each: each.isoformat()),
    st.datetimes().map(lambda each: each.isoformat(" ") + "Z"),
    st.sampled_from(
        ["2020-01-02T03:04:05+01:00", "2020-01-02T24:00:00", "2020-01-02", "2020-01-02T03:04:05+18:30", "2020-01-02T03:04:60Z"]
    ),
)
_ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.text(), _DATES, _TIMES
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcdefxytn"), inner, max_size=4)),
    max_leaves=6,
)
_FITTING = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(-(2**31), 2**31 - 1),
        "b": st.text(),
        "c": st.floats(allow_nan=False, allow_infinity=False),
        "d": st.booleans(),
        "e": st.lists(st.fixed_dictionaries({}, optional={"x": st.integers(-(2**63), 2**63 - 1), "y": _DATES}), max_size=3),
        "f": st.fixed_dictionaries({}, optional={"t": _TIMES, "n": _TIMES}),
        "g": _ANYTHING,
    },
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(_FITTING, _ANYTHING), min_size=1, max_size=40))
def test_both_ways_mean_the_same_for_any_json(documents: list[Any]) -> None:
    assert_same([json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") for document in documents])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=12), st.text('{}[]":,a1 \n', max_size=12).map(str.encode)), min_size=1, max_size=40))
def test_both_ways_mean_the_same_for_any_bytes(rows: list[bytes]) -> None:
    assert_same([b'{"a": 1}', *rows])
