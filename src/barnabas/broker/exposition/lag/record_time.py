"""The timestamp of the first record at or after an offset, from the bytes of the batches there.

The header of a batch has the timestamp of its first record. A record in the middle of a batch is read only if it may have another
timestamp, and if the batch is small: the timestamp of a larger batch is that of its first record, so the lag may be shown too large by the
time that the batch spans, never too small.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.errors import KafkaError
from barnabas.records.batch import HEADER_SIZE_V2, LOG_APPEND_TIME, MAGIC_V2, Batch, entry_size, read_batch
from barnabas.records.reader import each_record

BATCH_BYTES_MAX: Final = 65_536  # larger batches are judged by their header
_RECORD_BYTES_MAX: Final = 1 << 20  # of a small batch after decompression
_SIZE_MAX: Final = 1 << 40


class BatchTime(NamedTuple):
    """`timestamp` is None if the batch has no record of a producer: it is a marker of a transaction. -1 is a record without a timestamp."""

    timestamp: int | None
    next_offset: int
    size: int


def first_batch(data: bytes, offset: int) -> BatchTime | None:
    """The batch at the beginning of `data`, which may be cut: the header suffices. None if not even that is there."""
    size = entry_size(data, 0, _SIZE_MAX) if len(data) >= HEADER_SIZE_V2 else entry_size(data, 0, len(data))
    if size == 0:
        return None
    batch = read_batch(data, 0, size)
    return BatchTime(None if batch.is_control else _timestamp(data, batch, offset), batch.next_offset, size)


def needs_records(data: bytes, offset: int) -> bool:
    """Whether the header in `data` does not suffice, and the batch is small enough to be read."""
    size = entry_size(data, 0, _SIZE_MAX)
    batch = read_batch(data, 0, size)
    return not _is_in_header(batch, offset) and size <= BATCH_BYTES_MAX


def _is_in_header(batch: Batch, offset: int) -> bool:
    if batch.magic < MAGIC_V2:
        return batch.codec == 0
    if batch.is_control or batch.timestamp_type == LOG_APPEND_TIME or batch.base_timestamp == batch.max_timestamp:
        return True
    return offset <= batch.base_offset and batch.delete_horizon_ms < 0


def _timestamp(data: bytes, batch: Batch, offset: int) -> int:
    if batch.timestamp_type == LOG_APPEND_TIME:
        return batch.max_timestamp
    if not _is_in_header(batch, offset) and batch.size <= min(len(data), BATCH_BYTES_MAX):
        try:
            for record in each_record(data, batch, _RECORD_BYTES_MAX):
                if record.offset >= offset:
                    return record.timestamp
        except KafkaError:
            pass  # its records are too many or damaged: the header has to suffice
    return batch.base_timestamp if batch.delete_horizon_ms < 0 else batch.max_timestamp
