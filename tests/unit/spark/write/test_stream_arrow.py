"""Rows as a Spark before 4.1 gives them to a stream writer, as Arrow batches."""

from __future__ import annotations

from pyspark.sql import Row
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

from pyspark_barnabas.write.stream_arrow import _from_rows


def test_rows_become_arrow_batches_with_headers_and_nulls() -> None:
    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    schema = StructType([StructField("key", BinaryType()), StructField("value", StringType()), StructField("headers", ArrayType(header))])
    rows = [Row(key=bytearray(b"k"), value="v", headers=[Row(key="h", value=bytearray(b"x"))]), Row(key=None, value=None, headers=None)]
    (batch,) = _from_rows(iter(rows), schema)
    assert batch.to_pylist() == [
        {"key": b"k", "value": "v", "headers": [{"key": "h", "value": b"x"}]},
        {"key": None, "value": None, "headers": None},
    ]
    assert list(_from_rows(iter([]), schema)) == []
