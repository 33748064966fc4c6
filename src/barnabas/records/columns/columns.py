"""Record batches as Arrow columns, and Arrow columns as record batches.

The Spark source and sink and the clients use it to move many records without one Python object for each. `column_walk` and `column_encode`
do the work on raw bytes; this module only turns their columns into Arrow arrays and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.records.batch import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from barnabas.records.codecs.compression import NONE
from barnabas.records.columns.column_encode import BatchFields, NullableBytes, Rows, encode_rows
from barnabas.records.columns.column_walk import Columns, walk

TIMESTAMP_TYPE: Final = pa.timestamp("ms", tz="UTC")
HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE: Final = pa.list_(pa.field("element", HEADER_TYPE))  # the type and names of Spark's Kafka connector

BATCH_SIZE_DEFAULT: Final = 16384  # the producer's batch.size

_OFFSET_MAX: Final = 2**63 - 1
_TO_BINARY: Final = pc.CastOptions.safe(pa.binary())


class Decoded(NamedTuple):
    """The decoded records, and the offset to fetch next."""

    records: pa.RecordBatch
    next_offset: int


def decode(
    data: bytes,
    *,
    first_offset: int = 0,
    end_offset: int | None = None,
    headers: bool = False,
    check_crc: bool = True,
    aborted: Sequence[tuple[int, int]] | None = None,
    leader_epoch: bool = False,
    views: bool = False,
) -> Decoded:
    """The records of the whole batches in `data`: offset, timestamp, timestamp_type, key, value, and optionally headers and leader_epoch.

    Records below `first_offset` or from `end_offset` on are left out, and control batches always. `aborted` makes it a read_committed
    read: it lists (producer id, first offset) of the aborted transactions, as a fetch response does. `next_offset` is the offset after the
    last batch, even if that was left out. An incomplete batch at the end is ignored.

    Keys and values are copied into plain binary arrays. With `views` they are binary_view arrays that point into `data`, and keep it alive.
    Works fastest on a few MB at a time, which stay in the processor's cache.
    """
    columns = walk(data, first_offset, _OFFSET_MAX if end_offset is None else end_offset, headers, check_crc, aborted)
    sources = [pa.py_buffer(source) for source in columns.sources]
    arrays = {
        "offset": _int64_array(columns.offsets.getvalue(), columns.count, pa.int64()),
        "timestamp": _int64_array(columns.timestamps.getvalue(), columns.count, TIMESTAMP_TYPE),
        "timestamp_type": _runs_array(columns, columns.run_timestamp_types.getvalue()),
        "key": _binary_array(columns.keys.getvalue(), columns.count, columns.null_keys, sources, views),
        "value": _binary_array(columns.values.getvalue(), columns.count, columns.null_values, sources, views),
    }
    if headers:
        arrays["headers"] = _headers_array(columns, sources)
    if leader_epoch:
        arrays["leader_epoch"] = _runs_array(columns, columns.run_leader_epochs.getvalue())
    return Decoded(pa.RecordBatch.from_pydict(arrays), columns.next_offset)


def _int64_array(column: bytes, count: int, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(column)])


def _runs_array(columns: Columns, numbers: bytes) -> pa.Array:
    """One int32 per record from one per run."""
    sizes = np.frombuffer(columns.run_sizes.getvalue(), dtype=np.int64)
    repeated = np.frombuffer(numbers, dtype=np.int32).repeat(sizes)
    return pa.Array.from_buffers(pa.int32(), columns.count, [None, pa.py_buffer(repeated)])


def _binary_array(column: bytes, count: int, nulls: int, sources: list[pa.Buffer], views: bool) -> pa.Array:
    """The contents to which a column of views points."""
    if nulls == count and not views:
        return pa.nulls(count, pa.binary())
    validity = None
    if nulls > 0:
        halves = np.frombuffer(column, dtype=np.int64).reshape(count, 2)
        validity = _bitmap((halves[:, 0] != 0) | (halves[:, 1] == 0))  # a null is a size of 0 with _NULL_VIEW_TAIL after it
    array = pa.Array.from_buffers(pa.binary_view(), count, [validity, pa.py_buffer(column), *sources], null_count=nulls)
    return array if views else pc.cast(array, options=_TO_BINARY)


def _headers_array(columns: Columns, sources: list[pa.Buffer]) -> pa.Array:
    """The headers of each record; null if it has none, as in Spark's connector."""
    count = columns.header_count
    keys = _utf8_array(_binary_array(columns.header_keys.getvalue(), count, 0, sources, views=False))
    values = _binary_array(columns.header_values.getvalue(), count, columns.null_header_values, sources, views=False)
    starts = np.append(np.frombuffer(columns.header_starts.getvalue(), dtype=np.int32), np.int32(count))
    validity = _bitmap(starts[1:] != starts[:-1])
    elements = pa.StructArray.from_arrays([keys, values], fields=list(HEADER_TYPE))
    return pa.Array.from_buffers(HEADERS_TYPE, columns.count, [validity, pa.py_buffer(starts)], children=[elements])


