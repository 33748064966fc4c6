# Compiled by mypyc: src/compiled.toml lists this module.
"""Decodes batches into columns, with no Python object per record.

This is the inner loop of the columnar consumers (the Spark source, the clients). It reads the batches of one fetch and writes raw
little-endian columns that `columns` passes to Arrow: int64 numbers, and 16-byte Arrow "views" that point into the fetched bytes. It never
copies a key or a value, and compares every size with the available bytes before it uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from librt.strings import BytesWriter, read_i16_le, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from barnabas.errors import InvalidRecord, RecordTooLarge
from barnabas.records.batch import LOG_APPEND_TIME, MAGIC_V2, Batch, entry_size, read_batch
from barnabas.records.codecs.varint import read_varint, read_varlong
from barnabas.records.control import ABORT, parse_control_type
from barnabas.records.crc import ensure_valid
from barnabas.records.reader import read_records, records_body, skip_headers
from barnabas.records.record import Record

# Arrow's views and offsets are int32, so fetched and decompressed bytes together must stay below this.
HELD_BYTES_MAX: Final = 2**31 - 1

_INLINE_MAX: Final = 12  # a view contains content up to this size
_PREFIX_SIZE: Final = 4
_NULL_VIEW_TAIL: Final = -1  # after a size of 0; no content has this form, because unused bytes of a view are 0


class Columns:
    """The columns of the decoded records, in order; `sources` are the byte strings into which the views point, the fetched one first.

    A run is a sequence of records with one timestamp type and one leader epoch: a batch.
    """

    def __init__(self, data: bytes, first_offset: i64, end_offset: i64, with_headers: bool) -> None:
        self.first_offset = first_offset
        self.end_offset = end_offset
        self.with_headers = with_headers
        self.next_offset: i64 = first_offset
        self.count: i64 = 0
        self.null_keys: i64 = 0
        self.null_values: i64 = 0
        self.header_count: i64 = 0
        self.null_header_values: i64 = 0
        self.sources: list[bytes] = [data]
        self.held_bytes: i64 = len(data)
        self.offsets = BytesWriter()
        self.timestamps = BytesWriter()
        self.keys = BytesWriter()
        self.values = BytesWriter()
        self.header_starts = BytesWriter()  # int32, one per record
        self.header_keys = BytesWriter()
        self.header_values = BytesWriter()
        self.run_sizes = BytesWriter()
        self.run_timestamp_types = BytesWriter()  # int32
        self.run_leader_epochs = BytesWriter()  # int32

    def source_of(self, body: bytes) -> i64:
        """The number of `body` in views; `body` is kept from now on."""
        if body is self.sources[0]:
            return 0
        last: i64 = len(self.sources) - 1
        if body is self.sources[last]:
            return last
        self.held_bytes += len(body)
        if self.held_bytes > HELD_BYTES_MAX:
            raise RecordTooLarge(f"The batches unfold into more than {HELD_BYTES_MAX} bytes: decode fewer of them at once")
        self.sources.append(body)
        return last + 1

    def end_run(self, size: i64, timestamp_type: i64, leader_epoch: i64) -> None:
        self.count += size
        write_i64_le(self.run_sizes, size)
        write_i32_le(self.run_timestamp_types, i32(timestamp_type))
        write_i32_le(self.run_leader_epochs, i32(leader_epoch))


def walk(
    data: bytes,
    first_offset: i64,
    end_offset: i64,
    with_headers: bool,
    check_crc: bool,
    aborted: Sequence[tuple[int, int]] | None,
) -> Columns:
    """The records with first_offset <= offset < end_offset of the whole batches in `data`.

    Control batches are left out. With `aborted`, the (producer id, first offset) of the aborted transactions that a fetch response
    lists, batches of those transactions are left out too. An incomplete batch at the end is left for the next fetch.
    """
    if len(data) > HELD_BYTES_MAX:
        raise RecordTooLarge(f"{len(data)} bytes of batches are more than the {HELD_BYTES_MAX} that can be decoded at once")
    columns = Columns(data, first_offset, end_offset, with_headers)
    transactions = _AbortedTransactions(aborted) if aborted is not None else None
    at: i64 = 0
    while True:
        size: i64 = entry_size(data, at, len(data))
        if size == 0:
            return columns
        batch = read_batch(data, at, size)
        at += size
        if batch.magic >= MAGIC_V2 and batch.base_offset >= end_offset:
            columns.next_offset = max(first_offset, end_offset)
            return columns
        if check_crc:
            ensure_valid(data, batch)
        if batch.last_offset >= columns.next_offset:
            columns.next_offset = min(batch.last_offset + 1, end_offset)
        if transactions is not None and batch.has_producer_id and transactions.hide(data, batch):
            continue
        if batch.last_offset >= first_offset and not batch.is_control:
            if batch.magic >= MAGIC_V2:
                _add_batch(columns, data, batch)
            else:
                _add_legacy_batch(columns, data, batch)


class _AbortedTransactions:
    """Which batches a read_committed consumer skips, decided batch by batch in the order of the log as Kafka's consumer does."""

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        waiting: list[tuple[int, int]] = []
        for producer_id, first_offset in aborted:
            waiting.append((first_offset, producer_id))
        waiting.sort(reverse=True)
        self.waiting = waiting  # sorted by first offset, the lowest last
        self.open: set[int] = set()

    def hide(self, data: bytes, batch: Batch) -> bool:
        while self.waiting and self.waiting[-1][0] <= batch.last_offset:
            self.open.add(self.waiting.pop()[1])
        producer_id: int = batch.producer_id
        if batch.is_control and _is_abort_marker(data, batch):
            self.open.discard(producer_id)
            return True
        return batch.is_transactional and producer_id in self.open


