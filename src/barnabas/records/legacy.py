# Compiled by mypyc: src/compiled.toml lists this module.
"""Message formats v0 and v1: entries with a CRC-32 each, and wrappers whose value is a compressed set of entries.

Logs older than Kafka 0.11 consist of them. The reader gets the same `Record` from this module as from a v2 batch. The caller verifies the
checksum of an outer entry with `crc`; this module verifies those of inner entries, because no other code sees them.

Layout of an entry (big endian):

     0  offset      i64     12  crc-32       u32     18  timestamp   i64, v1 only
     8  size        i32     16  magic        i8          key size    i32, -1 for null, then the key
                            17  attributes   i8          value size  i32, -1 for null, then the value
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from barnabas.errors import CorruptRecord, InvalidRecord
from barnabas.records.batch import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAGIC_V0,
    MAGIC_V1,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    RECORD_OVERHEAD_V0,
    RECORD_OVERHEAD_V1,
    Batch,
    entry_size,
)
from barnabas.records.codecs.compression import DECOMPRESSED_SIZE_MAX, FIRST_LOOK, ZSTD, decompress, decompress_start
from barnabas.records.record import Record

_ATTRIBUTES_AT: Final = 17
_TIMESTAMP_AT: Final = 18
_KEY_SIZE_AT_V0: Final = 18
_KEY_SIZE_AT_V1: Final = 26

ENTRY_SIZE_MAX: Final = 2**31 - 1


def read_records(data: bytes, batch: Batch, limit: int = DECOMPRESSED_SIZE_MAX) -> list[Record]:
    return list(each_record(data, batch, limit))


def each_record(data: bytes, batch: Batch, limit: int = DECOMPRESSED_SIZE_MAX) -> Iterator[Record]:
    """The record of a plain entry, or the records in a wrapper with the offsets and timestamps for readers."""
    if batch.attributes & CODEC_MASK == 0:
        yield _read_entry(data, batch.at, batch.end, batch.base_offset, batch.max_timestamp, batch.timestamp_type)
        return
    yield from inner_records(wrapped_entries(data, batch, limit), batch)


def inner_records(inner: bytes, batch: Batch) -> Iterator[Record]:
    """The records in a wrapper, from the result of `wrapped_entries`."""
    shift: i64 = _shift(inner, batch)
    timestamp_type: i64 = batch.timestamp_type
    at: i64 = 0
    end: i64 = len(inner)
    while True:
        size: i64 = entry_size(inner, at, end)
        if size == 0:  # an incomplete last entry is left out, as Kafka does
            break
        check_inner(inner, at, size, batch.magic)
        timestamp: i64 = NO_TIMESTAMP
        if timestamp_type == LOG_APPEND_TIME:
            timestamp = batch.max_timestamp
        elif batch.magic == MAGIC_V1:
            timestamp = read_i64_be(inner, at + _TIMESTAMP_AT)
        yield _read_entry(inner, at, at + size, read_i64_be(inner, at) + shift, timestamp, timestamp_type)
        at += size
    if at == 0:
        raise InvalidRecord("Found invalid compressed record set with no inner records")


def wrapped_entries(data: bytes, batch: Batch, limit: int = DECOMPRESSED_SIZE_MAX) -> bytes:
    """The decompressed value of a wrapper: its inner entries as they were written, v1 with relative offsets."""
    value = wrapped_value(data, batch)
    if limit > FIRST_LOOK:
        first = decompress_start(batch.codec, value, batch.magic)
        size: i64 = len(first)
        if size < FIRST_LOOK:
            return first
        size = entry_size(first, 0, size)
        if size > 0:
            check_inner(first, 0, size, batch.magic)
    return decompress(batch.codec, value, batch.magic, limit)


def wrapped_value(data: bytes, batch: Batch) -> bytes:
    """The compressed value of a wrapper."""
    if batch.codec == ZSTD:
        raise InvalidRecord(f"Invalid wrapper compressionType found in legacy deep record iterator {batch.magic}")
    wrapper = _read_entry(data, batch.at, batch.end, batch.base_offset, batch.max_timestamp, batch.timestamp_type)
    value = wrapper.value
    if value is None:
        raise InvalidRecord(f"Found invalid compressed record set with null value (magic = {batch.magic})")
    return value


def base_offset(data: bytes, batch: Batch) -> i64:
    """The offset of the first record. A wrapper holds only that of its last, so it is decompressed."""
    if batch.attributes & CODEC_MASK == 0:
        return batch.base_offset
    return next(each_record(data, batch)).offset


def write_entry(out: BytesWriter, magic: i64, offset: i64, timestamp: i64, attributes: i64, key: bytes | None, value: bytes | None) -> None:
    """Appends one entry. Format v0 has no timestamp: it is dropped."""
    if magic != MAGIC_V0 and magic != MAGIC_V1:
        raise ValueError(f"Invalid magic value {magic}")
    if timestamp < 0 and timestamp != NO_TIMESTAMP:
        raise ValueError(f"Invalid message timestamp {timestamp}")
    size: i64 = record_size(magic, key, value)
    if size > ENTRY_SIZE_MAX - LOG_OVERHEAD:
        raise ValueError(f"A message of {size} bytes does not fit in format v{magic}")
    checked = BytesWriter()
    checked.append(magic)
    checked.append(attributes)
    if magic == MAGIC_V1:
        write_i64_be(checked, timestamp)
    _write_nullable(checked, key)
    _write_nullable(checked, value)
    body = checked.getvalue()
    write_i64_be(out, offset)
    write_i32_be(out, i32(size))
    crc: i64 = zlib.crc32(body)
    write_i32_be(out, i32(crc - 0x100000000 if crc >= 0x80000000 else crc))
    out.write(body)


def record_size(magic: i64, key: bytes | None, value: bytes | None) -> i64:
    """The size of an entry without its offset and size fields."""
    size: i64 = RECORD_OVERHEAD_V0 if magic == MAGIC_V0 else RECORD_OVERHEAD_V1
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    return size


def _read_entry(data: bytes, at: i64, end: i64, offset: i64, timestamp: i64, timestamp_type: i64) -> Record:
    size_at: i64 = at + (_KEY_SIZE_AT_V0 if data[at + MAGIC_AT] == MAGIC_V0 else _KEY_SIZE_AT_V1)
    key_size, key_at = _nullable_size(data, size_at, end, offset)
    value_size, value_at = _nullable_size(data, key_at + max(0, key_size), end, offset)
    return Record(data, offset, timestamp, timestamp_type, NO_SEQUENCE, key_at, key_size, value_at, value_size, end, 0)


def _nullable_size(data: bytes, at: i64, end: i64, offset: i64) -> tuple[i64, i64]:
    """The size at `at` and the position of its bytes, checked to be before `end`. A negative size means null, as in Kafka."""
    if at + 4 > end or end > len(data):
        raise CorruptRecord(f"The message at offset {offset} ends before its key and value do")
    size: i64 = i64(read_i32_be(data, at))
    if size < 0:
        return -1, at + 4
    if at + 4 + size > end:
        raise CorruptRecord(f"The message at offset {offset} claims {size} bytes where {end - at - 4} are left")
    return size, at + 4


def check_inner(inner: bytes, at: i64, size: i64, wrapper_magic: i64) -> None:
    magic: i64 = inner[at + MAGIC_AT]
    if magic != wrapper_magic:
        raise InvalidRecord(f"Compressed message magic {magic} does not match wrapper magic {wrapper_magic}")
    if inner[at + _ATTRIBUTES_AT] & CODEC_MASK:
        raise InvalidRecord("Inner messages must not be compressed")
    stored: i64 = i64(read_i32_be(inner, at + LOG_OVERHEAD)) & 0xFFFFFFFF
    computed: i64 = zlib.crc32(inner[at + MAGIC_AT : at + size])
    if stored != computed:
        raise CorruptRecord(f"Record is corrupt (stored crc = {stored}, computed crc = {computed})")


def _shift(inner: bytes, batch: Batch) -> i64:
    """The number to add to inner offsets: those of v1 are relative to the first record, and the wrapper has the offset of the last."""
    wrapper_offset: i64 = batch.last_offset
    if batch.magic != MAGIC_V1 or wrapper_offset == 0:  # some versions of librdkafka produce wrappers with offset 0
        return 0
    last: i64 = 0
    at: i64 = 0
    size: i64 = entry_size(inner, 0, len(inner))
    while size > 0:
        last = read_i64_be(inner, at)
        at += size
        size = entry_size(inner, at, len(inner))
    if wrapper_offset < last:
        raise InvalidRecord(
            f"Found invalid wrapper offset in compressed v1 message set, wrapper offset '{wrapper_offset}' is less than the last inner "
            f"message offset '{last}' and it is not zero."
        )
    return wrapper_offset - last


def _write_nullable(out: BytesWriter, content: bytes | None) -> None:
    if content is None:
        write_i32_be(out, -1)
    else:
        write_i32_be(out, len(content))
        out.write(content)
