"""The records of the coordinators, against the logs that Apache Kafka 4.2 wrote."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from barnabas.protocol.coordinator_log import GROUP_RECORDS, SHARE_RECORDS, TRANSACTION_RECORDS, RecordTypes, write_key, write_value
from barnabas.protocol.coordinator_record_types import GROUP, SHARE, TRANSACTION
from barnabas.protocol.coordinator_records.offset_commit_key import OffsetCommitKey
from barnabas.protocol.coordinator_records.offset_commit_value import OffsetCommitValue
from barnabas.protocol.errors import MalformedMessage, UnsupportedVersion
from barnabas.records.batch import read_batches
from barnabas.records.reader import read_records
from tests.unit.protocol.instances import COORDINATOR_RECORDS

GOLDEN = Path(__file__).parents[2] / "data" / "golden-logs" / "kafka-4.2.0" / "first"


@pytest.mark.parametrize(
    ("log", "types", "expected"),
    [
        ("__consumer_offsets-0", GROUP_RECORDS, {"OffsetCommitKey", "GroupMetadataKey"}),
        ("__transaction_state-0", TRANSACTION_RECORDS, {"TransactionLogKey"}),
    ],
)
def test_the_records_kafka_wrote_are_read_and_written_alike(log: str, types: RecordTypes, expected: set[str]) -> None:
    data = (GOLDEN / log / "00000000000000000000.log").read_bytes()
    seen: Counter[str] = Counter()
    for batch in read_batches(data):
        if batch.is_control:
            continue
        for record in read_records(data, batch):
            assert record.key is not None
            record_type, key = types.read_key(record.key)
            assert write_key(record_type, key) == record.key
            if record.value is not None:
                value = types.read_value(record_type, record.value)
                assert write_value(int.from_bytes(record.value[:2], "big"), value) == record.value
            seen[type(key).__name__] += 1
    assert expected <= seen.keys()


def test_every_record_of_the_schemas_has_its_type() -> None:
    for types, names in ((GROUP_RECORDS, GROUP), (TRANSACTION_RECORDS, TRANSACTION), (SHARE_RECORDS, SHARE)):
        for record_type, (name, _) in names.items():
            assert [kind.__name__ for kind in types.kinds(record_type)] == [f"{name}Key", f"{name}Value"]
            assert COORDINATOR_RECORDS[f"{name}Value"].api_key == record_type
    assert 2 * (len(GROUP) + len(TRANSACTION) + len(SHARE)) == len(COORDINATOR_RECORDS)


def test_a_record_goes_through_its_bytes() -> None:
    key, value = OffsetCommitKey("group", "topic", 3), OffsetCommitValue(offset=7, leader_epoch=2, metadata="m", commit_timestamp=1000)
    raw = write_key(1, key)
    assert raw == b"\x00\x01" + b"\x00\x05group" + b"\x00\x05topic" + b"\x00\x00\x00\x03"
    assert GROUP_RECORDS.read_key(raw) == (1, key)
    assert GROUP_RECORDS.read_value(1, write_value(3, value)) == value


def test_what_a_newer_kafka_wrote_is_told_apart_from_damage() -> None:
    with pytest.raises(UnsupportedVersion, match="unknown record type 999"):
        GROUP_RECORDS.read_key(b"\x03\xe7rest")
    with pytest.raises(UnsupportedVersion, match="OffsetCommitValue has the versions 0 to 4, not 9"):
        GROUP_RECORDS.read_value(1, b"\x00\x09rest")
    for damaged in (b"", b"\x00", b"\x00\x01\x00", write_key(1, OffsetCommitKey("g", "t", 1)) + b"x"):
        with pytest.raises(MalformedMessage):
            GROUP_RECORDS.read_key(damaged)
