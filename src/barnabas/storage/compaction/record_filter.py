# Compiled by mypyc: src/compiled.toml lists this module.
"""The second pass of compaction, batch by batch: which records stay, and the bytes of the batches that hold them.

A batch that keeps all records is copied byte for byte. Any other is rebuilt with its remaining records and keeps its offsets, sequences,
epochs and codec, so that consumers and producers notice only the missing records.
"""

from __future__ import annotations

from librt.strings import BytesWriter
from mypy_extensions import i64

from barnabas.errors import CorruptRecord
from barnabas.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    CREATE_TIME,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    MAGIC_V2,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Batch,
)
from barnabas.records.builder import BatchBuilder, encode_batch
from barnabas.records.codecs.compression import NONE, compress
from barnabas.records.codecs.varint import size_of_varint, size_of_varlong, write_varint, write_varlong
from barnabas.records.crc import ensure_valid
from barnabas.records.reader import read_records, records_body
from barnabas.records.record import Record
from barnabas.storage.compaction.cleaned_transactions import CleanedTransactions
from barnabas.storage.compaction.offset_map import SkimpyOffsetMap
from barnabas.storage.compaction.record_cursor import RecordCursor
from barnabas.storage.producers.entry import ProducerStateEntry


class Retained:
    """What stays of a batch: the bytes of `data` from `start` to `end`."""

    def __init__(self, data: bytes, start: i64, end: i64, last_offset: i64, max_timestamp: i64, count: i64) -> None:
        self.data = data
        self.start = start
        self.end = end
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp
        self.count = count

    @property
    def size(self) -> i64:
        return self.end - self.start


class RecordFilter:
    """Decides which records stay.

    The last batch of each of `producers` (by producer id) stays, at least its header, because of the sequence it ends with. So does the
    last batch before `upper_bound_offset`, because it holds the last offset of the cleaned part.
    """

    def __init__(
        self,
        offsets: SkimpyOffsetMap,
        transactions: CleanedTransactions,
        producers: dict[int, ProducerStateEntry],
        upper_bound_offset: i64,
        now_ms: i64,
        delete_retention_ms: i64,
    ) -> None:
        self.retain_legacy_deletes: bool = True  # tombstones of formats before v2 are removed by the age of their segment
        self.messages_read: i64 = 0
        self.invalid_messages: i64 = 0
        self._offsets = offsets
        self._transactions = transactions
        self._producers = producers
        self._upper_bound_offset = upper_bound_offset
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms

    def filter(self, data: bytes, batch: Batch) -> Retained | None:
        """What stays of the next batch of the log; None if nothing stays."""
        ensure_valid(data, batch)
        can_discard: bool = self._transactions.can_discard(data, batch)
        if batch.magic < MAGIC_V2:
            return self._filter_legacy(data, batch)
        retained: Retained | None = None
        if not can_discard or (batch.is_control and not self._is_past_horizon(batch)):
            retained = self._filter_records(data, batch, can_discard and batch.is_control)
        if retained is None and self._must_stay(batch):
            return _empty(batch)
        return retained

    def _is_past_horizon(self, batch: Batch) -> bool:
        return batch.attributes & DELETE_HORIZON_BIT != 0 and batch.delete_horizon_ms <= self._now_ms

    def _must_stay(self, batch: Batch) -> bool:
        if batch.last_offset + 1 == self._upper_bound_offset:
            return True
        if not batch.has_producer_id:
            return False
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            return False
        last_data_offset: i64 = producer.last_data_offset
        if last_data_offset >= 0:
            return batch.last_offset == last_data_offset
        # The log has only a marker of this producer, which holds the epoch that fences older instances of it.
        return batch.is_control and batch.producer_epoch == producer.producer_epoch

    # -- format v2

    def _filter_records(self, data: bytes, batch: Batch, is_empty_txn_marker: bool) -> Retained | None:
        count: i64 = batch.count
        body, start, end = records_body(data, batch)
        cursor = RecordCursor(body, start, end)
        stays = BytesWriter()  # 1 or 0 for each record
        kept: i64 = 0
        has_tombstone: bool = False
        tombstones_stay: bool = not self._is_past_horizon(batch)
        index: i64 = 0
        while index < count:
            cursor.advance()
            if batch.is_control or self._is_retained(cursor, batch.base_offset, tombstones_stay):
                stays.append(1)
                kept += 1
                if not cursor.has_value:
                    has_tombstone = True
            else:
                stays.append(0)
            index += 1
        if cursor.record_end != end:
            raise CorruptRecord(f"{end - cursor.record_end} bytes follow the last of {count} records")
        self.messages_read += count
        if kept == 0:
            return None
        horizon_ms: i64 = batch.delete_horizon_ms
        # The first cleaning that reads a tombstone, or a marker without records, sets its delete horizon.
        starts_clock: bool = (has_tombstone or is_empty_txn_marker) and batch.attributes & DELETE_HORIZON_BIT == 0
        if kept == count and not starts_clock:
            return Retained(data, batch.at, batch.at + batch.size, batch.last_offset, batch.max_timestamp, count)
        if starts_clock:
            horizon_ms = self._now_ms + self._delete_retention_ms
        return _rebuild(batch, RecordCursor(body, start, end), stays, kept, horizon_ms)

    def _is_retained(self, cursor: RecordCursor, base_offset: i64, tombstones_stay: bool) -> bool:
        offset: i64 = base_offset + cursor.offset_delta
        if offset > self._offsets.latest_offset:
            return True
        if cursor.key_size < 0:
            self.invalid_messages += 1
            return False
        return (cursor.has_value or tombstones_stay) and offset >= self._offsets.get(cursor.key)

    # -- formats v0 and v1

    def _filter_legacy(self, data: bytes, batch: Batch) -> Retained | None:
        records = read_records(data, batch)
        retained = [record for record in records if self._is_legacy_retained(record)]
        self.messages_read += len(records)
        if not retained:
            return None
        if len(retained) == len(records):
            return Retained(data, batch.at, batch.at + batch.size, batch.last_offset, batch.max_timestamp, len(records))
        builder = BatchBuilder(
            batch.magic,
            batch.codec,
            retained[0].offset,
            timestamp_type=LOG_APPEND_TIME if batch.timestamp_type == LOG_APPEND_TIME else CREATE_TIME,
            log_append_time=batch.max_timestamp if batch.timestamp_type == LOG_APPEND_TIME else NO_TIMESTAMP,
        )
        for record in retained:
            builder.append_record(record)
        built = builder.build()
        return Retained(built, 0, len(built), builder.last_offset, builder.max_timestamp, len(retained))

    def _is_legacy_retained(self, record: Record) -> bool:
        if record.offset > self._offsets.latest_offset:
            return True
        key = record.key
        if key is None:
            self.invalid_messages += 1
            return False
        return (record.has_value or self.retain_legacy_deletes) and record.offset >= self._offsets.get(key)


