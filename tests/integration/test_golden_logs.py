"""Every log that Apache Kafka wrote for us is read here as Kafka's own dump shows it: batches, records, index entries, producers."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.records.batch import LOG_APPEND_TIME, NO_TIMESTAMP_TYPE, Batch, read_batches
from barnabas.records.codecs.compression import codec_name
from barnabas.records.crc import is_valid
from barnabas.records.reader import read_records
from barnabas.storage.directory.names import offset_of
from barnabas.storage.disk.files import Files
from barnabas.storage.indexes.offset_index import OffsetIndex
from barnabas.storage.indexes.time_index import TimeIndex
from barnabas.storage.indexes.txn_index import TransactionIndex
from barnabas.storage.producers.snapshot import decode_snapshot
from tests import golden

every_partition = pytest.mark.parametrize("directory", golden.partitions(), ids=golden.name)


def test_the_golden_logs_are_all_there() -> None:
    assert len(golden.partitions("4.2.0")) == 20
    assert len(golden.partitions("2.8.2")) == 16


@every_partition
def test_the_dump_covers_the_partition(directory: Path) -> None:
    kind = ".log" if directory.name == "__cluster_metadata-0" else ""
    assert list(golden.read_dump(directory)) == [file for file in golden.files(directory) if file.name.endswith(kind)]


@every_partition
def test_batch_headers_are_those_of_the_dump(directory: Path) -> None:
    for log, dumped in golden.read_dump(directory, ".log").items():
        data = log.read_bytes()
        batches = read_batches(data)
        assert sum(batch.size for batch in batches) == len(data)
        for batch, in_dump in zip(batches, dumped.batches, strict=True):
            found = described(data, batch)
            expected = {**in_dump.fields, "compresscodec": in_dump.fields["compresscodec"].lower()}
            assert {name: found[name] for name in expected} == expected


@every_partition
def test_records_are_those_of_the_dump(directory: Path) -> None:
    for log, dumped in golden.read_dump(directory, ".log").items():
        data = log.read_bytes()
        for batch, dumped_batch in zip(read_batches(data), dumped.batches, strict=True):
            for record, dumped_record in zip(read_records(data, batch), dumped_batch.records, strict=True):
                fields = dumped_record.fields
                assert str(record.offset) == fields["offset"]
                assert str(record.timestamp) == fields[timestamp_name(batch)]
                assert (str(record.key_size), str(record.value_size)) == (fields["keySize"], fields["valueSize"])
                if "headerKeys" in fields:
                    assert f"[{','.join(key for key, _ in record.headers)}]" == fields["headerKeys"]
                if "sequence" in fields:
                    assert str(record.sequence) == fields["sequence"]
                if not golden.is_internal(directory) and not batch.is_control:
                    assert (text(record.key), text(record.value)) == (dumped_record.key, dumped_record.payload)


@every_partition
def test_offset_index_entries_are_those_of_the_dump(directory: Path) -> None:
    for path, dumped in golden.read_dump(directory, ".index").items():
        index = OffsetIndex(Files(), str(path), base_offset(path), writable=False)
        index.sanity_check()
        entries = [index.entry(n) for n in range(index.entries)]
        assert [{"offset": str(offset), "position": str(position)} for offset, position in entries] == dumped.entries


@every_partition
def test_time_index_entries_are_those_of_the_dump(directory: Path) -> None:
    for path, dumped in golden.read_dump(directory, ".timeindex").items():
        index = TimeIndex(Files(), str(path), base_offset(path), writable=False)
        index.sanity_check()
        entries = [index.entry(n) for n in range(index.entries)]
        assert [{"timestamp": str(timestamp), "offset": str(offset)} for timestamp, offset in entries] == dumped.entries


@every_partition
def test_aborted_transactions_are_those_of_the_dump(directory: Path) -> None:
    for path, dumped in golden.read_dump(directory, ".txnindex").items():
        index = TransactionIndex(Files(), str(path), base_offset(path))
        index.sanity_check()
        assert [
            {
                "version": "0",
                "producerId": str(txn.producer_id),
                "firstOffset": str(txn.first_offset),
                "lastOffset": str(txn.last_offset),
                "lastStableOffset": str(txn.last_stable_offset),
            }
            for txn in index.all()
        ] == dumped.entries


@every_partition
def test_producers_in_snapshots_are_those_of_the_dump(directory: Path) -> None:
    for path, dumped in golden.read_dump(directory, ".snapshot").items():
        for entry, expected in zip(decode_snapshot(path.read_bytes(), str(path)), dumped.entries, strict=True):
            found = {
                "producerId": entry.producer_id,
                "producerEpoch": entry.producer_epoch,
                "coordinatorEpoch": entry.coordinator_epoch,
                "lastTimestamp": entry.last_timestamp,
                "currentTxnFirstOffset": optional(entry.current_txn_first_offset),
            }
            for batch in entry.batches:
                found |= {
                    "firstSequence": batch.first_sequence,
                    "lastSequence": batch.last_sequence,
                    "lastOffset": batch.last_offset,
                    "offsetDelta": batch.offset_delta,
                    "timestamp": batch.timestamp,
                }
            assert {name: str(value) for name, value in found.items()} == expected


def described(data: bytes, batch: Batch) -> dict[str, str]:
    """A batch header in the words of the dump."""
    common = {
        "position": batch.at,
        timestamp_name(batch): batch.max_timestamp,
        "size": batch.size,
        "magic": batch.magic,
        "compresscodec": codec_name(batch.codec),
        "crc": batch.crc,
        "isvalid": java(is_valid(data, batch)),
    }
    if batch.magic < 2:
        return {"offset": str(batch.last_offset), **{name: str(value) for name, value in common.items()}}
    v2 = {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.leader_epoch,
        "isTransactional": java(batch.is_transactional),
        "isControl": java(batch.is_control),
        "deleteHorizonMs": optional(batch.delete_horizon_ms),
    }
    return {name: str(value) for name, value in (v2 | common).items()}


def timestamp_name(batch: Batch) -> str:
    if batch.timestamp_type == NO_TIMESTAMP_TYPE:
        return "NoTimestampType"
    return "LogAppendTime" if batch.timestamp_type == LOG_APPEND_TIME else "CreateTime"


def optional(value: int) -> str:
    return "OptionalLong.empty" if value == -1 else f"OptionalLong[{value}]"


def java(value: bool) -> str:
    return "true" if value else "false"


def text(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8")


def base_offset(path: Path) -> int:
    offset = offset_of(path.name)
    assert offset is not None
    return offset