def _utf8_array(array: pa.Array) -> pa.Array:
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:  # a name that is not UTF-8; Java's reader uses replacement characters for it
        return pa.array([name.decode("utf-8", "replace") for name in array.to_pylist()], pa.string())


def _bitmap(flags: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def encode(
    key: pa.Array | pa.ChunkedArray | None,
    value: pa.Array | pa.ChunkedArray,
    timestamp: pa.Array | pa.ChunkedArray | None = None,
    headers: pa.Array | pa.ChunkedArray | None = None,
    *,
    now_ms: int = NO_TIMESTAMP,
    codec: int = NONE,
    level: int | None = None,
    batch_size: int = BATCH_SIZE_DEFAULT,
    base_offset: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> list[bytes]:
    """The rows as v2 batches of at most `batch_size` bytes each, unless a single record needs more.

    Keys and values may be any binary or string type, timestamps integers (ms) or timestamps; a row without a timestamp gets `now_ms`.
    Headers are lists of structs with key and value. Every batch starts at offset 0, as brokers require of producers, unless `base_offset`
    is given for the first batch; sequences continue from batch to batch. The bytes are the same as those of BatchBuilder.
    """
    count = len(value)
    for name, column in (("key", key), ("timestamp", timestamp), ("headers", headers)):
        if column is not None and len(column) != count:
            raise ValueError(f"{len(column)} rows of {name} do not fit {count} rows of value")
    rows = Rows(count, _nullable_bytes(key, count), _nullable_bytes(value, count), _timestamps(timestamp, count, now_ms))
    if headers is not None:
        _add_headers(rows, headers)
    fields = BatchFields(codec, level, batch_size, base_offset, producer_id, producer_epoch, base_sequence, transactional, leader_epoch)
    return encode_rows(rows, fields)


def _nullable_bytes(column: pa.Array | pa.ChunkedArray | None, count: int) -> NullableBytes:
    if column is None or column.null_count == count:
        return NullableBytes(b"", bytes(8 * count), np.full(count, -1, dtype=np.int64).tobytes())
    array = _one_array(column).cast(pa.large_binary())
    _, offsets_buffer, content = array.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64, count=count + 1, offset=8 * array.offset)
    sizes = np.diff(offsets)
    if array.null_count > 0:
        sizes[array.is_null().to_numpy(zero_copy_only=False)] = -1
    first, last = int(offsets[0]), int(offsets[-1])
    used = content.slice(first, last - first).to_pybytes() if last > first else b""
    return NullableBytes(used, (offsets[:-1] - first).tobytes(), sizes.tobytes())


def _timestamps(column: pa.Array | pa.ChunkedArray | None, count: int, now_ms: int) -> bytes:
    if column is None:
        return bytes(np.full(count, now_ms, dtype=np.int64).tobytes())
    array = _one_array(column)
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("ms", tz=array.type.tz), safe=False)  # Kafka stores milliseconds
    return bytes(array.cast(pa.int64()).fill_null(now_ms).to_numpy().tobytes())


def _add_headers(rows: Rows, column: pa.Array | pa.ChunkedArray) -> None:
    array = _one_array(column)
    starts = array.offsets.to_numpy().astype(np.int64)
    first, last = int(starts[0]), int(starts[-1])
    elements = array.values[first:last]
    keys, values = (elements.flatten()[elements.type.get_field_index(name)] for name in ("key", "value"))
    if keys.null_count > 0:
        raise ValueError("Invalid null header key found in headers")
    sizes = np.diff(starts)
    if array.null_count > 0:
        sizes[array.is_null().to_numpy(zero_copy_only=False)] = 0
    rows.header_starts = (starts[:-1] - first).tobytes()
    rows.header_counts = sizes.tobytes()
    rows.header_keys = _nullable_bytes(keys, len(keys))
    rows.header_values = _nullable_bytes(values, len(values))


def _one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
