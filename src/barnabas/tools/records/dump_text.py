"""Batches and records as lines of text: exactly the text of Apache Kafka's kafka-dump-log.

Scripts read these lines, so odd ones stay odd: Java's `OptionalLong.empty`, and the stray brace after the checksum of an old record.
"""

from __future__ import annotations

import codecs
from typing import Final

from barnabas.errors import InvalidRecord
from barnabas.records.batch import CREATE_TIME, LOG_APPEND_TIME, MAGIC_AT, MAGIC_V0, MAGIC_V2, NO_TIMESTAMP, NO_TIMESTAMP_TYPE, Batch
from barnabas.records.codecs.compression import codec_name
from barnabas.records.control import ABORT, COMMIT, CONTROL_TYPE_NAMES, parse_control_type, parse_end_txn_marker
from barnabas.records.crc import crc32, is_valid
from barnabas.records.record import Record
from barnabas.tools.records import kraft_records

_TIMESTAMP_TYPES: Final = {NO_TIMESTAMP_TYPE: "NoTimestampType", CREATE_TIME: "CreateTime", LOG_APPEND_TIME: "LogAppendTime"}
_DECODERS: Final = "org.apache.kafka.tools.api."
STRING_DECODER: Final = _DECODERS + "StringDecoder"
_INTEGER_SIZES: Final = {_DECODERS + "LongDecoder": 8, _DECODERS + "IntegerDecoder": 4}
DECODERS: Final = (STRING_DECODER, *_INTEGER_SIZES, _DECODERS + "DefaultDecoder")


def batch_line(data: bytes, batch: Batch, position: int) -> str:
    """The header of the batch, which stands at byte 0 of `data` and at `position` of its file."""
    if batch.magic >= MAGIC_V2:
        start = (
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count}"
            f" baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence}"
            f" producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
            f" partitionLeaderEpoch: {batch.leader_epoch} isTransactional: {_java(batch.is_transactional)}"
            f" isControl: {_java(batch.is_control)} deleteHorizonMs: {optional(batch.delete_horizon_ms, NO_TIMESTAMP)}"
        )
    else:
        start = f"offset: {batch.last_offset}"
    return (
        f"{start} position: {position} {_TIMESTAMP_TYPES[batch.timestamp_type]}: {batch.max_timestamp}"
        f" size: {batch.size} magic: {data[MAGIC_AT]} compresscodec: {codec_name(batch.codec)}"
        f" crc: {batch.crc} isvalid: {_java(is_valid(data, batch))}"
    )


def record_metadata(batch: Batch, record: Record) -> str:
    text = (
        f"offset: {record.offset} {_TIMESTAMP_TYPES[batch.timestamp_type]}: {record.timestamp}"
        f" keySize: {record.key_size} valueSize: {record.value_size}"
    )
    if batch.magic < MAGIC_V2:
        return f"{text} {_legacy_checksum(batch, record)}"
    text += f" sequence: {record.sequence} headerKeys: [{','.join(name for name, _ in record.headers)}]"
    return f"{text} {_control(record)}" if batch.is_control else text


def decode(decoder: str, content: bytes, offset: int) -> str:
    """A key or value through one of Kafka's decoder classes. (Java prints the address of a byte array; here its bytes are shown.)"""
    if decoder == STRING_DECODER:
        return content.decode("utf-8", "replace-as-java")
    size = _INTEGER_SIZES.get(decoder)
    if size is None:
        return content.hex()
    if len(content) < size:
        raise InvalidRecord(f"{decoder} needs {size} bytes, and the record at offset {offset} has {len(content)}")
    return str(int.from_bytes(content[:size], "big", signed=True))


def optional(value: int, absent: int) -> str:
    """Java's way to print a number that may be missing."""
    return "OptionalLong.empty" if value == absent else f"OptionalLong[{value}]"


def _legacy_checksum(batch: Batch, record: Record) -> str:
    """A v0 or v1 record carries its own checksum, just before its magic byte."""
    magic_at = record.key_at - (6 if batch.magic == MAGIC_V0 else 14)
    stored = int.from_bytes(record.data[magic_at - 4 : magic_at], "big")
    computed = crc32(record.data, magic_at, record.value_at + max(0, record.value_size))
    return f"isValid: {_java(stored == computed)} crc: {stored}}}"


def _control(record: Record) -> str:
    control_type = parse_control_type(record)
    if control_type in (ABORT, COMMIT):
        return f"endTxnMarker: {CONTROL_TYPE_NAMES[control_type]} coordinatorEpoch: {parse_end_txn_marker(record).coordinator_epoch}"
    known = kraft_records.describe(control_type, record.value)
    if known is not None:
        return known
    type_id = int.from_bytes(record.data[record.key_at + 2 : record.key_at + 4], "big", signed=True)
    return f"controlType: {CONTROL_TYPE_NAMES[control_type]}({type_id})"


def _replace_as_java(error: UnicodeError) -> tuple[str, int]:
    """Invalid UTF-8 becomes U+FFFD as in Python, except that Java replaces an encoded surrogate by one U+FFFD."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, start, end = error.object, error.start, error.end
    if data[start] == 0xED and 0xA0 <= int.from_bytes(data[start + 1 : start + 2], "big") <= 0xBF:
        end = start + (3 if 0x80 <= int.from_bytes(data[start + 2 : start + 3], "big") <= 0xBF else 2)
    return "\ufffd", end


codecs.register_error("replace-as-java", _replace_as_java)


def _java(value: bool) -> str:
    return "true" if value else "false"
