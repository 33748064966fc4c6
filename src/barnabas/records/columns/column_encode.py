# Compiled by mypyc: src/compiled.toml lists this module.
"""Encodes columns into batches, with no Python object per record: the counterpart of `column_walk`.

This is the inner loop of the columnar producers (the Spark sink, the clients). It reads raw little-endian columns that `columns` takes from
Arrow arrays and writes v2 batches of a bounded size, with the same bytes that `builder` writes for the same records. It never reorders,
drops or changes a row; it rejects a row that a batch cannot express.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_i16_le, write_i64_le
from mypy_extensions import i16, i64, u8

from barnabas.records.batch import (
    HEADER_SIZE_V2,
    MAGIC_V2,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    increment_sequence,
)
from barnabas.records.builder import RECORD_SIZE_MAX, encode_batch
from barnabas.records.codecs.compression import NONE, codec_name, compress
from barnabas.records.codecs.varint import size_of_varint, size_of_varlong, write_varint, write_varlong

_COPY_BY_WORDS_MAX: Final = 32  # up to here a loop over words is cheaper than making a slice


class NullableBytes:
    """A column of byte strings: all bytes, the start of each string (int64), and the size of each (int64, -1 for null)."""

    def __init__(self, content: bytes, starts: bytes, sizes: bytes) -> None:
        self.content = content
        self.starts = starts
        self.sizes = sizes


class Rows:
    """The columns to encode. `header_starts` and `header_counts` (int64) give the headers of each row; empty if no row has headers."""

    def __init__(self, count: i64, keys: NullableBytes, values: NullableBytes, timestamps: bytes) -> None:
        self.count = count
        self.keys = keys
        self.values = values
        self.timestamps = timestamps
        self.header_starts: bytes = b""
        self.header_counts: bytes = b""
        self.header_keys = NullableBytes(b"", b"", b"")
        self.header_values = NullableBytes(b"", b"", b"")


class BatchFields:
    """The header fields that all batches share, and the largest size of a batch."""

    def __init__(
        self,
        codec: i64,
        level: int | None,
        batch_size: i64,
        base_offset: int | None,
        producer_id: i64,
        producer_epoch: i64,
        base_sequence: i64,
        transactional: bool,
        leader_epoch: i64,
    ) -> None:
        codec_name(codec)  # raises ValueError for an unknown codec
        if producer_id == NO_PRODUCER_ID:
            if transactional:
                raise ValueError("Cannot write transactional messages without a valid producer ID")
        elif producer_epoch == NO_PRODUCER_EPOCH:
            raise ValueError("Invalid negative producer epoch")
        elif base_sequence < 0:
            raise ValueError("Invalid negative sequence number used")
        self.codec = codec
        self.level = level
        self.batch_size = batch_size
        self.base_offset = base_offset
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.attributes: i64 = codec | TRANSACTIONAL_BIT if transactional else codec
        self.leader_epoch = leader_epoch


def encode_rows(rows: Rows, fields: BatchFields) -> list[bytes]:
    """Every row, in order, in as few batches as `fields.batch_size` allows."""
    batches: list[bytes] = []
    body = BytesWriter()
    row: i64 = 0
    end: i64 = rows.count
    while row < end:
        body.truncate(0)
        stop: i64 = _write_records(body, rows, row, end, fields.batch_size)
        batch = _finish(body.getvalue(), rows, row, stop, fields)
        if len(batch) > fields.batch_size and stop - row > 1:
            end = row + (stop - row) // 2  # the codec made it larger: try with half of the rows
            continue
        batches.append(batch)
        row = stop
        end = rows.count
    return batches


def _finish(body: bytes, rows: Rows, row: i64, stop: i64, fields: BatchFields) -> bytes:
    """The batch of the rows from `row` up to `stop`, whose records are in `body`."""
    base_offset: i64 = 0
    if fields.base_offset is not None:
        base_offset = fields.base_offset + row
    base_sequence: i64 = fields.base_sequence
    if base_sequence != NO_SEQUENCE:
        base_sequence = increment_sequence(base_sequence, row)
    if fields.codec != NONE:
        body = compress(fields.codec, body, MAGIC_V2, fields.level)
    return encode_batch(
        body,
        fields.attributes,
        base_offset,
        base_offset + stop - row - 1,
        read_i64_le(rows.timestamps, row << 3),
        _max_timestamp(rows.timestamps, row, stop),
        stop - row,
        fields.producer_id,
        fields.producer_epoch,
        base_sequence,
        fields.leader_epoch,
    )


def _max_timestamp(timestamps: bytes, row: i64, stop: i64) -> i64:
    greatest: i64 = NO_TIMESTAMP
    while row < stop:
        timestamp: i64 = read_i64_le(timestamps, row << 3)
        if timestamp > greatest:
            greatest = timestamp
        row += 1
    return greatest


def _write_records(out: BytesWriter, rows: Rows, first: i64, end: i64, batch_size: i64) -> i64:
    """Writes rows from `first` on, at least one, as long as the batch stays within `batch_size`; returns the row after the last."""
    keys = rows.keys
    values = rows.values
    timestamps = rows.timestamps
    with_headers: bool = len(rows.header_counts) > 0
    base_timestamp: i64 = read_i64_le(timestamps, first << 3)
    room: i64 = batch_size - HEADER_SIZE_V2
    row: i64 = first
    while row < end:
        timestamp: i64 = read_i64_le(timestamps, row << 3)
        if timestamp < NO_TIMESTAMP:
            raise ValueError(f"Invalid negative timestamp {timestamp}")
        timestamp_delta: i64 = _timestamp_delta(timestamp, base_timestamp)
        offset_delta: i64 = row - first
        key_size: i64 = read_i64_le(keys.sizes, row << 3)
        value_size: i64 = read_i64_le(values.sizes, row << 3)
        size: i64 = 1 + size_of_varlong(timestamp_delta) + size_of_varint(offset_delta)
        size += size_of_varint(key_size) + size_of_varint(value_size) + (_size_of_headers(rows, row) if with_headers else 1)
        if key_size > 0:
            size += key_size
        if value_size > 0:
            size += value_size
        if size > RECORD_SIZE_MAX:
            raise ValueError(f"A record of {size} bytes does not fit in a batch")
        room -= size_of_varint(size) + size
        if room < 0 and row > first:
            return row
        _write_varint(out, size)
        out.append(0)  # attributes, which are not used in this format
        _write_varlong(out, timestamp_delta)
        _write_varint(out, offset_delta)
        _write_nullable(out, keys, row, key_size)
        _write_nullable(out, values, row, value_size)
        if with_headers:
            _write_headers(out, rows, row)
        else:
            out.append(0)
        row += 1
    return row


def _timestamp_delta(timestamp: i64, base_timestamp: i64) -> i64:
    """The difference as a Java long, which wraps: uncompiled Python does not wrap if one is -1 and the other the largest."""
    delta: i64 = timestamp - base_timestamp
    above: i64 = delta >> 63
    if above == 0 or above == -1:
        return delta
    return delta - (above << 63) - ((above & 1) << 63)


def _size_of_headers(rows: Rows, row: i64) -> i64:
    count: i64 = read_i64_le(rows.header_counts, row << 3)
    size: i64 = size_of_varint(count)
    header: i64 = read_i64_le(rows.header_starts, row << 3)
    end: i64 = header + count
    while header < end:
        key_size: i64 = read_i64_le(rows.header_keys.sizes, header << 3)
        value_size: i64 = read_i64_le(rows.header_values.sizes, header << 3)
        size += size_of_varint(key_size) + key_size + size_of_varint(value_size)
        if value_size > 0:
            size += value_size
        header += 1
    return size


def _write_headers(out: BytesWriter, rows: Rows, row: i64) -> None:
    count: i64 = read_i64_le(rows.header_counts, row << 3)
    _write_varint(out, count)
    header: i64 = read_i64_le(rows.header_starts, row << 3)
    end: i64 = header + count
    while header < end:
        _write_nullable(out, rows.header_keys, header, read_i64_le(rows.header_keys.sizes, header << 3))
        _write_nullable(out, rows.header_values, header, read_i64_le(rows.header_values.sizes, header << 3))
        header += 1


def _write_nullable(out: BytesWriter, column: NullableBytes, row: i64, size: i64) -> None:
    _write_varint(out, size)
    if size <= 0:
        return
    at: i64 = read_i64_le(column.starts, row << 3)
    content = column.content
    if size > _COPY_BY_WORDS_MAX:
        out.write(content[at : at + size])
        return
    end: i64 = at + size
    while at + 8 <= end:
        write_i64_le(out, read_i64_le(content, at))
        at += 8
    while at < end:
        out.append(content[at])
        at += 1


def _write_varint(out: BytesWriter, value: i64) -> None:
    """As `write_varint`, without a loop for encodings of one or two bytes, which are nearly all."""
    raw: i64 = (value << 1) ^ (value >> 31)
    if raw < 0x80:
        out.append(u8(raw))
    elif raw < 0x4000:
        _write_two(out, raw)
    else:
        write_varint(out, value)


def _write_varlong(out: BytesWriter, value: i64) -> None:
    """As `write_varlong`, without a loop for encodings of one or two bytes."""
    raw: i64 = (value << 1) ^ (value >> 63)
    if raw < 0 or raw >= 0x4000:  # below 0: the largest, whose top bit reads as a sign
        write_varlong(out, value)
    elif raw < 0x80:
        out.append(u8(raw))
    else:
        _write_two(out, raw)


def _write_two(out: BytesWriter, raw: i64) -> None:
    """A varint of 14 bits."""
    write_i16_le(out, i16((raw & 0x7F) | 0x80 | (raw >> 7) << 8))
