"""Writes a DataFrame into topics: `df.write.format("barnabas").option("topic", …).mode("append").save()`.

The driver validates options and columns; each task sends its rows and returns when all are written. Spark runs a failed task again, so
that a row may be in the topic more than once but is never missing: at least once, as with Spark's own connector.
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
    """The commit message of a task: the number of rows it wrote."""

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
        from pyspark_barnabas.write.write_task import write_rows  # not imported while a query is planned: it takes time to load

        return Written(write_rows(iterator, self.options))
