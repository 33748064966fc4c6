"""The base class of stream writers: since Spark 4.1 a writer receives Arrow batches, before that rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
    from pyspark.sql.types import StructType

    GIVES_ARROW: bool
else:
    try:
        from pyspark.sql.datasource import DataSourceStreamArrowWriter

        GIVES_ARROW = True
    except ImportError:
        from pyspark.sql.datasource import DataSourceStreamWriter as DataSourceStreamArrowWriter

        GIVES_ARROW = False

__all__ = ["GIVES_ARROW", "DataSourceStreamArrowWriter", "arrow_batches"]

ROWS_TOGETHER: Final = 10_000


def arrow_batches(iterator: Iterator[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    """The argument of `write` as Arrow batches."""
    return iterator if GIVES_ARROW else _from_rows(iterator, schema)


def _from_rows(rows: Iterator[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow_schema = to_arrow_schema(schema)
    while some := list(itertools.islice(rows, ROWS_TOGETHER)):
        columns = [pa.array([_plain(row[index]) for row in some], field.type) for index, field in enumerate(arrow_schema)]
        yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema)


def _plain(value: Any) -> Any:
    """Nested rows and bytearrays as plain Python types."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if hasattr(value, "asDict"):
        return {name: _plain(item) for name, item in value.asDict().items()}
    return value