def _is_abort_marker(data: bytes, batch: Batch) -> bool:
    records = read_records(data, batch)
    return len(records) > 0 and parse_control_type(records[0]) == ABORT


def _add_batch(columns: Columns, data: bytes, batch: Batch) -> None:
    count: i64 = batch.count
    if count < 0:
        raise InvalidRecord(f"Found invalid record count {count} in magic v{batch.magic} batch at byte {batch.at}")
    if count == 0:
        return
    body, at, end = records_body(data, batch)
    try:
        taken: i64 = _walk_records(columns, body, at, end, batch)
    except IndexError as fault:
        raise _invalid("Incorrect declared batch size, premature EOF reached", batch) from fault
    columns.end_run(taken, batch.timestamp_type, batch.leader_epoch)


def _walk_records(columns: Columns, body: bytes, start: i64, end: i64, batch: Batch) -> i64:
    """Adds the records of one v2 batch, which are in body[start:end]; returns how many are between the requested offsets.

    Varints of one and two bytes, which are nearly all, are decoded inline from one read of two bytes (at least the header count follows
    each of them), and rows are written inline: calls would add half again to the time of the walk.
    """
    offsets = columns.offsets
    timestamps = columns.timestamps
    keys = columns.keys
    values = columns.values
    source: i64 = columns.source_of(body)
    first_offset: i64 = columns.first_offset
    end_offset: i64 = columns.end_offset
    base_offset: i64 = batch.base_offset
    base_timestamp: i64 = batch.base_timestamp
    log_append_time: bool = batch.timestamp_type == LOG_APPEND_TIME
    taken: i64 = 0
    at: i64 = start
    left: i64 = batch.count
    size: i64 = 0
    timestamp_delta: i64 = 0
    offset_delta: i64 = 0
    value_size: i64 = 0
    while left > 0:
        left -= 1
        word: i64 = i64(read_i16_le(body, at))
        if word & 0x80 == 0:
            size = ((word & 0x7F) >> 1) ^ -(word & 1)
            at += 1
        elif word >= 0:
            size = (((word & 0x7F00) >> 2) | ((word & 0x7F) >> 1)) ^ -(word & 1)
            at += 2
        else:
            size, at = read_varint(body, at)
        record_end: i64 = at + size
        if size < 0 or record_end > end:
            raise _invalid("Incorrect declared batch size, premature EOF reached", batch)

        at += 1  # the attributes, which are not used in this format
        word = i64(read_i16_le(body, at))
        if word & 0x80 == 0:
            timestamp_delta = ((word & 0x7F) >> 1) ^ -(word & 1)
            at += 1
        elif word >= 0:
            timestamp_delta = (((word & 0x7F00) >> 2) | ((word & 0x7F) >> 1)) ^ -(word & 1)
            at += 2
        else:
            timestamp_delta, at = read_varlong(body, at)

        word = i64(read_i16_le(body, at))
        if word & 0x80 == 0:
            offset_delta = ((word & 0x7F) >> 1) ^ -(word & 1)
            at += 1
        elif word >= 0:
            offset_delta = (((word & 0x7F00) >> 2) | ((word & 0x7F) >> 1)) ^ -(word & 1)
            at += 2
        else:
            offset_delta, at = read_varint(body, at)

        key_size: i64 = body[at]
        key_at: i64 = at + 1
        if key_size < 0x80:
            key_size = (key_size >> 1) ^ -(key_size & 1)
        else:
            key_size, key_at = read_varint(body, at)
        at = key_at + key_size if key_size > 0 else key_at
        if at > record_end:
            raise _invalid("Found invalid record structure", batch)

        word = i64(read_i16_le(body, at))
        if word & 0x80 == 0:
            value_size = ((word & 0x7F) >> 1) ^ -(word & 1)
            at += 1
        elif word >= 0:
            value_size = (((word & 0x7F00) >> 2) | ((word & 0x7F) >> 1)) ^ -(word & 1)
            at += 2
        else:
            value_size, at = read_varint(body, at)
        value_at: i64 = at
        if value_size > 0:
            at += value_size
        if at > record_end:
            raise _invalid("Found invalid record structure", batch)

        header_count: i64 = body[at]
        headers_at: i64 = at + 1
        at = headers_at
        if header_count != 0:
            header_count, headers_at = read_varint(body, at - 1)
            at = _after_headers(body, headers_at, header_count, record_end, batch)
        if at != record_end:
            raise _invalid(f"Invalid record size: {size} bytes were declared, but {at - record_end + size} read", batch)

        offset: i64 = base_offset + offset_delta
        if not -1 <= offset >> 63 <= 0:
            offset = _wrapped(offset)
        if offset < first_offset or offset >= end_offset:
            continue
        taken += 1
        timestamp: i64 = batch.max_timestamp if log_append_time else base_timestamp + timestamp_delta
        if not -1 <= timestamp >> 63 <= 0:
            timestamp = _wrapped(timestamp)
        write_i64_le(offsets, offset)
        write_i64_le(timestamps, timestamp)
        if key_size >= 0:
            _write_view(keys, body, source, key_at, key_size)
        else:
            columns.null_keys += 1
            _write_null_view(keys)
        if value_size >= 0:
            _write_view(values, body, source, value_at, value_size)
        else:
            columns.null_values += 1
            _write_null_view(values)
        if columns.with_headers:
            _write_headers(columns, body, source, headers_at, header_count)
    if at != end:
        raise _invalid("Incorrect declared batch size, records still remaining in file", batch)
    return taken