def _rebuild(batch: Batch, cursor: RecordCursor, stays: BytesWriter, kept: i64, horizon_ms: i64) -> Retained:
    out = BytesWriter()
    is_log_append_time: bool = batch.attributes & LOG_APPEND_TIME_BIT != 0
    base_timestamp: i64 = horizon_ms  # a delete horizon is stored in the field of the base timestamp
    has_base: bool = horizon_ms >= 0
    max_timestamp: i64 = NO_TIMESTAMP
    index: i64 = 0
    while index < batch.count:
        cursor.advance()
        if stays[index] == 1:
            timestamp: i64 = batch.max_timestamp if is_log_append_time else batch.base_timestamp + cursor.timestamp_delta
            if not has_base:
                base_timestamp = timestamp
                has_base = True
            if timestamp > max_timestamp:
                max_timestamp = timestamp
            _write_record(out, cursor, timestamp - base_timestamp)
        index += 1
    codec: i64 = batch.attributes & CODEC_MASK
    body = out.getvalue()
    attributes: i64 = batch.attributes & (CODEC_MASK | LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT)
    if horizon_ms >= 0:
        attributes |= DELETE_HORIZON_BIT
    built = _encode(batch, body if codec == NONE else compress(codec, body), attributes, base_timestamp, max_timestamp, kept)
    return Retained(built, 0, len(built), batch.last_offset, max_timestamp, kept)


def _write_record(out: BytesWriter, cursor: RecordCursor, timestamp_delta: i64) -> None:
    if timestamp_delta == cursor.timestamp_delta:
        out.write(cursor.body[cursor.record_at : cursor.record_end])
        return
    content = cursor.body[cursor.content_at : cursor.record_end]
    write_varint(out, 1 + size_of_varlong(timestamp_delta) + size_of_varint(cursor.offset_delta) + len(content))
    out.append(0)
    write_varlong(out, timestamp_delta)
    write_varint(out, cursor.offset_delta)
    out.write(content)


def _empty(batch: Batch) -> Retained:
    """A header without records."""
    attributes: i64 = batch.attributes & (LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT)
    built = _encode(batch, b"", attributes, NO_TIMESTAMP, batch.max_timestamp, 0)
    return Retained(built, 0, len(built), batch.last_offset, batch.max_timestamp, 0)


def _encode(batch: Batch, body: bytes, attributes: i64, base_timestamp: i64, max_timestamp: i64, count: i64) -> bytes:
    return encode_batch(
        body,
        attributes,
        batch.base_offset,
        batch.last_offset,
        base_timestamp,
        max_timestamp,
        count,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.leader_epoch,
    )
