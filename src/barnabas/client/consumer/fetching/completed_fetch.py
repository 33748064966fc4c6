# Compiled by mypyc: src/compiled.toml lists this module.
"""The fetched data of one partition, and its decoding into records.

The fetcher buffers it until a poll needs records. Then `take` decodes as many records as the poll may return, in the polling thread, and
continues there at the next call. Batches are validated; control batches and batches of aborted transactions are skipped. This is the
innermost loop of a consumer: one object per record, varints read in place. The module does not depend on consumer positions, time or the
network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from mypy_extensions import i64

from barnabas.client.consumer.record import NULL_SIZE, ConsumerRecord, Header, TimestampType
from barnabas.client.errors import RecordDeserializationError, SerializationError
from barnabas.errors import CorruptRecord, InvalidRecord, KafkaError
from barnabas.protocol.slices import Records
from barnabas.records import legacy
from barnabas.records.batch import LOG_APPEND_TIME, MAGIC_V2, Batch, read_intact_batches
from barnabas.records.codecs.varint import read_varint, read_varlong
from barnabas.records.control import ABORT, parse_control_type
from barnabas.records.crc import ensure_valid
from barnabas.records.reader import read_records, records_body, skip_headers
from barnabas.records.record import Record
from barnabas.topic_partition import TopicPartition

Deserialize = Callable[[str, bytes | None, list[Header] | None], Any]

# How a key or value is made of its bytes. The first two need no call of a deserializer.
AS_BYTES: Final = 0
AS_UTF8: Final = 1
BY_CALL: Final = 2

_NO_EPOCH: Final = -1
_NO_HEADERS: Final[tuple[Header, ...]] = ()
_TIMESTAMP_TYPES: Final = {kind.value: kind for kind in TimestampType}


class Decoding:
    """How records are decoded; the same for all fetches of a consumer."""

    def __init__(
        self,
        key_how: int = AS_BYTES,
        key_deserialize: Deserialize | None = None,
        value_how: int = AS_BYTES,
        value_deserialize: Deserialize | None = None,
        check_crcs: bool = True,
        read_committed: bool = False,
    ) -> None:
        self.key_how = key_how
        self.key_deserialize = key_deserialize
        self.value_how = value_how
        self.value_deserialize = value_deserialize
        self.check_crcs = check_crcs
        self.read_committed = read_committed


class CompletedFetch:
    """`error_code` is the partition's error code in the response. If it is not 0 there are no records."""

    def __init__(
        self,
        topic: str,
        partition: int,
        fetch_offset: int,
        records: Records | None = None,
        aborted: Sequence[tuple[int, int]] = (),
        error_code: int = 0,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.error_code = error_code
        self.data: bytes = b"" if records is None else records.data
        self.start: int = 0 if records is None else records.start
        self.end: int = 0 if records is None else records.end
        self.aborted: list[tuple[int, int]] = sorted([(first_offset, producer_id) for producer_id, first_offset in aborted], reverse=True)
        self.next_fetch_offset: int = fetch_offset
        self.last_epoch: int = _NO_EPOCH
        self.is_consumed: bool = False
        self.is_initialized: bool = False
        self.records_read: int = 0
        self.bytes_read: int = 0
        self._batches, self._damage = read_intact_batches(self.data, self.start, self.end)
        self.end_offset: int = fetch_offset  # the offset at which the next fetch begins
        if len(self._batches) > 0:
            self.end_offset = max(fetch_offset, int(self._batches[-1].last_offset) + 1)
        self._next_batch: int = 0
        self._batch: Batch | None = None
        self._body: bytes = b""
        self._at: int = 0
        self._body_end: int = 0
        self._left: int = 0  # records of the batch that are not decoded yet
        self._legacy: list[Record] = []
        self._waiting: list[tuple[int, int]] = list(self.aborted)  # aborted transactions, the one that begins first at the end of the list
        self._aborted_producers: set[int] = set()

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def has_no_whole_batch(self) -> bool:
        """Whether there are bytes but no complete batch. Kafka's brokers never send this."""
        return self.size > 0 and len(self._batches) == 0 and self._damage is None

    @property
    def is_damaged(self) -> bool:
        return self._damage is not None

    def drain(self) -> None:
        """Discards the remaining records."""
        self.is_consumed = True
        self._left = 0
        self._legacy = []
        self._body = b""
        self._batch = None
        self.data = b""
        self._batches = []
        self._next_batch = 0

    def take(self, most: int, decoding: Decoding) -> list[ConsumerRecord[Any, Any]]:
        """The next records, at most `most`. An invalid record raises its error if no valid record precedes it, and again at each call."""
        taken: list[ConsumerRecord[Any, Any]] = []
        if self.is_consumed:
            return taken
        try:
            while len(taken) < most:
                if self._left > 0:
                    self._walk(taken, most - len(taken), decoding)
                elif len(self._legacy) > 0:
                    self._take_legacy(taken, most - len(taken), decoding)
                elif not self._open_batch(decoding):
                    break
            if self._left == 0 and len(self._legacy) == 0 and self._next_batch == len(self._batches) and self._damage is None:
                self._finish()
        except SerializationError:
            if len(taken) == 0:
                raise
        except KafkaError as fault:
            if len(taken) == 0:
                raise _caused(
                    KafkaError(
                        f"Received exception when fetching the next record from {self.topic}-{self.partition}. "
                        "If needed, please seek past the record to continue consumption."
                    ),
                    fault,
                ) from fault
        self.records_read += len(taken)
        return taken

    def take_all_offsets(self, next_offset: int) -> None:
        """Skips the records below `next_offset`, which the caller has decoded."""
        for batch in self._batches:
            if batch.base_offset < next_offset:
                self.last_epoch = int(batch.leader_epoch)
        self.bytes_read = self.size
        self.next_fetch_offset = max(self.next_fetch_offset, next_offset)
        if self.next_fetch_offset >= self.end_offset:
            self.drain()
        elif self._left > 0 or len(self._legacy) > 0:
            self._rewind()

    def _rewind(self) -> None:
        """Moves back before the first batch. Records below the next offset are skipped when they are read again."""
        self._next_batch = 0
        self._left = 0
        self._legacy = []
        self._waiting = list(self.aborted)
        self._aborted_producers = set()

    def _finish(self) -> None:
        """Advances past the last batch. Compaction may have removed its last records, but the next offset is still the one after the
        batch."""
        if self._batch is not None:
            self.next_fetch_offset = max(self.next_fetch_offset, int(self._batch.last_offset) + 1)
        self.drain()

    def _open_batch(self, decoding: Decoding) -> bool:
        """Moves to the next visible batch; False at the end."""
        if self._next_batch == len(self._batches):
            if self._damage is not None:
                raise self._damage
            return False
        batch = self._batches[self._next_batch]
        if decoding.check_crcs:
            try:
                ensure_valid(self.data, batch)
            except CorruptRecord as fault:
                where = f"partition {self.topic}-{self.partition} at offset {batch.base_offset}"
                raise _caused(KafkaError(f"Record batch for {where} is invalid, cause: {fault}"), fault) from fault
        self._batch = batch
        self.last_epoch = int(batch.leader_epoch)
        hidden = decoding.read_committed and batch.has_producer_id and self._is_hidden(batch)
        if hidden or batch.is_control:
            self.next_fetch_offset = max(self.next_fetch_offset, int(batch.last_offset) + 1)
        elif batch.last_offset >= self.next_fetch_offset:
            self._unfold(batch)
        self._next_batch += 1
        return True

    def _is_hidden(self, batch: Batch) -> bool:
        """Whether a read_committed consumer skips the batch. Called for each batch in log order."""
        while len(self._waiting) > 0 and self._waiting[-1][0] <= batch.last_offset:
            self._aborted_producers.add(self._waiting.pop()[1])
        if batch.is_control:
            if _is_abort_marker(self.data, batch):
                self._aborted_producers.discard(int(batch.producer_id))
            return True
        return batch.is_transactional and int(batch.producer_id) in self._aborted_producers

    def _unfold(self, batch: Batch) -> None:
        if batch.magic < MAGIC_V2:
            self._legacy = [record for record in legacy.each_record(self.data, batch) if record.offset >= self.next_fetch_offset]
            return
        if batch.count < 0:
            raise InvalidRecord(f"Found invalid record count {batch.count} in magic v{batch.magic} batch")
        body, at, end = records_body(self.data, batch)
        self._body = body
        self._at = int(at)
        self._body_end = int(end)
        self._left = int(batch.count)

    def _walk(self, taken: list[ConsumerRecord[Any, Any]], most: i64, decoding: Decoding) -> None:
        """Decodes records. Varints of one and two bytes, which are nearly all, are read in place: calls would take half the time of this
        loop."""
        batch = self._batch
        assert batch is not None
        body = self._body
        end: i64 = self._body_end
        topic = self.topic
        partition = self.partition
        first_offset: i64 = self.next_fetch_offset
        base_offset: i64 = batch.base_offset
        base_timestamp: i64 = batch.base_timestamp
        timestamp_type = _TIMESTAMP_TYPES[int(batch.timestamp_type)]
        log_append_time: bool = batch.timestamp_type == LOG_APPEND_TIME
        max_timestamp: i64 = batch.max_timestamp
        leader_epoch: int | None = int(batch.leader_epoch) if batch.leader_epoch >= 0 else None
        key_how = decoding.key_how
        value_how = decoding.value_how
        start: i64 = self._at
        at: i64 = start
        done: i64 = start  # the end of the last record that was decoded or skipped
        left: i64 = self._left
        room: i64 = most
        next_offset: i64 = first_offset
        byte: i64 = 0
        size: i64 = 0
        timestamp_delta: i64 = 0
        offset_delta: i64 = 0
        header_count: i64 = 0
        try:
            while left > 0 and room > 0:
                byte = body[at]
                if byte < 0x80:
                    size = (byte >> 1) ^ -(byte & 1)
                    at += 1
                elif body[at + 1] < 0x80:
                    byte = byte & 0x7F | body[at + 1] << 7
                    size = (byte >> 1) ^ -(byte & 1)
                    at += 2
                else:
                    size, at = read_varint(body, at)
                record_end: i64 = at + size
                if size < 0 or record_end > end:
                    raise InvalidRecord("Incorrect declared batch size, premature EOF reached")
                at += 1  # the attributes, which have no meaning yet

                byte = body[at]
                if byte < 0x80:
                    timestamp_delta = (byte >> 1) ^ -(byte & 1)
                    at += 1
                elif body[at + 1] < 0x80:
                    byte = byte & 0x7F | body[at + 1] << 7
                    timestamp_delta = (byte >> 1) ^ -(byte & 1)
                    at += 2
                else:
                    timestamp_delta, at = read_varlong(body, at)
                byte = body[at]
                if byte < 0x80:
                    offset_delta = (byte >> 1) ^ -(byte & 1)
                    at += 1
                elif body[at + 1] < 0x80:
                    byte = byte & 0x7F | body[at + 1] << 7
                    offset_delta = (byte >> 1) ^ -(byte & 1)
                    at += 2
                else:
                    offset_delta, at = read_varint(body, at)
                offset: i64 = base_offset + offset_delta
                if offset < first_offset:
                    at = record_end
                    done = at
                    left -= 1
                    continue

                key_bytes, at = _read_field(body, at, record_end)
                value_bytes, at = _read_field(body, at, record_end)
                headers = _NO_HEADERS
                header_count = body[at]
                at += 1
                if header_count != 0:
                    header_count, at = read_varint(body, at - 1)
                    headers, at = _read_headers(body, at, header_count, record_end)
                if at != record_end:
                    raise InvalidRecord(
                        f"Invalid record size: expected to read {size} bytes in record payload, but instead read {at - record_end + size}"
                    )
                timestamp: i64 = max_timestamp if log_append_time else base_timestamp + timestamp_delta

                key: Any = key_bytes
                value: Any = value_bytes
                if key_bytes is not None and key_how != AS_BYTES:
                    if key_how == AS_UTF8:
                        key = key_bytes.decode("utf-8", "replace")
                    else:
                        key = self._deserialized(decoding, True, key_bytes, value_bytes, headers, offset, timestamp, timestamp_type)
                if value_bytes is not None and value_how != AS_BYTES:
                    if value_how == AS_UTF8:
                        value = value_bytes.decode("utf-8", "replace")
                    else:
                        value = self._deserialized(decoding, False, key_bytes, value_bytes, headers, offset, timestamp, timestamp_type)
                taken.append(
                    ConsumerRecord(
                        topic,
                        partition,
                        offset,
                        timestamp,
                        timestamp_type,
                        NULL_SIZE if key_bytes is None else len(key_bytes),
                        NULL_SIZE if value_bytes is None else len(value_bytes),
                        key,
                        value,
                        headers,
                        leader_epoch,
                    )
                )
                next_offset = offset + 1
                done = at
                left -= 1
                room -= 1
            if left == 0 and at != end:
                raise InvalidRecord("Incorrect declared batch size, records still remaining in file")
        except IndexError as fault:
            raise InvalidRecord("Found invalid record structure") from fault
        finally:
            self._at = int(done)
            self._left = int(left)
            self.bytes_read += int(done - start)
            self.next_fetch_offset = int(next_offset)

    def _take_legacy(self, taken: list[ConsumerRecord[Any, Any]], most: int, decoding: Decoding) -> None:
        """Decodes record by record, because the formats v0 and v1 are rare."""
        while len(self._legacy) > 0 and most > 0:
            record = self._legacy[0]
            key_bytes = record.key
            value_bytes = record.value
            offset = int(record.offset)
            timestamp = int(record.timestamp)
            timestamp_type = _TIMESTAMP_TYPES[int(record.timestamp_type)]
            taken.append(
                ConsumerRecord(
                    self.topic,
                    self.partition,
                    offset,
                    timestamp,
                    timestamp_type,
                    int(record.key_size),
                    int(record.value_size),
                    self._made(decoding, True, key_bytes, value_bytes, offset, timestamp, timestamp_type),
                    self._made(decoding, False, key_bytes, value_bytes, offset, timestamp, timestamp_type),
                )
            )
            self.bytes_read += max(0, int(record.key_size)) + max(0, int(record.value_size))
            self.next_fetch_offset = offset + 1
            self._legacy.pop(0)
            most -= 1

    def _made(
        self,
        decoding: Decoding,
        is_key: bool,
        key: bytes | None,
        value: bytes | None,
        offset: int,
        timestamp: int,
        timestamp_type: TimestampType,
    ) -> Any:
        data = key if is_key else value
        how = decoding.key_how if is_key else decoding.value_how
        if data is None or how == AS_BYTES:
            return data
        if how == AS_UTF8:
            return data.decode("utf-8", "replace")
        return self._deserialized(decoding, is_key, key, value, _NO_HEADERS, offset, timestamp, timestamp_type)

    def _deserialized(
        self,
        decoding: Decoding,
        is_key: bool,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...],
        offset: int,
        timestamp: int,
        timestamp_type: TimestampType,
    ) -> Any:
        deserialize = decoding.key_deserialize if is_key else decoding.value_deserialize
        assert deserialize is not None
        try:
            return deserialize(self.topic, key if is_key else value, list(headers))
        except Exception as fault:
            origin = "KEY" if is_key else "VALUE"
            error = RecordDeserializationError(
                TopicPartition(self.topic, self.partition),
                offset,
                f"Error deserializing {origin} for partition {self.topic}-{self.partition} at offset {offset}: "
                f"{type(fault).__name__}: {fault}. If needed, please seek past the record to continue consumption.",
                origin=origin,
                timestamp=timestamp,
                timestamp_type=int(timestamp_type),
                key=key,
                value=value,
                headers=headers,
            )
            raise _caused(error, fault) from fault


