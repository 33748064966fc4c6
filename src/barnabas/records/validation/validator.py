# Compiled by mypyc: src/compiled.toml lists this module.
"""Checks records before a leader appends them: Kafka's LogValidator, and the checks that Kafka's log makes before it.

The input is the records of a produce request, the output buffers that are ready to be written. A batch that already matches the topic is
not copied: a new base offset and leader epoch are put before its unchanged rest. Any other batch is rebuilt. Invalid records are rejected
from every origin; some checks apply to clients only.

One call holds the event loop, so long work is not done here: batches that decompress into megabytes, and batches of thousands of records
that must be checked or rewritten one by one. For those `validate` raises TakesTurns, and `long_validation` does the same in slices.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from barnabas.errors import (
    CorruptRecord,
    InvalidMagic,
    InvalidOffsetOrSequence,
    InvalidRecord,
    InvalidTimestamp,
    RecordTooLarge,
    TakesTurns,
    UnsupportedCompressionType,
    UnsupportedForMessageFormat,
)
from barnabas.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER_SIZE_V2,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAGIC_V0,
    MAGIC_V2,
    NO_TIMESTAMP,
    Batch,
    read_batches,
)
from barnabas.records.builder import encode_batch, write_u32_be
from barnabas.records.codecs.compression import FIRST_LOOK, NONE, ZSTD, compress, decompress_start
from barnabas.records.codecs.varint import read_varint
from barnabas.records.crc import batch_crc, crc32c, extend_crc32c
from barnabas.records.reader import check_record, records_in
from barnabas.records.record_walk import WalkFault, walk_records
from barnabas.records.validation.entry_validator import validate_entries
from barnabas.records.validation.validation import (
    CLIENT,
    COORDINATOR,
    KEEP_CODEC,
    RAFT_LEADER,
    REPLICATION,
    AppendContext,
    Validated,
    ValidationRules,
    are_moderate,
    check_records,
    is_out_of_range,
    rebuild,
    rebuilt,
)

__all__ = ["CLIENT", "COORDINATOR", "LOOK_AT_ONCE", "RAFT_LEADER", "REPLICATION", "Validated", "ValidationRules", "validate"]

# The attributes that Kafka defines: it drops all others when it rewrites them.
_KNOWN_BITS: Final = 0x7F

# Limits of one call. Walking over a megabyte of the smallest headers takes 7 ms, of usual records a tenth of that; decompressing it with
# gzip takes 4 ms. Checking a single record takes a microsecond; in the old formats a record has at least 26 bytes.
LOOK_AT_ONCE: Final = 2 * 1024 * 1024
ALWAYS_AT_ONCE: Final = 4096
RECORDS_AT_ONCE: Final = 5_000
REWRITTEN_AT_ONCE: Final = 128 * 1024

# The position of the value in a wrapper, which has no key.
_VALUE_AT_V0: Final = 26
_VALUE_AT_V1: Final = 34


def validate(
    data: bytes,
    start: i64,
    end: i64,
    base_offset: i64,
    now_ms: i64,
    leader_epoch: i64,
    origin: i64,
    rules: ValidationRules,
    at_once: i64 = LOOK_AT_ONCE,
) -> Validated:
    """Checks the batches in `data[start:end]` and assigns their records offsets from `base_offset` on.

    Raises TakesTurns if more than `at_once` bytes of records must be read, or if the work exceeds the limits of one call.
    """
    append = AppendContext(data, base_offset, now_ms, leader_epoch, origin, rules, at_once)
    is_rewritten: bool = rules.target_magic == MAGIC_V2 and is_old_format(data, start)
    size: i64 = end - start
    if size > ALWAYS_AT_ONCE and (size > at_once or (is_rewritten and size > REWRITTEN_AT_ONCE)):
        raise TakesTurns
    batches = read_batches(data, start, end)
    if not batches:
        raise InvalidRecord("Record batch has no batches at all")
    source_codec: i64 = NONE
    for batch in batches:
        check_as_received(append, batch)
        codec: i64 = batch.attributes & CODEC_MASK
        if codec != NONE:
            source_codec = codec
    first = batches[0]
    if len(batches) > 1 and (first.magic >= MAGIC_V2 or source_codec != NONE):
        raise InvalidRecord("Compressed outer record has more than one batch")
    for batch in batches:
        check_batch(append, first, batch)
    target_codec: i64 = source_codec if rules.codec == KEEP_CODEC else rules.codec
    check_codecs(first.magic, rules.target_magic, source_codec, target_codec)
    if first.magic >= MAGIC_V2:
        return _validate_v2(append, first, source_codec, target_codec)
    if is_rewritten and source_codec != NONE and takes_turns_to_open(append, first, source_codec):
        raise TakesTurns
    return validate_entries(append, batches, source_codec, target_codec)


def is_old_format(data: bytes, start: i64) -> bool:
    return start + MAGIC_AT < len(data) and data[start + MAGIC_AT] < MAGIC_V2


def takes_turns_to_open(append: AppendContext, wrapper: Batch, codec: i64) -> bool:
    """Whether a wrapper of the old formats decompresses into more than one call may rewrite. False for a damaged wrapper."""
    value_at: i64 = wrapper.at + (_VALUE_AT_V0 if wrapper.magic == MAGIC_V0 else _VALUE_AT_V1)
    try:
        first = decompress_start(codec, append.data[value_at : wrapper.end], wrapper.magic, REWRITTEN_AT_ONCE)
    except CorruptRecord:
        return False
    return len(first) >= REWRITTEN_AT_ONCE


def check_as_received(append: AppendContext, batch: Batch) -> None:
    """The checks that Kafka's log makes before it assigns offsets."""
    rules = append.rules
    if append.origin == RAFT_LEADER and batch.leader_epoch != append.leader_epoch:
        raise InvalidRecord("Append from Raft leader did not set the batch epoch correctly")
    if append.origin == CLIENT and batch.magic >= MAGIC_V2 and batch.base_offset != 0:
        raise InvalidRecord(
            f"The baseOffset of the record batch in the append to {rules.topic_partition} should be 0, but it is {batch.base_offset}"
        )
    if batch.size > rules.max_message_bytes and append.origin != REPLICATION:
        raise RecordTooLarge(
            f"The record batch size in the append to {rules.topic_partition} is {batch.size} bytes "
            f"which exceeds the maximum configured value of {rules.max_message_bytes}."
        )
    if batch.crc != batch_crc(append.data, batch):
        raise CorruptRecord(f"Record is corrupt (stored crc = {batch.crc}) in topic partition {rules.topic_partition}.")


