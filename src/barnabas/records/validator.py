"""What a leader does to records before they enter its log: Kafka's LogValidator, and the checks its log makes just before it.

A produce request ends here and comes out as buffers ready to be written. A batch that already suits the topic is not copied: a new base
offset and leader epoch go in front of its untouched rest. Everything else is rebuilt. Nothing invalid passes, whoever sent it; what only
a client may not do is asked of clients alone.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from barnabas.errors import (
    CorruptRecord,
    InvalidRecord,
    InvalidTimestamp,
    RecordTooLarge,
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
    MAGIC_V2,
    NO_TIMESTAMP,
    Batch,
    read_batches,
)
from barnabas.records.builder import encode_batch, write_u32_be
from barnabas.records.compression import FIRST_LOOK, NONE, PRODUCED_SIZE_MAX, ZSTD, compress, decompress_start
from barnabas.records.crc import batch_crc, crc32c, extend_crc32c
from barnabas.records.entry_validator import validate_entries
from barnabas.records.reader import records_body, records_in
from barnabas.records.record_walk import walk_records, walk_start
from barnabas.records.validation import (
    CLIENT,
    COORDINATOR,
    KEEP_CODEC,
    RAFT_LEADER,
    REPLICATION,
    Append,
    Validated,
    ValidationRules,
    are_moderate,
    check_records,
    is_out_of_range,
    rebuild,
    rebuilt,
)
from barnabas.records.varint import read_varint

__all__ = ["CLIENT", "COORDINATOR", "RAFT_LEADER", "REPLICATION", "Validated", "ValidationRules", "validate"]

# The attributes Kafka knows: when it writes them anew it leaves out the rest.
_KNOWN_BITS: Final = 0x7F


def validate(
    data: bytes, start: i64, end: i64, base_offset: i64, now_ms: i64, leader_epoch: i64, origin: i64, rules: ValidationRules
) -> Validated:
    """Check the batches in `data[start:end]` and give their records offsets from `base_offset` on."""
    append = Append(data, base_offset, now_ms, leader_epoch, origin, rules)
    batches = read_batches(data, start, end)
    if not batches:
        raise InvalidRecord("Record batch has no batches at all")
    source_codec: i64 = NONE
    for batch in batches:
        _check_as_received(append, batch)
        codec: i64 = batch.attributes & CODEC_MASK
        if codec != NONE:
            source_codec = codec
    first = batches[0]
    if len(batches) > 1 and (first.magic >= MAGIC_V2 or source_codec != NONE):
        raise InvalidRecord("Compressed outer record has more than one batch")
    for batch in batches:
        _check_batch(append, first, batch)
    target_codec: i64 = source_codec if rules.codec == KEEP_CODEC else rules.codec
    _check_codecs(first.magic, rules.target_magic, source_codec, target_codec)
    if first.magic >= MAGIC_V2:
        return _validate_v2(append, first, source_codec, target_codec)
    return validate_entries(append, batches, source_codec, target_codec)


def _check_as_received(append: Append, batch: Batch) -> None:
    """What Kafka's log checks of any append before it assigns offsets."""
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