def _caused(error: KafkaError, cause: Exception) -> KafkaError:
    """Sets the cause of an error explicitly: compiled code does not set it for `raise … from`."""
    error.__cause__ = cause
    return error


def _is_abort_marker(data: bytes, batch: Batch) -> bool:
    records = read_records(data, batch)
    return len(records) > 0 and parse_control_type(records[0]) == ABORT


def _read_field(body: bytes, start: i64, record_end: i64) -> tuple[bytes | None, i64]:
    """A key or a value, and the position after it. The length precedes the bytes; a negative length means null."""
    at: i64 = start
    size: i64 = 0
    byte: i64 = body[at]
    if byte < 0x80:
        size = (byte >> 1) ^ -(byte & 1)
        at += 1
    elif body[at + 1] < 0x80:
        byte = byte & 0x7F | body[at + 1] << 7
        size = (byte >> 1) ^ -(byte & 1)
        at += 2
    else:
        size, at = read_varint(body, at)
    if size < 0:
        return None, at
    end: i64 = at + size
    if end > record_end:
        raise InvalidRecord("Found invalid record structure")
    return body[at:end], end


def _read_headers(body: bytes, start: i64, count: i64, record_end: i64) -> tuple[tuple[Header, ...], i64]:
    if count < 0:
        raise InvalidRecord(f"Found invalid number of record headers {count}")
    if count > record_end - start:
        raise InvalidRecord(f"Found invalid number of record headers. {count} is larger than the remaining size of the buffer")
    skip_headers(body, start, count, record_end)
    headers: list[Header] = []
    at: i64 = start
    left: i64 = count
    while left > 0:
        size, at = read_varint(body, at)
        name = body[at : at + size].decode("utf-8", "replace")
        at += size
        size, at = read_varint(body, at)
        if size < 0:
            headers.append((name, None))
        else:
            headers.append((name, body[at : at + size]))
            at += size
        left -= 1
    return tuple(headers), at
