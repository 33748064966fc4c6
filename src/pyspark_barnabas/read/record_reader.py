"""The work of a task with its range, in a batch and in a stream: fetch, filter, decode the values.

It is plain data, pickled to the workers with the reader. The rows have exactly the columns of the query's schema, in its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark_barnabas.read.filters import OFFSET, TIMESTAMP, RowFilter
from pyspark_barnabas.schema import record_schema, wanted_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from pyspark_barnabas.read.read_options import ReadOptions


class RecordReader:
    """Created by the planner; `read` is called in the tasks."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._settings = dict(options.settings)
        self._poll_timeout_ms = options.poll_timeout_ms
        self._fail_on_data_loss = options.fail_on_data_loss
        self._decoder = options.decoder(schema)
        self.record_filter: RowFilter = options.record_filter
        full = record_schema(options.include_headers, None if self._decoder is None else self._decoder.schema())
        self._columns = wanted_columns(schema, full)
        self._all = [field.name for field in record_schema(options.include_headers).fields]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one range; no rows for the empty partition that Spark creates if there is nothing to read (None in Spark 4.0)."""
        if partition is None or partition.value is None:
            return
        from pyspark_barnabas.read.fetch import read_range

        record_filter = self.record_filter
        for batch in read_range(partition.value, self._settings, self._fetch_options()):
            if record_filter.in_rows:
                batch = record_filter.rows(batch)
            if self._decoder is not None and batch.num_rows:
                batch = self._decoder.decode(batch)
            if batch.num_rows:
                yield batch if batch.schema.names == self._columns else batch.select(self._columns)

    def _fetch_options(self) -> Any:
        from pyspark_barnabas.read.fetch import FetchOptions

        settings = self._settings
        fetch_bytes = settings.get("max.partition.fetch.bytes")
        chosen: dict[str, Any] = {} if fetch_bytes is None else {"fetch_bytes": int(fetch_bytes)}
        return FetchOptions(
            columns=tuple(self._fetched()),
            read_committed=settings["isolation.level"] == "read_committed",
            fail_on_data_loss=self._fail_on_data_loss,
            timeout_ms=self._poll_timeout_ms,
            check_crc=settings.get("check.crcs", "true").strip().lower() != "false",
            **chosen,
        )

    def _fetched(self) -> list[str]:
        """The columns to fetch: all for a decoder, otherwise those of the query and of the filter."""
        if self._decoder is not None:
            return self._all
        looked_at = {one.column for one in self.record_filter.in_rows}
        return [*self._columns, *(name for name in (OFFSET, TIMESTAMP) if name in looked_at and name not in self._columns)]
