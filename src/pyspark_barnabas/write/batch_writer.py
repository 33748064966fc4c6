"""Writes a DataFrame into topics: `df.write.format("barnabas").option("topic", …).mode("append").save()`.

The driver checks options and columns; each task sends its rows and returns when all are written. A task that fails is run again by Spark,
so that a row may be in the topic more than once, never less: at least once, as with Spark's own connector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pyspark_barnabas.error_first import error_first
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.write.first_contact import require_answer
from pyspark_barnabas.write.rows import check_schema
from pyspark_barnabas.write.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class Written(WriterCommitMessage):
    """How many rows a task wrote."""

    def __init__(self, count: int) -> None:
        self.count = count


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("mode", "must be 'append': records of a topic cannot be overwritten.")
        self.options = WriteOptions.of(options, streaming=False)
        check_schema(schema, self.options.topic)
        require_answer(self.options)

    @error_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        from pyspark_barnabas.write.write_task import write_rows  # not where a query is planned: it takes a while to load

        return Written(write_rows(iterator, self.options))