def check_batch(append: AppendContext, first: Batch, batch: Batch) -> None:
    if batch.magic != first.magic:
        raise InvalidMagic(
            f"Batch magic {batch.magic} is not the same as the first batch's magic byte {first.magic} "
            f"in topic partition {append.rules.topic_partition}"
        )
    if batch.magic < MAGIC_V2:
        return
    _check_offsets(append, batch)
    if append.origin == CLIENT:
        _check_client(append, batch)
    if append.rules.target_magic < MAGIC_V2:
        _check_fits_old_format(append.rules.target_magic, batch)


def _check_offsets(append: AppendContext, batch: Batch) -> None:
    base: i64 = batch.base_offset
    last: i64 = batch.last_offset
    if last >= base and last - base + 1 == batch.count:
        return
    where = append.rules.topic_partition
    if last < base:
        raise InvalidOffsetOrSequence(f"Batch has an invalid offset range: [{base}, {last}] in topic partition {where}")
    if batch.count <= 0:
        raise InvalidOffsetOrSequence(f"Invalid reported count for record batch: {batch.count} in topic partition {where}")
    raise InvalidOffsetOrSequence(
        f"Inconsistent batch offset range [{base}, {last}] and count of records {batch.count} in topic partition {where}"
    )


def _check_client(append: AppendContext, batch: Batch) -> None:
    where = append.rules.topic_partition
    if batch.is_control:
        raise InvalidRecord(f"Clients are not allowed to write control records in topic partition {where}")
    if batch.has_producer_id:
        if batch.base_sequence < 0:
            raise InvalidOffsetOrSequence(
                f"Invalid sequence number {batch.base_sequence} in record batch with producerId {batch.producer_id} "
                f"in topic partition {where}"
            )
    elif batch.is_transactional:
        raise InvalidRecord(f"Cannot write transactional messages without a valid producer ID in topic partition {where}")


def _check_fits_old_format(magic: i64, batch: Batch) -> None:
    if batch.is_transactional:
        raise UnsupportedForMessageFormat(f"Transactional records cannot be used with magic version {magic}")
    if batch.has_producer_id:
        raise UnsupportedForMessageFormat(f"Idempotent records cannot be used with magic version {magic}")
    if batch.is_control:
        raise UnsupportedForMessageFormat(f"Control records cannot be used with magic version {magic}")


def check_codecs(source_magic: i64, target_magic: i64, source_codec: i64, target_codec: i64) -> None:
    if source_codec > ZSTD:
        raise InvalidRecord(f"Unknown compression type id: {source_codec}")
    if source_codec == ZSTD and source_magic < MAGIC_V2:
        raise UnsupportedCompressionType(f"ZStandard compression is not supported for magic {source_magic}")
    if target_codec == ZSTD and target_magic < MAGIC_V2:
        raise UnsupportedCompressionType(f"ZStandard compression is not supported for magic {target_magic}")