def _check_batch(append: Append, first: Batch, batch: Batch) -> None:
    if batch.magic != first.magic:
        raise InvalidRecord(
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


def _check_offsets(append: Append, batch: Batch) -> None:
    base: i64 = batch.base_offset
    last: i64 = batch.last_offset
    if last >= base and last - base + 1 == batch.count:
        return
    where = append.rules.topic_partition
    if last < base:
        raise InvalidRecord(f"Batch has an invalid offset range: [{base}, {last}] in topic partition {where}")
    if batch.count <= 0:
        raise InvalidRecord(f"Invalid reported count for record batch: {batch.count} in topic partition {where}")
    raise InvalidRecord(f"Inconsistent batch offset range [{base}, {last}] and count of records {batch.count} in topic partition {where}")


def _check_client(append: Append, batch: Batch) -> None:
    where = append.rules.topic_partition
    if batch.is_control:
        raise InvalidRecord(f"Clients are not allowed to write control records in topic partition {where}")
    if batch.has_producer_id:
        if batch.base_sequence < 0:
            raise InvalidRecord(
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


def _check_codecs(source_magic: i64, target_magic: i64, source_codec: i64, target_codec: i64) -> None:
    if source_codec > ZSTD:
        raise InvalidRecord(f"Unknown compression type id: {source_codec}")
    if source_codec == ZSTD and source_magic < MAGIC_V2:
        raise UnsupportedCompressionType(f"ZStandard compression is not supported for magic {source_magic}")
    if target_codec == ZSTD and target_magic < MAGIC_V2:
        raise UnsupportedCompressionType(f"ZStandard compression is not supported for magic {target_magic}")


def _validate_v2(append: Append, batch: Batch, source_codec: i64, target_codec: i64) -> Validated:
    rules = append.rules
    body, at, end = _opened(append, batch, source_codec)
    try:
        least_delta, greatest_delta, without_key, misplaced = walk_records(body, at, end, batch.count)
    except (CorruptRecord, InvalidRecord, IndexError) as fault:
        for _ in records_in(body, at, end, batch):
            pass  # it knows what is wrong, in Kafka's words
        raise InvalidRecord("Found invalid record structure") from fault
    max_timestamp: i64 = _check_records_v2(append, batch, body, at, end, least_delta, greatest_delta, without_key)
    if rules.timestamp_type == LOG_APPEND_TIME:
        max_timestamp = append.now_ms
    # What was decompressed to be looked at; a plain batch that stays plain costs nothing.
    temporary_bytes: i64 = 0 if source_codec == NONE and target_codec == NONE else HEADER_SIZE_V2 + end - at

    if misplaced > 0 and batch.is_control:
        raise InvalidRecord(f"Control records must have consecutive offsets in topic partition {rules.topic_partition}")
    if misplaced == 0 and rules.target_magic == MAGIC_V2:
        if source_codec == target_codec or batch.is_control:
            return _stamp(append, batch, max_timestamp, temporary_bytes)
        if _is_as_built(batch, body, at, least_delta):
            return _recompress(append, batch, body[at:end], max_timestamp, target_codec, temporary_bytes)
    return rebuild(append, [batch], target_codec, temporary_bytes)


def _opened(append: Append, batch: Batch, codec: i64) -> tuple[bytes, i64, i64]:
    """The bytes the records stand in. Where they unfold into many, the first of them are looked at before the rest is opened."""
    if codec != NONE:
        first = decompress_start(codec, append.data[batch.at + HEADER_SIZE_V2 : batch.end], MAGIC_V2)
        size: i64 = len(first)
        if size < FIRST_LOOK:
            return first, 0, size
        try:
            walk_start(first, size, batch.count, PRODUCED_SIZE_MAX)
        except (CorruptRecord, InvalidRecord, IndexError) as fault:
            for _ in records_in(first, 0, size, batch):
                pass
            raise InvalidRecord("Found invalid record structure") from fault
    return records_body(append.data, batch, PRODUCED_SIZE_MAX)


def _check_records_v2(
    append: Append, batch: Batch, body: bytes, at: i64, end: i64, least_delta: i64, greatest_delta: i64, without_key: i64
) -> i64:
    """The greatest timestamp, -1 if there is none; raises if a record breaks a rule of the topic."""
    rules = append.rules
    by_broker: bool = (batch.attributes & LOG_APPEND_TIME_BIT) != 0
    least: i64 = batch.max_timestamp
    greatest: i64 = least
    if not by_broker:
        if not are_moderate(batch.base_timestamp, least_delta) or not are_moderate(batch.base_timestamp, greatest_delta):
            raise InvalidTimestamp(f"The timestamps of the records overflow in topic partition {rules.topic_partition}")
        least = batch.base_timestamp + least_delta
        greatest = batch.base_timestamp + greatest_delta
    # The records are looked at one by one only if one of them may be wrong.
    suspect: bool = without_key > 0 and rules.compacted
    if rules.timestamp_type == LOG_APPEND_TIME or least == NO_TIMESTAMP:
        suspect = suspect or by_broker
    if rules.timestamp_type != LOG_APPEND_TIME:
        suspect = suspect or is_out_of_range(append, least) or is_out_of_range(append, greatest)
    if suspect:
        check_records(append, batch, records_in(body, at, end, batch))
    return greatest if greatest > NO_TIMESTAMP else NO_TIMESTAMP


def _stamp(append: Append, batch: Batch, max_timestamp: i64, temporary_bytes: i64) -> Validated:
    """Keep the batch as it is, but for offset, epoch and, where the producer had them otherwise, timestamp type and greatest timestamp."""
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
        -1 if max_timestamp == NO_TIMESTAMP and temporary_bytes == 0 else last_offset,
        append.log_append_time,
        False,
        0,
        temporary_bytes,
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
    """Whether a builder would encode these records just so: counted from the timestamp of the first, none of them negative."""
    if batch.attributes & (LOG_APPEND_TIME_BIT | DELETE_HORIZON_BIT):
        return False
    _, body_at = read_varint(body, at)
    return body[body_at + 1] == 0 and batch.base_timestamp + least_delta >= NO_TIMESTAMP


def _recompress(append: Append, batch: Batch, records: bytes, max_timestamp: i64, codec: i64, temporary_bytes: i64) -> Validated:
    """The same records with another codec: what `rebuild` would make of them, without taking them apart."""
    attributes: i64 = (batch.attributes & _KNOWN_BITS & ~CODEC_MASK) | codec
    if append.rules.timestamp_type == LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_BIT
    last_offset: i64 = append.base_offset + batch.count - 1
    built = encode_batch(
        compress(codec, records, MAGIC_V2, append.level),
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
    return rebuilt(append, built, max_timestamp, offset_of_max, batch.count, temporary_bytes + HEADER_SIZE_V2 + len(records))
