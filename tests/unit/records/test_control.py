"""Control records: Kafka's transaction markers byte for byte, and how odd ones are taken."""

from __future__ import annotations

import pytest

from barnabas.errors import InvalidRecord
from barnabas.records.batch import read_batches
from barnabas.records.builder import build
from barnabas.records.control import (
    ABORT,
    COMMIT,
    KRAFT_VOTERS,
    UNKNOWN,
    EndTxnMarker,
    control_key,
    end_txn_marker,
    parse_control_type,
    parse_end_txn_marker,
)
from barnabas.records.reader import read_records
from barnabas.records.record import Record
from tests import golden


def test_a_marker_is_78_bytes() -> None:
    assert len(end_txn_marker(True, 7, 2, 5, 1_700_000_000_000)) == 78


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_says_how_the_transaction_ended(committed: bool) -> None:
    data = end_txn_marker(committed, 7, 2, 5, 1_700_000_000_000, base_offset=40, leader_epoch=3)
    batch = read_batches(data)[0]
    assert batch.is_control and batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 2, -1)
    assert (batch.base_offset, batch.leader_epoch, batch.max_timestamp) == (40, 3, 1_700_000_000_000)
    record = read_records(data, batch)[0]
    assert parse_control_type(record) == (COMMIT if committed else ABORT)
    assert parse_end_txn_marker(record) == EndTxnMarker(committed, 5)


@pytest.mark.parametrize("directory", ["first/g-txn-0", "first/g-compact-txn-0", "before/g-compact-txn-0"])
def test_every_marker_kafka_wrote_is_rebuilt_byte_for_byte(directory: str) -> None:
    seen = 0
    for path in sorted((golden.LOGS / "kafka-4.2.0" / directory).glob("*.log")):
        data = path.read_bytes()
        for batch in read_batches(data):
            if not batch.is_control or batch.delete_horizon_ms >= 0:
                continue
            marker = parse_end_txn_marker(read_records(data, batch)[0])
            rebuilt = end_txn_marker(
                marker.committed,
                batch.producer_id,
                batch.producer_epoch,
                marker.coordinator_epoch,
                batch.max_timestamp,
                batch.base_offset,
                batch.leader_epoch,
            )
            assert rebuilt == data[batch.at : batch.end]
            seen += 1
    assert seen > 0


def test_a_marker_needs_a_producer() -> None:
    with pytest.raises(ValueError, match="requires a valid producerId"):
        end_txn_marker(True, -1, 0, 0, 0)


def test_a_type_from_the_future_is_unknown() -> None:
    assert parse_control_type(a_record(b"\x00\x00\x00\x07", b"")) == UNKNOWN
    assert parse_control_type(a_record(b"\x00\x00\xff\xff", b"")) == UNKNOWN


def test_a_newer_key_version_is_read_as_the_one_known() -> None:
    assert parse_control_type(a_record(b"\x00\x09\x00\x01more", b"")) == COMMIT


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00"])
def test_a_key_too_short_for_a_type_is_refused(key: bytes | None) -> None:
    with pytest.raises(InvalidRecord, match=f"at least 4 bytes, but found only {len(key or b'')}"):
        parse_control_type(a_record(key, b""))


def test_a_negative_key_version_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="Invalid version found for control record: -1"):
        parse_control_type(a_record(b"\xff\xff\x00\x01", b""))


def test_a_type_that_ends_no_transaction_is_no_marker() -> None:
    with pytest.raises(InvalidRecord, match="Invalid control record type"):
        parse_end_txn_marker(a_record(control_key(KRAFT_VOTERS), bytes(6)))


@pytest.mark.parametrize("value", [None, bytes(5)])
def test_a_marker_value_too_short_is_refused(value: bytes | None) -> None:
    with pytest.raises(InvalidRecord, match=f"at least 6 bytes, but found only {len(value or b'')}"):
        parse_end_txn_marker(a_record(control_key(COMMIT), value))


def test_a_negative_marker_version_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="Invalid version found for end transaction marker: -2"):
        parse_end_txn_marker(a_record(control_key(ABORT), b"\xff\xfe" + bytes(4)))


def test_a_newer_marker_may_carry_more() -> None:
    assert parse_end_txn_marker(a_record(control_key(ABORT), b"\x00\x01\x00\x00\x00\x09more")) == EndTxnMarker(False, 9)


def test_there_is_no_key_for_the_unknown() -> None:
    with pytest.raises(ValueError, match="UNKNOWN"):
        control_key(UNKNOWN)


def a_record(key: bytes | None, value: bytes | None) -> Record:
    data = build([(0, key, value, ())], control=True)
    return read_records(data, read_batches(data)[0])[0]