def _validate_v2(append: AppendContext, batch: Batch, source_codec: i64, target_codec: i64) -> Validated:
    body, at, end = _opened(append, batch, source_codec)
    try:
        walked = walk_records(body, at, end, batch.count)
    except WalkFault as fault:
        raise fault_in(body, end, batch, fault) from fault
    if is_suspect(append, batch, walked):
        if batch.count > RECORDS_AT_ONCE:
            raise TakesTurns
        check_records(append, batch, records_in(body, at, end, batch))
    way = way_of(append, batch, body, at, walked, source_codec, target_codec)
    if way == AS_IT_IS:
        return as_it_is(append, batch, walked, source_codec, target_codec, end - at)
    if batch.count > RECORDS_AT_ONCE or end - at > REWRITTEN_AT_ONCE:
        raise TakesTurns
    if way == RECOMPRESSED:
        compressed = compress(target_codec, body[at:end], MAGIC_V2, append.level)
        return recompressed(append, batch, walked, compressed, target_codec, end - at)
    return rebuild(append, [batch], target_codec, temporary_bytes(source_codec, target_codec, end - at))


def _opened(append: AppendContext, batch: Batch, codec: i64) -> tuple[bytes, i64, i64]:
    """The bytes that hold the records, decompressed, with the start of the first and the end of the last."""
    start: i64 = batch.at + HEADER_SIZE_V2
    if codec == NONE:
        return append.data, start, batch.at + batch.size
    enough: i64 = min(append.at_once, FIRST_LOOK)
    if enough <= 0:
        raise TakesTurns
    body = decompress_start(codec, append.data[start : batch.end], MAGIC_V2, enough)
    if len(body) >= enough:
        raise TakesTurns
    return body, 0, len(body)


def fault_in(body: bytes, end: i64, batch: Batch, fault: WalkFault) -> InvalidRecord:
    """Kafka's error for the damaged record of a batch."""
    try:
        check_record(body, fault.at, end, batch, fault.index)
    except InvalidRecord as error:
        return error
    return InvalidRecord("Found invalid record structure")


# The result of `walk_records`: the least and the greatest timestamp delta, how many records have no key, how many are not in order.
Walked = tuple[i64, i64, i64, i64]

# How a batch is written to the log.
AS_IT_IS: Final = 0
RECOMPRESSED: Final = 1
REBUILT: Final = 2


def way_of(append: AppendContext, batch: Batch, body: bytes, at: i64, walked: Walked, source_codec: i64, target_codec: i64) -> i64:
    """AS_IT_IS, RECOMPRESSED or REBUILT."""
    rules = append.rules
    least_delta, misplaced = walked[0], walked[3]
    if misplaced > 0 and batch.is_control:
        raise InvalidRecord(f"Control records must have consecutive offsets in topic partition {rules.topic_partition}")
    if misplaced == 0 and rules.target_magic == MAGIC_V2:
        if source_codec == target_codec or batch.is_control:
            return AS_IT_IS
        if _is_as_built(batch, body, at, least_delta):
            return RECOMPRESSED
    return REBUILT


def is_suspect(append: AppendContext, batch: Batch, walked: Walked) -> bool:
    """Whether a record may break a rule of the topic, so that all must be checked one by one."""
    rules = append.rules
    by_broker: bool = (batch.attributes & LOG_APPEND_TIME_BIT) != 0
    least_delta, greatest_delta, without_key = walked[0], walked[1], walked[2]
    least: i64 = batch.max_timestamp
    greatest: i64 = least
    if not by_broker:
        if not are_moderate(batch.base_timestamp, least_delta) or not are_moderate(batch.base_timestamp, greatest_delta):
            raise InvalidTimestamp(f"The timestamps of the records overflow in topic partition {rules.topic_partition}")
        least = batch.base_timestamp + least_delta
        greatest = batch.base_timestamp + greatest_delta
    suspect: bool = without_key > 0 and rules.compacted
    if rules.timestamp_type == LOG_APPEND_TIME or least == NO_TIMESTAMP:
        suspect = suspect or by_broker
    if rules.timestamp_type != LOG_APPEND_TIME:
        suspect = suspect or is_out_of_range(append, least) or is_out_of_range(append, greatest)
    return suspect


def _max_timestamp(append: AppendContext, batch: Batch, greatest_delta: i64) -> i64:
    """The greatest timestamp as it is written to the log, -1 if there is none."""
    if append.rules.timestamp_type == LOG_APPEND_TIME:
        return append.now_ms
    greatest: i64 = batch.max_timestamp
    if (batch.attributes & LOG_APPEND_TIME_BIT) == 0:
        greatest = batch.base_timestamp + greatest_delta
    return greatest if greatest > NO_TIMESTAMP else NO_TIMESTAMP


