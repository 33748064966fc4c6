# Compiled by mypyc: src/compiled.toml lists this module.
"""Reads the records of a batch: the positions of each key, value and header, checked.

Consumers, coordinators, compaction and tools use it; the broker's hot paths do not. The checks and their error texts are those of Kafka's
readers. Every size is compared with the available bytes before it is used, and nothing is copied out of a batch before a caller reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mypy_extensions import i64

from barnabas.errors import CorruptRecord, InvalidRecord
from barnabas.records import legacy
from barnabas.records.batch import (
    CODEC_MASK,
    HEADER_SIZE_V2,
    LOG_APPEND_TIME,
    MAGIC_V2,
    NO_SEQUENCE,
    Batch,
    increment_sequence,
    read_batches,
)
from barnabas.records.codecs.compression import DECOMPRESSED_SIZE_MAX, decompress
from barnabas.records.codecs.varint import read_varint, read_varlong
from barnabas.records.record import Record


def read_records(data: bytes, batch: Batch, limit: int = DECOMPRESSED_SIZE_MAX) -> list[Record]:
    """Every record of `batch`, which is in `data`; `limit` is the most bytes into which a compressed batch may decompress."""
    return list(each_record(data, batch, limit))


def each_record(data: bytes, batch: Batch, limit: int = DECOMPRESSED_SIZE_MAX) -> Iterator[Record]:
    """As `read_records`, one by one: a batch of a hostile client may hold millions."""
    if batch.magic < MAGIC_V2:
        yield from legacy.each_record(data, batch, limit)
        return
    count: i64 = batch.count
    if count < 0:
        raise InvalidRecord(f"Found invalid record count {count} in magic v{batch.magic} batch")
    if count == 0:
        return
    body, at, end = records_body(data, batch, limit)
    yield from records_in(body, at, end, batch)


def records_in(body: bytes, start: i64, end: i64, batch: Batch) -> Iterator[Record]:
    """The v2 records of `batch`, from the bytes that `records_body` returned."""
    count: i64 = batch.count
    timestamp_type: i64 = batch.timestamp_type
    at: i64 = start
    read: i64 = 0
    while read < count:
        size, at = _record_size(body, at, end)
        yield _read_record(body, at, size, end, batch, timestamp_type)
        at += size
        read += 1
    if at != end:
        raise InvalidRecord("Incorrect declared batch size, records still remaining in file")


def check_record(body: bytes, at: i64, end: i64, batch: Batch, index: i64) -> None:
    """Raises Kafka's error for the damaged v2 record number `index` of a batch, which begins at `at`."""
    if index == batch.count:
        if at != end:
            raise InvalidRecord("Incorrect declared batch size, records still remaining in file")
        return
    size, record_at = _record_size(body, at, end)
    _read_record(body, record_at, size, end, batch, batch.timestamp_type)


def records_of(data: bytes) -> Iterator[Record]:
    """Every record of every whole batch in `data`, in order."""
    for batch in read_batches(data):
        yield from read_records(data, batch)


def records_body(data: bytes, batch: Batch, limit: int = DECOMPRESSED_SIZE_MAX) -> tuple[bytes, i64, i64]:
    """The bytes that hold the v2 records of `batch`, decompressed, with the start of the first and the end of the last."""
    start: i64 = batch.at + HEADER_SIZE_V2
    end: i64 = batch.at + batch.size
    if end > len(data) or start > end:
        raise CorruptRecord(f"Record batch at byte {batch.at} of {batch.size} bytes does not fit in the {len(data)} bytes given")
    codec: i64 = batch.attributes & CODEC_MASK
    if codec == 0:
        return data, start, end
    body = decompress(codec, data[start:end], MAGIC_V2, limit)
    return body, 0, len(body)


def skip_headers(body: bytes, at: i64, count: i64, end: i64) -> i64:
    """Checks `count` headers from `at` on; returns the position after them."""
    position: i64 = at
    left: i64 = count
    while left > 0:
        key_size, position = read_varint(body, position)
        if key_size < 0:
            raise InvalidRecord(f"Invalid negative header key size {key_size}")
        position += key_size
        if position > end:
            raise InvalidRecord("Found invalid record structure")
        value_size, position = read_varint(body, position)
        if value_size > 0:
            position += value_size
        if position > end:
            raise InvalidRecord("Found invalid record structure")
        left -= 1
    return position


def _record_size(body: bytes, at: i64, end: i64) -> tuple[i64, i64]:
    try:
        size, after = read_varint(body, at)
    except CorruptRecord as fault:
        raise InvalidRecord("Incorrect declared batch size, premature EOF reached") from fault
    if after > end:
        raise InvalidRecord("Incorrect declared batch size, premature EOF reached")
    if size > end - after:
        raise InvalidRecord(
            f"Invalid record size: expected {size} bytes in record payload, but instead the buffer has only {end - after} remaining bytes."
        )
    return size, after


def _read_record(body: bytes, at: i64, size: i64, end: i64, batch: Batch, timestamp_type: i64) -> Record:
    try:
        # The first byte holds attributes, which are not used in this format.
        timestamp_delta, position = read_varlong(body, at + 1)
        offset_delta, position = read_varint(body, position)
        key_size, key_at = read_varint(body, position)
        position = key_at + key_size if key_size > 0 else key_at
        if position > end:
            raise InvalidRecord("Found invalid record structure")
        value_size, value_at = read_varint(body, position)
        position = value_at + value_size if value_size > 0 else value_at
        if position > end:
            raise InvalidRecord("Found invalid record structure")
        header_count, headers_at = read_varint(body, position)
        if headers_at > end:
            raise InvalidRecord("Found invalid record structure")
        if header_count < 0:
            raise InvalidRecord(f"Found invalid number of record headers {header_count}")
        if header_count > end - headers_at:
            raise InvalidRecord(f"Found invalid number of record headers. {header_count} is larger than the remaining size of the buffer")
        position = skip_headers(body, headers_at, header_count, end)
    except CorruptRecord as fault:
        raise InvalidRecord("Found invalid record structure") from fault
    if position != at + size:
        raise InvalidRecord(f"Invalid record size: expected to read {size} bytes in record payload, but instead read {position - at}")
    return Record(
        body,
        batch.base_offset + offset_delta,
        batch.max_timestamp if timestamp_type == LOG_APPEND_TIME else batch.base_timestamp + timestamp_delta,
        timestamp_type,
        increment_sequence(batch.base_sequence, offset_delta) if batch.base_sequence >= 0 else NO_SEQUENCE,
        key_at,
        key_size if key_size >= 0 else -1,
        value_at,
        value_size if value_size >= 0 else -1,
        headers_at,
        header_count,
    )
