# Compiled by mypyc: src/compiled.toml lists this module.
"""The checksums of batches: CRC-32C of a v2 batch from its attributes on, CRC-32 of a v0 or v1 entry from its magic byte on.

Base offset and leader epoch are before the checked bytes, so a leader sets them without changing the checksum. Only the header of a batch
is read before its checksum is verified.
"""

from __future__ import annotations

import zlib
from typing import Final

import google_crc32c
from mypy_extensions import i64

from barnabas.errors import CorruptRecord
from barnabas.records.batch import HEADER_SIZE_V2, LOG_OVERHEAD, MAGIC_AT, MAGIC_V2, Batch

CHECKED_FROM_V2: Final = 21

# google_crc32c accepts only `bytes`, so the checked bytes are copied: a copy of this size is still in the CPU cache when it is read.
_CHUNK: Final = 65536


def crc32c(data: bytes, start: i64, end: i64) -> i64:
    """CRC-32C (Castagnoli) of `data[start:end]`."""
    return extend_crc32c(0, data, start, end)


def extend_crc32c(crc: i64, data: bytes, start: i64, end: i64) -> i64:
    """The CRC-32C of the bytes that gave `crc`, followed by `data[start:end]`."""
    if end - start <= 2 * _CHUNK:
        return i64(google_crc32c.extend(crc, data[start:end]))
    at: i64 = start
    while at < end:
        stop: i64 = at + _CHUNK
        if stop > end:
            stop = end
        crc = i64(google_crc32c.extend(crc, data[at:stop]))
        at = stop
    return crc


def crc32(data: bytes, start: i64, end: i64) -> i64:
    """CRC-32 (the one of zlib) of `data[start:end]`."""
    return i64(zlib.crc32(memoryview(data)[start:end]))


def batch_crc(data: bytes, batch: Batch) -> i64:
    """The checksum that the batch should have, by the rule of its format."""
    if batch.magic >= MAGIC_V2:
        return crc32c(data, batch.at + CHECKED_FROM_V2, batch.end)
    return crc32(data, batch.at + MAGIC_AT, batch.end)


def is_valid(data: bytes, batch: Batch) -> bool:
    return batch.crc == batch_crc(data, batch)


def ensure_valid(data: bytes, batch: Batch) -> None:
    """Raises CorruptRecord unless the batch has the checksum of its bytes."""
    if batch.magic >= MAGIC_V2 and batch.size < HEADER_SIZE_V2:
        raise CorruptRecord(
            f"Record batch is corrupt (the size {batch.size} is smaller than the minimum allowed overhead {HEADER_SIZE_V2})"
        )
    if batch.size < LOG_OVERHEAD or batch.end > len(data):
        raise CorruptRecord(f"Record batch at byte {batch.at} of {batch.size} bytes runs past the end of the data ({len(data)} bytes)")
    computed: i64 = batch_crc(data, batch)
    if batch.crc != computed:
        raise CorruptRecord(f"Record is corrupt (stored crc = {batch.crc}, computed crc = {computed})")
