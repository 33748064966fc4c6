# Compiled by mypyc: src/compiled.toml lists this module.
"""Builds batches, byte for byte as Kafka's MemoryRecordsBuilder does.

Producers, coordinators, compaction and format conversion use it. An uncompressed batch is exactly the one that Kafka would write from the
same records; a compressed one differs only by the codec library. A builder never reorders or drops a record: it rejects one that the format
cannot express.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import google_crc32c
from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from barnabas.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    CREATE_TIME,
    DELETE_HORIZON_BIT,
    HEADER_SIZE_V2,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_V0,
    MAGIC_V1,
    MAGIC_V2,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    RECORD_OVERHEAD_V0,
    RECORD_OVERHEAD_V1,
    TRANSACTIONAL_BIT,
)
from barnabas.records.codecs.compression import NONE, ZSTD, compress
from barnabas.records.codecs.varint import size_of_varint, size_of_varlong, write_varint, write_varlong
from barnabas.records.legacy import write_entry
from barnabas.records.reader import skip_headers
from barnabas.records.record import Header, Record

OFFSET_DELTA_MAX: Final = 2**31 - 1
RECORD_SIZE_MAX: Final = 2**31 - 1

# Kafka's margin for a codec that compresses a little less than its estimated ratio.
_RATIO_MARGIN: Final = 1.05
_NO_HEADERS: Final = b"\x00"

# The arguments of one record: timestamp, key, value, headers.
RecordTuple = tuple[int, bytes | None, bytes | None, Sequence[Header]]


class BatchBuilder:
    """Collects records, then builds one batch of them (or, uncompressed before v2, one entry for each).

    The base timestamp is that of the first record, or the delete horizon if there is one. `last_offset`, `max_timestamp` and
    `offset_of_max_timestamp` describe the records so far.
    """

    def __init__(
        self,
        magic: i64 = MAGIC_V2,
        codec: i64 = NONE,
        base_offset: i64 = 0,
        *,
        timestamp_type: i64 = CREATE_TIME,
        log_append_time: i64 = NO_TIMESTAMP,
        producer_id: i64 = NO_PRODUCER_ID,
        producer_epoch: i64 = NO_PRODUCER_EPOCH,
        base_sequence: i64 = NO_SEQUENCE,
        leader_epoch: i64 = NO_LEADER_EPOCH,
        transactional: bool = False,
        control: bool = False,
        delete_horizon_ms: i64 = NO_TIMESTAMP,
        level: int | None = None,
    ) -> None:
        if magic > MAGIC_V0 and timestamp_type != CREATE_TIME and timestamp_type != LOG_APPEND_TIME:
            raise ValueError("TimestampType must be set for magic >= 0")
        if magic < MAGIC_V2:
            _check_old_format(magic, codec, transactional, control, delete_horizon_ms)
        self.magic = magic
        self.codec = codec
        self.base_offset = base_offset
        self.timestamp_type = timestamp_type
        self.log_append_time = log_append_time
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.leader_epoch = leader_epoch
        self.transactional = transactional
        self.control = control
        self.delete_horizon_ms = delete_horizon_ms
        self.level = level
        self.estimated_ratio: float = 1.0  # compressed to uncompressed size, which the owner sets from earlier batches
        self.count: i64 = 0
        self.last_offset: i64 = base_offset - 1
        self.max_timestamp: i64 = NO_TIMESTAMP
        self.offset_of_max_timestamp: i64 = -1
        self._base_timestamp: i64 = delete_horizon_ms
        self._body = BytesWriter()

    @property
    def header_size(self) -> i64:
        """The size of the bytes around the records: a v2 header, the wrapper of an older compressed set, or 0."""
        if self.magic >= MAGIC_V2:
            return HEADER_SIZE_V2
        if self.codec == NONE:
            return 0
        return LOG_OVERHEAD + (RECORD_OVERHEAD_V0 if self.magic == MAGIC_V0 else RECORD_OVERHEAD_V1)

    @property
    def uncompressed_size(self) -> i64:
        return self.header_size + len(self._body)

    @property
    def estimated_size(self) -> int:
        if self.codec == NONE:
            return self.uncompressed_size
        return self.header_size + int(len(self._body) * self.estimated_ratio * _RATIO_MARGIN)

    def append(self, timestamp: i64, key: bytes | None, value: bytes | None, headers: Sequence[Header] = ()) -> None:
        """Adds a record at the next offset."""
        self.append_at(self.last_offset + 1, timestamp, key, value, headers)

    def append_at(self, offset: i64, timestamp: i64, key: bytes | None, value: bytes | None, headers: Sequence[Header] = ()) -> None:
        """Adds a record at `offset`, which may leave a gap but must be higher than the last."""
        self._check(offset, timestamp)
        if self.magic >= MAGIC_V2:
            self._write_record(offset, timestamp, key, value, _encode_headers(headers) if headers else _NO_HEADERS)
        else:
            if headers:
                raise ValueError(f"Magic v{self.magic} does not support record headers")
            self._write_entry(offset, timestamp, key, value)

    def append_record(self, record: Record, offset: i64 = -1) -> None:
        """Adds a record of another batch, at its own offset unless `offset` is given; its headers are copied as bytes."""
        at: i64 = offset if offset >= 0 else record.offset
        if self.magic < MAGIC_V2 or record.header_count == 0:
            self.append_at(at, record.timestamp, record.key, record.value, record.headers)
            return
        self._check(at, record.timestamp)
        headers_end: i64 = skip_headers(record.data, record.headers_at, record.header_count, len(record.data))
        headers = BytesWriter()
        write_varint(headers, record.header_count)
        headers.write(record.data[record.headers_at : headers_end])
        self._write_record(at, record.timestamp, record.key, record.value, headers.getvalue())

    def build(self, last_offset: i64 = -1) -> bytes:
        """The finished bytes; empty without records. `last_offset` keeps the end of a batch whose last records were removed."""
        self._check_producer_state()
        if self.count == 0:
            return b""
        body = self._body.getvalue()
        last: i64 = last_offset if last_offset >= 0 else self.last_offset
        max_timestamp: i64 = self.log_append_time if self.timestamp_type == LOG_APPEND_TIME else self.max_timestamp
        if self.magic < MAGIC_V2:
            return body if self.codec == NONE else self._wrap(body, last, max_timestamp)
        return encode_batch(
            body if self.codec == NONE else compress(self.codec, body, MAGIC_V2, self.level),
            self._attributes(),
            self.base_offset,
            last,
            self._base_timestamp,
            max_timestamp,
            self.count,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.leader_epoch,
        )

    def _check(self, offset: i64, timestamp: i64) -> None:
        if offset <= self.last_offset:
            raise ValueError(f"Illegal offset {offset} following previous offset {self.last_offset} (Offsets must increase monotonically).")
        if offset - self.base_offset > OFFSET_DELTA_MAX:
            raise ValueError(f"Maximum offset delta exceeded, base offset: {self.base_offset}, last offset: {offset}")
        if timestamp < 0 and timestamp != NO_TIMESTAMP:
            raise ValueError(f"Invalid negative timestamp {timestamp}")

    def _write_record(self, offset: i64, timestamp: i64, key: bytes | None, value: bytes | None, headers: bytes) -> None:
        if self.count == 0 and self.delete_horizon_ms < 0:
            self._base_timestamp = timestamp
        offset_delta: i64 = offset - self.base_offset
        timestamp_delta: i64 = timestamp - self._base_timestamp
        size: i64 = 1 + size_of_varlong(timestamp_delta) + size_of_varint(offset_delta) + _size_of_nullable(key) + _size_of_nullable(value)
        size += len(headers)
        if size > RECORD_SIZE_MAX:
            raise ValueError(f"A record of {size} bytes does not fit in a batch")
        out = self._body
        write_varint(out, size)
        out.append(0)
        write_varlong(out, timestamp_delta)
        write_varint(out, offset_delta)
        _write_nullable(out, key)
        _write_nullable(out, value)
        out.write(headers)
        self._written(offset, timestamp)

    def _write_entry(self, offset: i64, timestamp: i64, key: bytes | None, value: bytes | None) -> None:
        # Format v1 has relative inner offsets, so that a broker can assign offsets to a wrapper without decompressing it.
        relative: bool = self.magic == MAGIC_V1 and self.codec != NONE
        stamped: i64 = self.log_append_time if self.timestamp_type == LOG_APPEND_TIME else timestamp
        write_entry(self._body, self.magic, offset - self.base_offset if relative else offset, stamped, self._time_bit(), key, value)
        self._written(offset, stamped)

    def _written(self, offset: i64, timestamp: i64) -> None:
        self.count += 1
        self.last_offset = offset
        if self.magic > MAGIC_V0 and timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.offset_of_max_timestamp = offset

    def _wrap(self, body: bytes, last_offset: i64, max_timestamp: i64) -> bytes:
        out = BytesWriter()
        attributes: i64 = (self.codec & CODEC_MASK) | self._time_bit()
        write_entry(out, self.magic, last_offset, max_timestamp, attributes, None, compress(self.codec, body, self.magic, self.level))
        return out.getvalue()

    def _time_bit(self) -> i64:
        if self.magic > MAGIC_V0 and self.timestamp_type == LOG_APPEND_TIME:
            return LOG_APPEND_TIME_BIT
        return 0

    def _attributes(self) -> i64:
        attributes: i64 = (self.codec & CODEC_MASK) | self._time_bit()
        if self.transactional:
            attributes |= TRANSACTIONAL_BIT
        if self.control:
            attributes |= CONTROL_BIT
        if self.delete_horizon_ms >= 0:
            attributes |= DELETE_HORIZON_BIT
        return attributes

    def _check_producer_state(self) -> None:
        if self.producer_id == NO_PRODUCER_ID:
            if self.transactional:
                raise ValueError("Cannot write transactional messages without a valid producer ID")
            return
        if self.producer_epoch == NO_PRODUCER_EPOCH:
            raise ValueError("Invalid negative producer epoch")
        if self.base_sequence < 0 and not self.control:
            raise ValueError("Invalid negative sequence number used")
        if self.magic < MAGIC_V2:
            raise ValueError(f"Idempotent messages are not supported for magic {self.magic}")


def build(records: Iterable[RecordTuple], **options: Any) -> bytes:
    """One batch of `records`, each (timestamp, key, value, headers); the options are those of `BatchBuilder`."""
    builder = BatchBuilder(**options)
    for timestamp, key, value, headers in records:
        builder.append(timestamp, key, value, headers)
    return builder.build()


def encode_batch(
    body: bytes,
    attributes: i64,
    base_offset: i64,
    last_offset: i64,
    base_timestamp: i64,
    max_timestamp: i64,
    count: i64,
    producer_id: i64 = NO_PRODUCER_ID,
    producer_epoch: i64 = NO_PRODUCER_EPOCH,
    base_sequence: i64 = NO_SEQUENCE,
    leader_epoch: i64 = NO_LEADER_EPOCH,
) -> bytes:
    """A v2 batch with the records in `body`, which are already compressed if `attributes` name a codec."""
    checked = BytesWriter()  # the part of the header that the checksum covers
    write_i16_be(checked, i16(attributes))
    write_i32_be(checked, i32(last_offset - base_offset))
    write_i64_be(checked, base_timestamp)
    write_i64_be(checked, max_timestamp)
    write_i64_be(checked, producer_id)
    write_i16_be(checked, i16(producer_epoch))
    write_i32_be(checked, i32(base_sequence))
    write_i32_be(checked, i32(count))
    header = checked.getvalue()
    crc: i64 = google_crc32c.extend(google_crc32c.value(header), body)
    out = BytesWriter()
    write_i64_be(out, base_offset)
    write_i32_be(out, i32(HEADER_SIZE_V2 - LOG_OVERHEAD + len(body)))
    write_i32_be(out, i32(leader_epoch))
    out.append(MAGIC_V2)
    write_u32_be(out, crc)
    return out.getvalue() + header + body


def write_u32_be(out: BytesWriter, value: i64) -> None:
    """Appends an unsigned 32-bit integer; librt writes signed ones."""
    write_i32_be(out, i32(value - 0x100000000 if value >= 0x80000000 else value))


def _check_old_format(magic: i64, codec: i64, transactional: bool, control: bool, delete_horizon_ms: i64) -> None:
    if transactional:
        raise ValueError(f"Transactional records are not supported for magic {magic}")
    if control:
        raise ValueError(f"Control records are not supported for magic {magic}")
    if codec == ZSTD:
        raise ValueError(f"ZStandard compression is not supported for magic {magic}")
    if delete_horizon_ms != NO_TIMESTAMP:
        raise ValueError(f"Delete horizon timestamp is not supported for magic {magic}")


def _encode_headers(headers: Sequence[Header]) -> bytes:
    out = BytesWriter()
    write_varint(out, len(headers))
    for name, value in headers:
        _write_nullable(out, name.encode("utf-8", "replace"))
        _write_nullable(out, value)
    return out.getvalue()


def _size_of_nullable(content: bytes | None) -> i64:
    if content is None:
        return 1
    size: i64 = len(content)
    return size_of_varint(size) + size


def _write_nullable(out: BytesWriter, content: bytes | None) -> None:
    if content is None:
        write_varint(out, -1)
    else:
        write_varint(out, len(content))
        out.write(content)