def _after_headers(body: bytes, at: i64, count: i64, record_end: i64, batch: Batch) -> i64:
    if count < 0 or count > record_end - at:
        raise _invalid(f"Found invalid number of record headers {count}", batch)
    return skip_headers(body, at, count, record_end)


def _add_legacy_batch(columns: Columns, data: bytes, batch: Batch) -> None:
    """Formats v0 and v1 are rare, so they are read record by record."""
    for record in read_records(data, batch):
        if columns.first_offset <= record.offset < columns.end_offset:
            _add_record(columns, record)
            columns.end_run(1, record.timestamp_type, batch.leader_epoch)


def _add_record(columns: Columns, record: Record) -> None:
    source: i64 = columns.source_of(record.data)
    write_i64_le(columns.offsets, record.offset)
    write_i64_le(columns.timestamps, record.timestamp)
    if record.key_size >= 0:
        _write_view(columns.keys, record.data, source, record.key_at, record.key_size)
    else:
        columns.null_keys += 1
        _write_null_view(columns.keys)
    if record.value_size >= 0:
        _write_view(columns.values, record.data, source, record.value_at, record.value_size)
    else:
        columns.null_values += 1
        _write_null_view(columns.values)
    if columns.with_headers:
        _write_headers(columns, record.data, source, record.headers_at, record.header_count)


def _write_headers(columns: Columns, body: bytes, source: i64, start: i64, count: i64) -> None:
    """The headers at `start`, whose sizes have been checked."""
    write_i32_le(columns.header_starts, i32(columns.header_count))
    columns.header_count += count
    at: i64 = start
    left: i64 = count
    while left > 0:
        left -= 1
        size, at = read_varint(body, at)
        _write_view(columns.header_keys, body, source, at, size)
        size, at = read_varint(body, at + size)
        if size >= 0:
            _write_view(columns.header_values, body, source, at, size)
            at += size
        else:
            columns.null_header_values += 1
            _write_null_view(columns.header_values)


def _write_view(out: BytesWriter, body: bytes, source: i64, at: i64, size: i64) -> None:
    """Writes an Arrow view of body[at:at + size]: size and first four bytes, then the other eight, or source and position."""
    if size > _INLINE_MAX:
        write_i64_le(out, size | i64(read_i32_le(body, at)) << 32)
        write_i64_le(out, source | at << 32)
        return
    prefix: i64 = _short_word(body, at, min(size, _PREFIX_SIZE))
    write_i64_le(out, _wrapped(size | prefix << 32))
    write_i64_le(out, _short_word(body, at + _PREFIX_SIZE, size - _PREFIX_SIZE))


def _write_null_view(out: BytesWriter) -> None:
    write_i64_le(out, 0)
    write_i64_le(out, _NULL_VIEW_TAIL)


def _short_word(body: bytes, at: i64, size: i64) -> i64:
    """body[at:at + size], at most eight bytes, as a little-endian number with zeros above."""
    if size <= 0:
        return 0
    if at + 8 <= len(body):
        word: i64 = read_i64_le(body, at)
        if size == 8:
            return word
        bits: i64 = size << 3
        return word - ((word >> bits) << bits)  # not by a mask: mypyc shifts a constant as a 32-bit int
    number: i64 = 0
    position: i64 = size
    while position > 0:
        position -= 1
        byte: i64 = body[at + position]
        number = number << 8 | byte
    return _wrapped(number)


def _wrapped(number: i64) -> i64:
    """`number` as a Java long, which wraps. A compiled i64 has already wrapped; uncompiled Python does it here."""
    above: i64 = number >> 63
    if above == 0 or above == -1:
        return number
    return number - (above << 63) - ((above & 1) << 63)


def _invalid(what: str, batch: Batch) -> InvalidRecord:
    return InvalidRecord(f"{what} (batch at byte {batch.at}, base offset {batch.base_offset})")
