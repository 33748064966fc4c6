"""Writes a stream into topics, at least once: `df.writeStream.format("barnabas").option("topic", …)`.

Every task of every micro-batch sends its rows and returns when all are written. A batch or a task that Spark runs again writes its rows
again; `exactly_once.stream_writer` does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark_barnabas.error_first import error_first
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.write.batch_writer import Written
from pyspark_barnabas.write.first_contact import require_answer
from pyspark_barnabas.write.rows import check_schema
from pyspark_barnabas.write.stream_arrow import DataSourceStreamArrowWriter, arrow_batches
from pyspark_barnabas.write.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("outputMode", "must be 'append': records of a topic cannot be overwritten.")
        self.options = WriteOptions.of(options, streaming=True)
        self.schema = schema
        check_schema(schema, self.options.topic)
        require_answer(self.options)

    @error_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        from pyspark_barnabas.write.write_task import write_rows  # not imported while a query is planned: it takes time to load

        return Written(write_rows(arrow_batches(iterator, self.schema), self.options))
