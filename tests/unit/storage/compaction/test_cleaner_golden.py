"""Logs that Apache Kafka wrote, compacted here and by Kafka itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from barnabas.records.batch import read_batches
from barnabas.records.reader import read_records
from barnabas.storage.compaction.cleaner import Cleaning, exhaust
from barnabas.storage.compaction.config import CleanerConfig
from barnabas.storage.disk.files import Files
from barnabas.storage.host import DirectHost
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.topic_partition import TopicPartition
from tests.golden import LOGS

NOW = 1_794_775_700_000
# What the topics were created with.
KAFKA_4 = {"cleanup.policy": "compact", "segment.ms": "5000", "delete.retention.ms": "100000000"}
FIRST = LOGS / "kafka-4.2.0" / "first"
BEFORE = LOGS / "kafka-4.2.0" / "before"
NOT_THE_LOG = {"DUMP.txt", "partition.metadata"}


def golden_log(source: Path, directory: Path, properties: dict[str, str]) -> Log:
    """A copy of a golden partition, opened as after a clean shutdown."""
    copy = directory / source.name
    shutil.copytree(source, copy, copy_function=shutil.copyfile)
    copy.chmod(0o755)
    partition = TopicPartition(source.name.rpartition("-")[0], 0)
    config = LogConfig.from_properties(properties)
    log = load_log(LoadRequest(Files(), str(copy), partition, config, DirectHost(), NOW, clean_shutdown=True))
    log.update_high_watermark(log.log_end_offset)
    return log


def clean(log: Log, first_dirty: int, first_uncleanable: int, now_ms: int = NOW) -> None:
    exhaust(Cleaning(log, first_dirty, first_uncleanable, CleanerConfig(), now_ms), now_ms)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name not in NOT_THE_LOG}


def fields(data: bytes) -> list[tuple[object, ...]]:
    """Every field of every batch, and its records: all but checksums, compressed bytes and the delete horizon itself."""
    entries: list[tuple[object, ...]] = []
    for read in read_batches(data):
        has_horizon = read.delete_horizon_ms >= 0
        records = [(r.offset, r.timestamp, r.sequence, r.key, r.value, r.headers) for r in read_records(data, read)]
        entries.append(
            (
                *(read.at, read.size, read.magic, read.attributes, read.base_offset, read.last_offset, read.leader_epoch),
                *(None if has_horizon else read.base_timestamp, read.max_timestamp),
                *(read.producer_id, read.producer_epoch, read.base_sequence, read.count, records),
            )
        )
    return entries


def test_g_compact_becomes_what_kafka_made_of_it(tmp_path: Path) -> None:
    log = golden_log(BEFORE / "g-compact-0", tmp_path, {**KAFKA_4, "index.interval.bytes": "200"})
    clean(log, 0, 200)
    log.close()
    ours, theirs = contents(tmp_path / "g-compact-0"), contents(FIRST / "g-compact-0")
    assert ours.keys() == theirs.keys()
    cleaned = "00000000000000000000.log"
    assert fields(ours.pop(cleaned)) == fields(theirs.pop(cleaned))
    assert ours == theirs, "indexes, snapshots and the active segment, byte for byte"


def test_g_compact_txn_becomes_what_kafka_made_of_it_in_three_cleanings(tmp_path: Path) -> None:
    """Kafka cleaned it while it was written; the delete horizons say when, and the markers that have none say how far each time.

    Times of markers differ between the two runs, since they are the broker's clock.
    """
    log = golden_log(BEFORE / "g-compact-txn-0", tmp_path, KAFKA_4)
    times = 1_794_775_572_600, 1_794_775_572_719, 1_794_775_575_769
    for first_dirty, first_uncleanable, now_ms in zip((0, 12, 25), (12, 25, 51), times, strict=True):
        clean(log, first_dirty, first_uncleanable, now_ms)
    log.close()
    ours, theirs = contents(tmp_path / "g-compact-txn-0"), contents(FIRST / "g-compact-txn-0")
    assert ours.keys() == theirs.keys()
    cleaned, index = "00000000000000000000.log", "00000000000000000000.txnindex"
    assert without_marker_times(ours[cleaned]) == without_marker_times(theirs[cleaned])
    assert [b.delete_horizon_ms for b in read_batches(ours[cleaned])] == [b.delete_horizon_ms for b in read_batches(theirs[cleaned])]
    assert ours[index] == theirs[index]


def without_marker_times(data: bytes) -> list[tuple[object, ...]]:
    entries: list[tuple[object, ...]] = []
    for read in read_batches(data):
        times = () if read.is_control else (read.base_timestamp, read.max_timestamp)
        records = [(r.offset, r.sequence, r.key, r.value, None if read.is_control else r.timestamp) for r in read_records(data, read)]
        position = (read.at, read.size, read.attributes, read.base_offset, read.last_offset, read.leader_epoch)
        entries.append((*position, *times, read.producer_id, read.producer_epoch, read.base_sequence, read.count, records))
    return entries


@pytest.mark.parametrize(
    ("source", "properties", "clean_until"),
    [
        (FIRST / "g-compact-0", {**KAFKA_4, "index.interval.bytes": "200"}, 200),
        (
            LOGS / "kafka-2.8.2" / "first" / "m082-compact-0",
            {"cleanup.policy": "compact", "index.interval.bytes": "200"},
            195,
        ),
    ],
    ids=["v2", "v0"],
)
def test_a_log_that_kafka_has_compacted_is_not_changed_by_compacting_it_again(
    source: Path, properties: dict[str, str], clean_until: int, tmp_path: Path
) -> None:
    log = golden_log(source, tmp_path, properties)
    before = b"".join(segment.file.pread(segment.size, 0) for segment in log.segments)
    clean(log, 0, clean_until)
    assert b"".join(segment.file.pread(segment.size, 0) for segment in log.segments) == before
