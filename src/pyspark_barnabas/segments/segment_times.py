"""The offset of a time without a broker: that of the first record at or after it, as ListOffsets returns it.

Used by the planning of the direct reader. The time index gives the start; from there batch headers are read, so that an index that is
incomplete or was not copied costs time but never skips a record. Only the batch that contains the record is decoded.
"""

from __future__ import annotations

import logging
from typing import Final

import numpy as np

from barnabas.errors import KafkaError
from barnabas.records.batch import Batch
from barnabas.records.columns.columns import decode
from pyspark_barnabas.read.batch_cuts import Damage, chunks
from pyspark_barnabas.segments.log_dirs import SMALL_FILE_BYTES_MAX, PartitionLog, SegmentFiles
from pyspark_barnabas.segments.segment_index import position_before

_log: Final = logging.getLogger(__name__)

_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])


def offset_at(log: PartitionLog, timestamp_ms: int) -> int | None:
    """The offset of the first record at or after a time; None if there is none. Records below the log start offset do not count."""
    for number, segment in enumerate(log.segments):
        is_over = number + 1 < len(log.segments) and log.segments[number + 1].base_offset <= log.log_start_offset
        if not is_over and (offset := _in_segment(log, segment, timestamp_ms)) is not None:
            return offset
    return None


def _in_segment(log: PartitionLog, segment: SegmentFiles, timestamp_ms: int) -> int | None:
    start = position_before(log.store, segment, _offset_before(log, segment, timestamp_ms))
    with log.store.open(segment.log) as file:
        try:
            for chunk in chunks(file, start, segment.size):
                for batch in chunk.batches:
                    if batch.max_timestamp >= timestamp_ms and batch.last_offset >= log.log_start_offset:
                        offset = _in_batch(chunk.data, batch, timestamp_ms, log.log_start_offset)
                        if offset is not None:
                            return offset
        except Damage as damage:
            if not damage.is_torn:
                _log.warning("Looking for a time stops early in a segment: %s", damage)
    return None


def _in_batch(data: bytes, batch: Batch, timestamp_ms: int, first_offset: int) -> int | None:
    if batch.is_control:
        return int(batch.base_offset)
    try:
        records = decode(data[batch.at : batch.at + batch.size], first_offset=first_offset, check_crc=False).records
    except KafkaError:
        return max(int(batch.base_offset), first_offset)  # the read of this segment reports the damage
    times = records.column("timestamp").cast("int64").to_numpy()
    late = np.flatnonzero(times >= timestamp_ms)
    return int(records.column("offset")[int(late[0])].as_py()) if len(late) else None


def _offset_before(log: PartitionLog, segment: SegmentFiles, timestamp_ms: int) -> int:
    """An offset up to which all records are earlier than the time, by the time index; the base offset if the index has no entry."""
    data = b"" if segment.time_index is None else log.store.read(segment.time_index, SMALL_FILE_BYTES_MAX)
    entries = np.frombuffer(data, dtype=_ENTRY, count=len(data) // _ENTRY.itemsize)
    times = entries["timestamp"].astype(np.int64)
    falling = np.flatnonzero(np.diff(times) <= 0)  # Kafka fills the index of an active segment with zeros
    earlier = np.searchsorted(times[: int(falling[0]) + 1] if len(falling) else times, timestamp_ms, side="left")
    return segment.base_offset + (int(entries["offset"][earlier - 1]) if earlier else 0)
