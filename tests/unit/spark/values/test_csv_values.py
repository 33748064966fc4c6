"""CSV values: whole columns and single rows are read alike. tests/spark/values/test_values_csv.py compares them with from_csv."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_barnabas import values
from pyspark_barnabas.values.csv.csv_format import CsvFormat, CsvReader
from pyspark_barnabas.values.csv.csv_text import CsvSyntax, split_line
from pyspark_barnabas.values.schema_text import struct_of

SCHEMA = "a INT, b STRING, c DOUBLE, d BOOLEAN, e DECIMAL(5,2), f DATE, g TIMESTAMP"


def decoded(schema: str, *rows: bytes | None, **options: str) -> list[dict[str, Any]]:
    decoder = values.decoder({"value.format": "csv", "value.schema": schema, **{f"value.{name}": value for name, value in options.items()}})
    assert decoder is not None
    result: list[dict[str, Any]] = decoder.decode(pa.record_batch({"value": pa.array(rows, pa.binary())})).to_pylist()
    return result


def test_a_line_becomes_a_row_and_an_empty_cell_null() -> None:
    assert decoded("a INT, b STRING", b"1,x", b",", None) == [
        {"value": {"a": 1, "b": "x"}, "_corrupt": None},
        {"value": {"a": None, "b": None}, "_corrupt": None},
        {"value": None, "_corrupt": None},
    ]


def test_too_few_and_too_many_cells_are_malformed_and_keep_what_there_is() -> None:
    few, many = decoded("a INT, b STRING", b"1", b"1,x,y")
    assert (few["value"], few["_corrupt"]["reason"]) == ({"a": 1, "b": None}, "it has 1 columns, not 2")
    assert (many["value"], many["_corrupt"]["reason"]) == ({"a": 1, "b": "x"}, "it has 3 columns, not 2")


def test_a_cell_that_is_too_long_or_a_line_that_is_too_wide_is_malformed() -> None:
    assert decoded("a STRING", b"xxxxx", maxCharsPerColumn="3")[0]["_corrupt"]["reason"].startswith("a cell has more than 3 characters")
    assert decoded("a STRING", b"x,y,z", maxColumns="2")[0]["_corrupt"]["reason"].startswith("it has more than 2 columns")


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ('1,"x,y"', ["1", "x,y"]),
        ('1,"x""y"', ["1", '"x""y"']),
        ('1,"x\\"y"', ["1", 'x"y']),
        ('1,"x" ,2', ["1", "x", "2"]),
        ('1,"x"z,2', ["1", '"x"z', "2"]),
        ('1,"x', ["1", "x"]),
        ('"', ['"']),
        (",", [None, None]),
    ],
)
def test_quotes_are_read_as_sparks_parser_reads_them(line: str, cells: list[str | None]) -> None:
    assert split_line(line, CsvSyntax()) == cells


_CELL = st.one_of(
    st.integers(-(2**33), 2**33).map(str),
    st.floats().map(repr),
    st.sampled_from(
        [
            "",
            "true",
            "False",
            "1.239",
            "999.995",
            "2020-02-29",
            "2020-02-30",
            "2020-01-02 03:04:05",
            "2020-01-02T03:04:05Z",
            '"x',
            "é",
            " 1",
        ]
    ),
    st.text("ab,\"\\ '\n1.", max_size=5),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(_CELL, min_size=6, max_size=8).map(",".join), min_size=1, max_size=40))
def test_both_ways_mean_the_same(lines: list[str]) -> None:
    reader = CsvReader(CsvFormat(struct_of(SCHEMA)))
    column = pa.array([line.encode() for line in lines], pa.binary())
    at_once, singly = reader.read(column), reader._singly(column)
    assert at_once.faults.keys() == singly.faults.keys()
    assert at_once.column.equals(singly.column)
