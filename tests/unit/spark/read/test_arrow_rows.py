"""Rows as Spark wants them: its Arrow schema to the letter."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from barnabas.records.columns.columns import decode
from pyspark_barnabas.read.arrow_rows import COLUMNS, HEADERS, RowMaker
from pyspark_barnabas.schema import record_schema
from tests.unit.storage.logs import batch


@pytest.mark.parametrize("headers", [False, True])
def test_the_schema_is_the_one_that_spark_makes_of_its_columns(headers: bool) -> None:
    columns = (*COLUMNS, HEADERS) if headers else COLUMNS
    assert RowMaker("topic", 0, columns).schema.equals(to_arrow_schema(record_schema(headers), timezone="UTC"))


def test_batches_of_any_size_have_the_topic_and_the_partition_in_every_row() -> None:
    maker = RowMaker("tópic", 3, COLUMNS)
    for count in (2, 5, 1):
        rows = maker.rows(decode(batch(count)).records)
        rows.validate(full=True)
        assert rows.column("topic").to_pylist() == ["tópic"] * count
        assert rows.column("partition").to_pylist() == [3] * count


def test_columns_come_as_they_were_asked_for() -> None:
    rows = RowMaker("topic", 0, ("offset", "value")).rows(decode(batch([b"a", None])).records)
    assert rows.to_pylist() == [{"offset": 0, "value": b"a"}, {"offset": 1, "value": None}]


def test_no_timestamp_is_one_millisecond_before_1970_as_in_sparks_connector() -> None:
    rows = RowMaker("topic", 0, ("timestamp",)).rows(decode(batch(1, timestamp=-1)).records)
    assert rows.column("timestamp").cast(pa.int64()).to_pylist() == [-1000]
