# Compiled by mypyc: src/compiled.toml lists this module.
"""Control records: records that brokers write into a log and that consumers do not pass to the application.

The key of a control record holds its type; the value depends on the type. This module has the markers that end a transaction, and the names
of the types that KRaft adds, so that a log of Kafka can be read and dumped. An unknown type is not an error: newer brokers may have more.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i16_be, write_i32_be
from mypy_extensions import i16, i32, i64

from barnabas.errors import InvalidRecord
from barnabas.records.batch import NO_LEADER_EPOCH, NO_PRODUCER_ID
from barnabas.records.builder import BatchBuilder
from barnabas.records.record import Record

ABORT: Final = 0
COMMIT: Final = 1
LEADER_CHANGE: Final = 2
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
KRAFT_VERSION: Final = 5
KRAFT_VOTERS: Final = 6
UNKNOWN: Final = -1

CONTROL_TYPE_NAMES: Final = {
    ABORT: "ABORT",
    COMMIT: "COMMIT",
    LEADER_CHANGE: "LEADER_CHANGE",
    SNAPSHOT_HEADER: "SNAPSHOT_HEADER",
    SNAPSHOT_FOOTER: "SNAPSHOT_FOOTER",
    KRAFT_VERSION: "KRAFT_VERSION",
    KRAFT_VOTERS: "KRAFT_VOTERS",
    UNKNOWN: "UNKNOWN",
}

_KEY_VERSION: Final = 0
_KEY_SIZE: Final = 4
_MARKER_VERSION: Final = 0
_MARKER_SIZE: Final = 6


class EndTxnMarker:
    """How a transaction ended, and the epoch of the coordinator that ended it."""

    def __init__(self, committed: bool, coordinator_epoch: i64) -> None:
        self.committed = committed
        self.coordinator_epoch = coordinator_epoch

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EndTxnMarker) and self.committed == other.committed and self.coordinator_epoch == other.coordinator_epoch

    def __hash__(self) -> int:
        return hash((self.committed, self.coordinator_epoch))

    def __repr__(self) -> str:
        return f"EndTxnMarker(committed={self.committed}, coordinator_epoch={self.coordinator_epoch})"


def end_txn_marker(
    committed: bool,
    producer_id: i64,
    producer_epoch: i64,
    coordinator_epoch: i64,
    timestamp: i64,
    base_offset: i64 = 0,
    leader_epoch: i64 = NO_LEADER_EPOCH,
) -> bytes:
    """A control batch of one record that commits or aborts the open transaction of the producer."""
    if producer_id == NO_PRODUCER_ID:
        raise ValueError("End transaction marker requires a valid producerId")
    builder = BatchBuilder(
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
        transactional=True,
        control=True,
    )
    value = BytesWriter()
    write_i16_be(value, _MARKER_VERSION)
    write_i32_be(value, i32(coordinator_epoch))
    builder.append(timestamp, control_key(COMMIT if committed else ABORT), value.getvalue())
    return builder.build()


def control_key(control_type: i64) -> bytes:
    """The key of a control record of this type."""
    if control_type == UNKNOWN:
        raise ValueError("Cannot serialize UNKNOWN control record type")
    key = BytesWriter()
    write_i16_be(key, _KEY_VERSION)
    write_i16_be(key, i16(control_type))
    return key.getvalue()


def parse_control_type(record: Record) -> int:
    """The type in the key of a control record; UNKNOWN for a type that is not listed here."""
    key_at: i64 = record.key_at
    if record.key_size < _KEY_SIZE:
        raise InvalidRecord(
            "Invalid value size found for end control record key. Must have at least "
            f"{_KEY_SIZE} bytes, but found only {max(record.key_size, 0)}"
        )
    version: i64 = i64(read_i16_be(record.data, key_at))
    if version < 0:
        raise InvalidRecord(f"Invalid version found for control record: {version}. May indicate data corruption")
    control_type: i64 = i64(read_i16_be(record.data, key_at + 2))
    if control_type < ABORT or control_type > KRAFT_VOTERS:
        return UNKNOWN
    return control_type


def parse_end_txn_marker(record: Record) -> EndTxnMarker:
    """The marker in a control record of type COMMIT or ABORT. Fields that a newer version appends are ignored."""
    control_type = parse_control_type(record)
    if control_type != COMMIT and control_type != ABORT:
        raise InvalidRecord(f"Invalid control record type for end transaction marker{CONTROL_TYPE_NAMES[control_type]}")
    if record.value_size < _MARKER_SIZE:
        raise InvalidRecord(
            "Invalid value size found for end transaction marker. Must have at least "
            f"{_MARKER_SIZE} bytes, but found only {max(record.value_size, 0)}"
        )
    version: i64 = i64(read_i16_be(record.data, record.value_at))
    if version < 0:
        raise InvalidRecord(f"Invalid version found for end transaction marker: {version}. May indicate data corruption")
    return EndTxnMarker(control_type == COMMIT, i64(read_i32_be(record.data, record.value_at + 2)))