def as_it_is(append: AppendContext, batch: Batch, walked: Walked, source_codec: i64, target_codec: i64, size: i64) -> Validated:
    """The result for a batch that keeps its bytes. `size` is that of its records, decompressed."""
    return _stamp(append, batch, _max_timestamp(append, batch, walked[1]), temporary_bytes(source_codec, target_codec, size))


def temporary_bytes(source_codec: i64, target_codec: i64, size: i64) -> i64:
    """The bytes that were decompressed for the check; 0 for an uncompressed batch that stays uncompressed."""
    return 0 if source_codec == NONE and target_codec == NONE else HEADER_SIZE_V2 + size


def _stamp(append: AppendContext, batch: Batch, max_timestamp: i64, temporary: i64) -> Validated:
    """Keeps the batch except for offset, epoch and, where the producer set other values, timestamp type and greatest timestamp."""
    data = append.data
    end: i64 = batch.at + batch.size
    time_bit: i64 = LOG_APPEND_TIME_BIT if append.rules.timestamp_type == LOG_APPEND_TIME else 0
    out = BytesWriter()
    write_i64_be(out, append.base_offset)
    write_i32_be(out, i32(batch.size - LOG_OVERHEAD))
    write_i32_be(out, i32(append.leader_epoch))
    untouched: i64 = batch.at + MAGIC_AT
    if batch.max_timestamp != max_timestamp or batch.attributes & LOG_APPEND_TIME_BIT != time_bit:
        untouched = batch.at + HEADER_SIZE_V2
        batch.max_timestamp = max_timestamp
        batch.attributes = (batch.attributes & _KNOWN_BITS & ~LOG_APPEND_TIME_BIT) | time_bit
        checked = _checked_header(data, batch)
        batch.crc = extend_crc32c(crc32c(checked, 0, len(checked)), data, untouched, end)
        out.append(MAGIC_V2)
        write_u32_be(out, batch.crc)
        out.write(checked)
    last_offset: i64 = append.base_offset + batch.count - 1
    batch.at = 0
    batch.base_offset = append.base_offset
    batch.last_offset = last_offset
    batch.leader_epoch = append.leader_epoch
    return Validated(
        [out.getvalue(), memoryview(data)[untouched:end]],
        batch.size,
        [batch],
        last_offset,
        max_timestamp,
        # Kafka's compressed path names the last offset even where no record has a timestamp.
        -1 if max_timestamp == NO_TIMESTAMP and temporary == 0 else last_offset,
        append.log_append_time,
        False,
        0,
        temporary,
    )


def _checked_header(data: bytes, batch: Batch) -> bytes:
    """The part of a v2 header that the checksum covers, with the attributes and the greatest timestamp of `batch`."""
    at: i64 = batch.at
    out = BytesWriter()
    write_i16_be(out, i16(batch.attributes))
    out.write(data[at + 23 : at + 35])
    write_i64_be(out, batch.max_timestamp)
    out.write(data[at + 43 : at + HEADER_SIZE_V2])
    return out.getvalue()


def _is_as_built(batch: Batch, body: bytes, at: i64, least_delta: i64) -> bool:
    """Whether a builder would encode these records the same way: relative to the timestamp of the first, and none negative."""
    if batch.attributes & (LOG_APPEND_TIME_BIT | DELETE_HORIZON_BIT):
        return False
    _, body_at = read_varint(body, at)
    return body[body_at + 1] == 0 and batch.base_timestamp + least_delta >= NO_TIMESTAMP


def recompressed(append: AppendContext, batch: Batch, walked: Walked, compressed: bytes, codec: i64, size: i64) -> Validated:
    """The result for the same records with another codec: as `rebuild`, but without decoding each record."""
    max_timestamp: i64 = _max_timestamp(append, batch, walked[1])
    attributes: i64 = (batch.attributes & _KNOWN_BITS & ~CODEC_MASK) | codec
    if append.rules.timestamp_type == LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_BIT
    last_offset: i64 = append.base_offset + batch.count - 1
    built = encode_batch(
        compressed,
        attributes,
        append.base_offset,
        last_offset,
        batch.base_timestamp,
        max_timestamp,
        batch.count,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        append.leader_epoch,
    )
    offset_of_max: i64 = -1 if max_timestamp == NO_TIMESTAMP else last_offset
    return rebuilt(append, built, max_timestamp, offset_of_max, batch.count, 2 * (HEADER_SIZE_V2 + size))
