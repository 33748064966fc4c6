"""Fetched batches as Arrow record batches, for `poll_arrow`: without a Python object per record and without a deserializer.

Needs pyarrow and numpy, which the rest of the clients does not need. So this module is imported at its first use.
"""

from __future__ import annotations

from typing import Any, Final

try:
    import numpy as np
    import pyarrow as pa
except ImportError as missing:
    raise ImportError("poll_arrow needs the packages pyarrow and numpy: pip install 'barnabas[arrow]'") from missing

from barnabas.client.consumer.fetching.completed_fetch import CompletedFetch
from barnabas.records.columns.columns import HEADERS_TYPE, TIMESTAMP_TYPE, decode

# The schema of poll_arrow: the names and types of Spark's Kafka source, and the leader epoch.
ARROW_SCHEMA: Final = pa.schema(
    [
        pa.field("topic", pa.dictionary(pa.int32(), pa.string())),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP_TYPE),
        pa.field("timestamp_type", pa.int32()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS_TYPE),
        pa.field("leader_epoch", pa.int32()),
    ]
)


class ArrowTaker:
    """Takes the remaining records of a fetch as one Arrow batch."""

    def __init__(self, *, check_crcs: bool, read_committed: bool) -> None:
        self._check_crcs = check_crcs
        self._read_committed = read_committed

    def take(self, fetch: CompletedFetch, most: int) -> tuple[list[Any], int]:
        data = fetch.data[fetch.start : fetch.end]
        decoded = decode(
            data,
            first_offset=fetch.next_fetch_offset,
            headers=True,
            check_crc=self._check_crcs,
            aborted=[(producer_id, first_offset) for first_offset, producer_id in fetch.aborted] if self._read_committed else None,
            leader_epoch=True,
        )
        records, next_offset = decoded
        if records.num_rows > most:
            next_offset = records.column("offset")[most].as_py()
            records = records.slice(0, most)
        count = records.num_rows
        fetch.records_read += count
        fetch.take_all_offsets(next_offset)
        return ([self._batch(fetch, records, count)] if count else []), count

    def _batch(self, fetch: CompletedFetch, records: pa.RecordBatch, count: int) -> pa.RecordBatch:
        topic = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), pa.array([fetch.topic]))
        partition = pa.array(np.full(count, fetch.partition, dtype=np.int32))
        return pa.RecordBatch.from_arrays(
            [topic, partition, *(records.column(name) for name in ARROW_SCHEMA.names[2:])], schema=ARROW_SCHEMA
        )
