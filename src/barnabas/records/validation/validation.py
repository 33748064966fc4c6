# Compiled by mypyc: src/compiled.toml lists this module.
"""The rules of a topic for its records, and the code that the validators of all formats share.

`validator` is the entry point. This module has the rules, the result, the checks of single records, and the slow path: records that are
rewritten in another format, with another codec, or because their offsets are not in order. A batch is accepted or rejected as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter_ns
from typing import Final

from mypy_extensions import i64

from barnabas.errors import InvalidRecord, InvalidTimestamp, RecordTooLarge, UnsupportedForMessageFormat
from barnabas.records.batch import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    MAGIC_V2,
    NO_TIMESTAMP,
    Batch,
    read_batches,
)
from barnabas.records.builder import BatchBuilder
from barnabas.records.codecs.compression import NONE, PRODUCED_SIZE_MAX
from barnabas.records.reader import each_record
from barnabas.records.record import Record

# The origin of an append: some checks apply to clients only.
REPLICATION: Final = 0
COORDINATOR: Final = 1
CLIENT: Final = 2
RAFT_LEADER: Final = 3

KEEP_CODEC: Final = -1  # compression.type=producer

# No real timestamp or delta is near this, and sums and differences of two below it cannot overflow.
_TIMESTAMP_MAX: Final = 2**61
_ERRORS_MAX: Final = 10_000  # listed in the error; a batch may hold millions of bad records
_ERRORS_SHOWN: Final = 3


class ValidationRules:
    """The configuration of a topic, as far as it concerns its records. `topic_partition` is for error texts only."""

    def __init__(
        self,
        target_magic: i64 = MAGIC_V2,
        codec: int | None = None,
        level: int | None = None,
        compacted: bool = False,
        timestamp_type: i64 = CREATE_TIME,
        before_max_ms: i64 = 0x7FFFFFFFFFFFFFFF,
        after_max_ms: i64 = 3_600_000,
        max_message_bytes: i64 = 1_048_588,
        topic_partition: str = "",
    ) -> None:
        self.target_magic = target_magic
        self.codec: i64 = KEEP_CODEC if codec is None else codec
        self.level = level
        self.compacted = compacted
        self.timestamp_type = timestamp_type
        self.before_max_ms = before_max_ms
        self.after_max_ms = after_max_ms
        self.max_message_bytes = max_message_bytes
        self.topic_partition = topic_partition


class Validated:
    """Records as they are written to the log, with the properties that the log needs.

    `offset_of_max_timestamp` is the last offset of the batch with the greatest timestamp: a follower knows only the header, so the leader
    is not more precise. The positions of `batches` count from the start of `buffers`.
    """

    def __init__(
        self,
        buffers: list[bytes | memoryview],
        size: i64,
        batches: list[Batch],
        last_offset: i64,
        max_timestamp: i64,
        offset_of_max_timestamp: i64,
        log_append_time: i64,
        size_changed: bool,
        converted_count: i64,
        temporary_bytes: i64,
    ) -> None:
        self.buffers = buffers
        self.size = size
        self.batches = batches
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp
        self.offset_of_max_timestamp = offset_of_max_timestamp
        self.log_append_time = log_append_time
        self.size_changed = size_changed
        self.converted_count = converted_count
        self.temporary_bytes = temporary_bytes
        self.conversion_ns: i64 = 0  # from the begin of the validation to the rewritten records; 0 if they were not rewritten


class AppendContext:
    """The arguments of one append: the bytes, their base offset, the rules of the topic. One call may read `at_once` bytes of records."""

    def __init__(
        self, data: bytes, base_offset: i64, now_ms: i64, leader_epoch: i64, origin: i64, rules: ValidationRules, at_once: i64 = 0
    ) -> None:
        self.data = data
        self.base_offset = base_offset
        self.now_ms = now_ms
        self.leader_epoch = leader_epoch
        self.origin = origin
        self.rules = rules
        self.at_once = at_once
        self.began_ns: i64 = perf_counter_ns()
        self.log_append_time: i64 = now_ms if rules.timestamp_type == LOG_APPEND_TIME else NO_TIMESTAMP

    @property
    def level(self) -> int | None:
        """The compression level of the topic's codec; None where the codec of the producer is kept."""
        return None if self.rules.codec == KEEP_CODEC else self.rules.level


class RecordCheck:
    """The check of a batch record by record, against the rules of its topic."""

    def __init__(self, append: AppendContext, batch: Batch) -> None:
        self._append = append
        self._batch = batch
        self._index: i64 = 0
        self._errors: list[tuple[int, str]] = []
        self._without_key: i64 = 0
        self._bad_timestamps: bool = False

    @property
    def is_full(self) -> bool:
        """Whether there are so many bad records that the others need not be checked."""
        return len(self._errors) == _ERRORS_MAX

    def look_at(self, record: Record) -> None:
        rules = self._append.rules
        if rules.compacted and not record.has_key:
            message = f"Compacted topic cannot accept message without key in topic partition {rules.topic_partition}"
            self._errors.append((self._index, message))
            self._without_key += 1
        else:
            fault = _timestamp_fault(self._append, self._batch, record)
            if fault is not None:
                self._bad_timestamps = True
                self._errors.append((self._index, fault))
        self._index += 1

    def conclude(self) -> None:
        """Rejects the batch with a list of the records that break a rule of the topic."""
        errors = self._errors
        if not errors:
            return
        if self._bad_timestamps:
            raise InvalidTimestamp("One or more records have been rejected due to invalid timestamp", errors, self._without_key)
        shown = ", ".join([f"RecordError(batchIndex={index}, message='{message}')" for index, message in errors[:_ERRORS_SHOWN]])
        raise InvalidRecord(
            f"One or more records have been rejected due to {len(errors)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]",
            errors,
            self._without_key,
        )


