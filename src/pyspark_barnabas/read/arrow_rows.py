"""Decoded records as the rows of Spark's Kafka connector: its column names, types and order, in Arrow.

This is the last step of a task before the rows go to the JVM. No record is touched: columns are passed on, and the two columns that are
the same in every row (topic and partition) are built once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.records.columns.columns import HEADERS_TYPE

TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")

HEADERS: Final = "headers"
_FIELDS: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": TIMESTAMP_TYPE,
    "timestampType": pa.int32(),
    HEADERS: HEADERS_TYPE,
}
COLUMNS: Final = tuple(name for name in _FIELDS if name != HEADERS)  # the columns without includeHeaders


class RowMaker:
    """Makes rows of one partition of one topic, with these columns in this order."""

    def __init__(self, topic: str, partition: int, columns: Sequence[str]) -> None:
        self.schema = pa.schema([pa.field(name, _FIELDS[name]) for name in columns])
        self._topic = topic.encode()
        self._partition = partition
        self._count = 0
        self._topics = pa.nulls(0, pa.string())
        self._partitions = pa.nulls(0, pa.int32())

    def rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The rows for records that `barnabas.records.columns.columns.decode` returned."""
        if records.num_rows > self._count:
            self._make_constants(records.num_rows)
        return pa.RecordBatch.from_arrays([self._column(name, records) for name in self.schema.names], schema=self.schema)

    def _column(self, name: str, records: pa.RecordBatch) -> pa.Array:
        if name == "topic":
            return self._topics.slice(0, records.num_rows)
        if name == "partition":
            return self._partitions.slice(0, records.num_rows)
        if name == "timestamp":
            return pc.cast(records.column(name), TIMESTAMP_TYPE)
        return records.column("timestamp_type" if name == "timestampType" else name)

    def _make_constants(self, count: int) -> None:
        self._count = count
        starts = np.arange(count + 1, dtype=np.int32) * np.int32(len(self._topic))
        self._topics = pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(starts), pa.py_buffer(self._topic * count)])
        self._partitions = pa.array(np.full(count, self._partition, dtype=np.int32))
