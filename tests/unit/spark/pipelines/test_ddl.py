"""A schema in DDL taken apart, without a Spark."""

from __future__ import annotations

import pytest

from pyspark_barnabas.pipelines.change_capture import Changes
from pyspark_barnabas.pipelines.ddl import column_types


@pytest.mark.parametrize(
    ("ddl", "types"),
    [
        ("id INT, name STRING", {"id": "INT", "name": "STRING"}),
        ("id: int,name : string", {"id": "int", "name": "string"}),
        ("a DECIMAL(10, 2), b MAP<STRING, ARRAY<INT>>", {"a": "DECIMAL(10, 2)", "b": "MAP<STRING, ARRAY<INT>>"}),
        ("p STRUCT<x: INT NOT NULL, y: INT>, q INT", {"p": "STRUCT<x: INT NOT NULL, y: INT>", "q": "INT"}),
        ("`a, b` INT, `c``d` DATE", {"a, b": "INT", "c`d": "DATE"}),
        ("id INT NOT NULL COMMENT 'one, two', n INTERVAL DAY TO SECOND", {"id": "INT", "n": "INTERVAL DAY TO SECOND"}),
    ],
)
def test_columns_are_found_with_their_types(ddl: str, types: dict[str, str]) -> None:
    assert column_types(ddl) == types


@pytest.mark.parametrize("ddl", ["", "id", "id INT,", "id INT,, name STRING"])
def test_what_is_no_column_is_refused_with_an_example(ddl: str) -> None:
    with pytest.raises(ValueError, match="is no column: write a name and a type, as in 'id INT, name STRING'"):
        column_types(ddl)


def test_a_key_that_is_no_column_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="keys are columns of `schema`, and it has no number"):
        Changes(schema="id INT, name STRING", keys=["id", "number"])
