"""`format("barnabas")`: what Spark asks for when it finds the source by its name. It only picks; readers and writers do the work.

Spark pickles the instance and sends it to its Python workers, so there is nothing in it but the options. Everything else is imported when
it is needed: a query that reads does not wait for what writes.
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
        """The columns of Spark's own connector; those of a decoded value stand for `value`."""
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
    """Whether this process is the one that Spark hands filters to.

    Without spark.sql.python.filterPushdown.enabled Spark refuses a reader that has `pushFilters` at all, and it does not say beforehand
    whether that is set; but it runs a worker of its own for filters where it is.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHING_WORKER in sys.modules or (main is not None and main.name == _PUSHING_WORKER)
