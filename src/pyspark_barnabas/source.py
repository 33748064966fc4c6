"""`format("barnabas")`: the class that Spark loads for this name. It creates readers and writers, which do the work.

Spark pickles the instance and sends it to its Python workers, so it holds only the options. All other modules are imported when they are
needed: a query that reads does not load the writers.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource

from pyspark_barnabas.error_first import error_first

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

LOG_DIRS: Final = "logDirs"
_PUSHING_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class DefaultSource(DataSource):
    """Kafka's topics as DataFrames, on any broker that speaks Kafka's protocol; with logDirs, log directories without a broker."""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    @error_first()
    def schema(self) -> StructType:
        """The columns of Spark's own connector; decoded columns replace `value`."""
        if LOG_DIRS in self.options:
            from pyspark_barnabas.segments.segment_reader import segment_schema

            return segment_schema(self.options)
        from pyspark_barnabas.read.read_options import ReadOptions

        return ReadOptions.of(self.options).schema()

    @error_first()
    def reader(self, schema: StructType) -> DataSourceReader:
        if LOG_DIRS in self.options:
            from pyspark_barnabas.segments.segment_reader import FilteringSegmentReader, SegmentReader

            return (FilteringSegmentReader if _pushes_filters() else SegmentReader)(self.options, schema)
        from pyspark_barnabas.read.batch_reader import BatchReader, FilteringReader
        from pyspark_barnabas.read.read_options import ReadOptions

        kind = FilteringReader if _pushes_filters() else BatchReader
        return kind(ReadOptions.of(self.options, streaming=False), schema)

    @error_first()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from pyspark_barnabas.errors import OptionError
        from pyspark_barnabas.read.read_options import ReadOptions
        from pyspark_barnabas.read.stream_reader import OlderStreamReader, StreamReader
        from pyspark_barnabas.spark_versions import ADMISSION_CONTROL

        if LOG_DIRS in self.options:
            raise OptionError(
                LOG_DIRS, "is for batches: a directory does not tell when it grows. Use spark.read, or subscribe to the broker."
            )
        kind = StreamReader if ADMISSION_CONTROL else OlderStreamReader
        return kind(ReadOptions.of(self.options, streaming=True), schema)

    @error_first()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_barnabas.write.batch_writer import BatchWriter

        return BatchWriter(self.options, schema, overwrite)

    @error_first()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from pyspark_barnabas.options import boolean

        if boolean(self.options, "exactlyOnce", False):
            from pyspark_barnabas.exactly_once.stream_writer import ExactlyOnceWriter

            return ExactlyOnceWriter(self.options, schema, overwrite)
        from pyspark_barnabas.write.stream_writer import StreamWriter

        return StreamWriter(self.options, schema, overwrite)


def _pushes_filters() -> bool:
    """Whether this process is the worker to which Spark pushes filters.

    Without spark.sql.python.filterPushdown.enabled Spark rejects a reader that has `pushFilters`, and the source cannot read that setting;
    but with the setting Spark uses a separate worker for filters.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHING_WORKER in sys.modules or (main is not None and main.name == _PUSHING_WORKER)