def check_records(append: AppendContext, batch: Batch, records: Iterable[Record]) -> None:
    """Rejects the batch with a list of the records that break a rule of the topic."""
    check = RecordCheck(append, batch)
    for record in records:
        if check.is_full:
            break
        check.look_at(record)
    check.conclude()


def is_out_of_range(append: AppendContext, timestamp: i64) -> bool:
    """Whether a timestamp is further from now than message.timestamp.before.max.ms and after.max.ms allow."""
    if not are_moderate(timestamp, append.now_ms):
        return True
    age: i64 = append.now_ms - timestamp
    return age > append.rules.before_max_ms or -age > append.rules.after_max_ms


def are_moderate(one: i64, other: i64) -> bool:
    """Whether both are so small that their sum and their difference do not overflow."""
    return -_TIMESTAMP_MAX < one < _TIMESTAMP_MAX and -_TIMESTAMP_MAX < other < _TIMESTAMP_MAX


def rebuild(append: AppendContext, batches: list[Batch], codec: i64, temporary_bytes: i64) -> Validated:
    """Rewrites the records of `batches`, already checked, in the format and with the codec of the topic."""
    builder = builder_of(append, batches[0], codec)
    try:
        offset: i64 = append.base_offset
        for batch in batches:
            for record in each_record(append.data, batch, PRODUCED_SIZE_MAX):
                append_anew(builder, record, offset)
                offset += 1
        built = builder.build()
    except ValueError as fault:
        raise InvalidRecord(f"{fault} in topic partition {append.rules.topic_partition}") from fault
    return rebuilt_by(append, builder, built, temporary_bytes)


def builder_of(append: AppendContext, first: Batch, codec: i64) -> BatchBuilder:
    """The builder for records that are rewritten; `first` is the first of their batches."""
    rules = append.rules
    return BatchBuilder(
        rules.target_magic,
        codec,
        append.base_offset,
        timestamp_type=rules.timestamp_type,
        log_append_time=append.now_ms,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        base_sequence=first.base_sequence,
        leader_epoch=append.leader_epoch,
        transactional=first.is_transactional,
        level=append.level,
    )


def append_anew(builder: BatchBuilder, record: Record, offset: i64) -> None:
    if builder.magic < MAGIC_V2 and record.header_count > 0:
        raise UnsupportedForMessageFormat(f"Magic v{builder.magic} does not support record headers")
    if record.timestamp < NO_TIMESTAMP:
        raise InvalidTimestamp(f"Invalid negative timestamp {record.timestamp}")
    builder.append_record(record, offset)


def rebuilt_by(append: AppendContext, builder: BatchBuilder, built: bytes, temporary_bytes: i64) -> Validated:
    """The result of an append whose records a builder has rewritten."""
    rules = append.rules
    codec: i64 = builder.codec
    max_timestamp: i64 = builder.max_timestamp
    offset_of_max: i64 = builder.offset_of_max_timestamp
    if rules.timestamp_type == LOG_APPEND_TIME:
        max_timestamp = append.now_ms
        offset_of_max = append.base_offset
    if max_timestamp != NO_TIMESTAMP and (codec != NONE or rules.target_magic >= MAGIC_V2):
        offset_of_max = builder.last_offset  # there is one batch, and its header is not more precise
    return rebuilt(append, built, max_timestamp, offset_of_max, builder.count, temporary_bytes + builder.uncompressed_size)


def rebuilt(append: AppendContext, built: bytes, max_timestamp: i64, offset_of_max: i64, count: i64, temporary_bytes: i64) -> Validated:
    """The result of an append whose bytes were rewritten. Raises RecordTooLarge if that has made a batch too large."""
    rules = append.rules
    batches = read_batches(built)
    for batch in batches:
        if batch.size > rules.max_message_bytes and append.origin != REPLICATION:
            raise RecordTooLarge(
                f"Message batch size is {batch.size} bytes in append to partition {rules.topic_partition} "
                f"which exceeds the maximum configured size of {rules.max_message_bytes}."
            )
    validated = Validated(
        [built],
        len(built),
        batches,
        append.base_offset + count - 1,
        max_timestamp,
        offset_of_max,
        append.log_append_time,
        True,
        count,
        temporary_bytes,
    )
    validated.conversion_ns = perf_counter_ns() - append.began_ns
    return validated


def _timestamp_fault(append: AppendContext, batch: Batch, record: Record) -> str | None:
    rules = append.rules
    if rules.timestamp_type == CREATE_TIME and record.timestamp != NO_TIMESTAMP:
        if not is_out_of_range(append, record.timestamp):
            return None
        now: int = append.now_ms
        return (
            f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. "
            f"The timestamp should be within [{now - int(rules.before_max_ms)}, {now + int(rules.after_max_ms)}]"
        )
    if batch.timestamp_type == LOG_APPEND_TIME:
        return f"Invalid timestamp type in message {_describe(record)}. Producer should not set timestamp type to LogAppendTime."
    return None


def _describe(record: Record) -> str:
    return (
        f"Record(offset={record.offset}, timestamp={record.timestamp}, "
        f"key={max(record.key_size, 0)} bytes, value={max(record.value_size, 0)} bytes)"
    )
