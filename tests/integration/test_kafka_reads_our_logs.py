"""Apache Kafka's own DumpLogSegments reads the logs that we write, and finds nothing wrong with them.

The logs go through the whole of storage: every codec and format, idempotent and transactional producers, rolls, recovery after a crash,
truncation, compaction. Each is dumped by Kafka in full and with both checks of indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.records.batch import LOG_APPEND_TIME
from barnabas.records.builder import BatchBuilder
from barnabas.records.codecs.compression import codec_id
from barnabas.records.control import end_txn_marker
from barnabas.records.record import Header
from barnabas.records.validation.validator import COORDINATOR
from barnabas.storage.compaction.cleanable import offsets_to_clean
from barnabas.storage.compaction.cleaner import Cleaning, exhaust
from barnabas.storage.compaction.config import CleanerConfig
from barnabas.storage.disk.files import Files
from barnabas.storage.host import DirectHost
from barnabas.storage.log.append import LogAppend
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests import golden, kafka

pytestmark = pytest.mark.java

NOW = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=16 * 1024, index_interval_bytes=600)  # several segments, with several index entries each
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Written = tuple[str | None, str | None, str]  # key, value and header keys, as the dump shows them
Expected = list[Written]


def test_kafka_finds_nothing_wrong_with_any_file(directories: dict[str, Expected], root: Path) -> None:
    dumped = kafka.dump_log(["--print-data-log", "--deep-iteration", "--files", files_of(root, directories)], root)
    assert (dumped.code, complaints(dumped)) == (0, [])
    assert "isvalid: false" not in dumped.out
    assert "invalid bytes" not in dumped.out
    assert dumped.out.count(".log\n") > 3 * len(directories)


@pytest.mark.parametrize("check", ["--index-sanity-check", "--verify-index-only"])
def test_kafkas_checks_of_indexes_pass(directories: dict[str, Expected], root: Path, check: str) -> None:
    checked = kafka.dump_log([check, "--files", files_of(root, directories)], root)
    assert (checked.code, checked.err) == (0, "")


def test_indexes_are_not_empty(directories: dict[str, Expected], root: Path) -> None:
    """Without this the checks above would prove nothing."""
    dumped = golden.parse_dump(kafka.dump_log(["--files", files_of(root, directories)], root).out)

    def entries(directory: str, kind: str) -> int:
        return sum(len(file.entries) for name, file in dumped.items() if name.startswith(f"{directory}/") and name.endswith(kind))

    assert min(entries(directory, ".index") for directory in directories) > 2
    assert min(entries(directory, ".timeindex") for directory in directories if directory != "v0-0") > 4  # v0 has no timestamps
    assert entries("transactions-0", ".txnindex") > 4
    assert entries("transactions-0", ".snapshot") > 4


def test_kafka_reads_every_record_as_it_was_written(directories: dict[str, Expected], root: Path) -> None:
    dumped = golden.parse_dump(kafka.dump_log(["--print-data-log", "--files", files_of(root, directories)], root).out)
    for directory, expected in directories.items():
        batches = [batch for name, file in dumped.items() if name.startswith(f"{directory}/") for batch in file.batches]
        data = [record for batch in batches if batch.fields.get("isControl") != "true" for record in batch.records]
        assert [(record.key, record.payload, record.fields.get("headerKeys", "[]")) for record in data] == expected


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def directories(root: Path) -> dict[str, Expected]:
    """Every log, with the data records it must hold."""
    writers: dict[str, Callable[[str], Expected]] = {f"{codec}-0": _codec_writer(codec, SMALL) for codec in CODECS}
    writers |= {f"from-{codec}-to-zstd-0": _codec_writer(codec, replace(SMALL, codec=codec_id("zstd"))) for codec in ("none", "lz4")}
    writers |= {
        "uncompressed-0": _codec_writer("gzip", replace(SMALL, codec=codec_id("none"))),
        "log-append-time-0": _codec_writer("snappy", replace(SMALL, timestamp_type=LOG_APPEND_TIME)),
        "v0-0": _old_format_writer(0),
        "v1-0": _old_format_writer(1),
        "replicated-0": write_replica,
        "transactions-0": write_transactions,
        "recovered-0": write_and_recover,
        "truncated-0": write_and_truncate,
        "compacted-0": write_and_compact,
        "compacted-transactions-0": write_and_compact_transactions,
    }
    return {name: write(str(root / name)) for name, write in writers.items()}


def files_of(root: Path, directories: dict[str, Expected]) -> str:
    return ",".join(str(file.relative_to(root)) for name in directories for file in golden.files(root / name))


def complaints(dumped: kafka.Result) -> list[str]:
    """What Kafka says on stderr, less the gaps between the offsets of compacted logs, which belong there."""
    kept: list[str] = []
    expected = False
    for line in dumped.err.splitlines():
        if not line.startswith(" "):
            expected = line.startswith("Non-consecutive offsets in ") and "/compacted-" in line
        if not expected:
            kept.append(line)
    return kept


# -- how each log is written


def _codec_writer(codec: str, config: LogConfig) -> Callable[[str], Expected]:
    def write(directory: str) -> Expected:
        log = open_log(directory, config)
        expected: Expected = []
        for n, records in enumerate(record_batches(100)):
            log.append_as_leader(LogAppend(build(records, codec=codec_id(codec)), NOW + n * 1000), n // 30)
            expected += shown(records)
        log.close(NOW)
        return expected

    return write


def _old_format_writer(magic: int) -> Callable[[str], Expected]:
    """A follower writes what its leader has, old formats included."""

    def write(directory: str) -> Expected:
        log = open_log(directory, SMALL)
        expected: Expected = []
        for n, records in enumerate(record_batches(100)):
            plain: list[RecordTuple] = [(timestamp, key, value, []) for timestamp, key, value, _ in records]
            codec = codec_id(CODECS[n % 4])  # all but zstd, which came later
            log.append_as_follower(build(plain, magic=magic, codec=codec, base_offset=log.log_end_offset), NOW)
            expected += shown(plain)
        log.close(NOW)
        return expected

    return write


def write_replica(directory: str) -> Expected:
    """A follower gets many batches with one fetch."""
    log = open_log(directory, SMALL)
    expected: Expected = []
    fetched = b""
    offset = 0
    for n, records in enumerate(record_batches(100)):
        fetched += build(records, base_offset=offset, codec=codec_id(CODECS[n % 5]))
        expected += shown(records)
        offset += len(records)
        if n % 10 == 9:
            log.append_as_follower(fetched, NOW)
            fetched = b""
    log.close(NOW)
    return expected


def write_transactions(directory: str) -> Expected:
    """Three producers take turns; of every three transactions one is aborted, and one is still open at the end."""
    log = open_log(directory, SMALL)
    expected: Expected = []
    sequences = {1: 0, 2: 0, 3: 0}
    for n, records in enumerate(record_batches(100)):
        producer = n % 3 + 1
        transactional = producer != 3  # the third is only idempotent
        data = build(records, producer_id=producer, producer_epoch=0, base_sequence=sequences[producer], transactional=transactional)
        guard = log.producers.start_verification(producer, sequences[producer], 0, False, NOW) if transactional else None
        log.append_as_leader(LogAppend(data, NOW + n, verification_guard=guard), 0)
        assert log.append_as_leader(LogAppend(data, NOW + n), 0).duplicate  # a retry is recognised and not written again
        sequences[producer] += len(records)
        expected += shown(records)
        if transactional and n % 2 == 0 and n < 96:
            marker = end_txn_marker(n % 3 != 0, producer, 0, 7, NOW + n)
            log.append_as_leader(LogAppend(marker, NOW + n, origin=COORDINATOR), 0)
    log.close(NOW)
    return expected


def write_and_recover(directory: str) -> Expected:
    """The process dies: half a batch at the end, no index of the last segment, garbage in another."""
    config = SMALL
    log = open_log(directory, config)
    expected: Expected = []
    for n, records in enumerate(record_batches(100)):
        log.append_as_leader(LogAppend(build(records, codec=codec_id(CODECS[n % 5])), NOW + n), 0)
        expected += shown(records)
    last, before = log.segments.active.base_offset, log.segments.first.base_offset
    log.close(NOW)
    torn = build(next(record_batches(1)), base_offset=log.log_end_offset)
    with (Path(directory) / f"{last:020d}.log").open("ab") as file:
        file.write(torn[:-10])
    (Path(directory) / f"{last:020d}.index").unlink()
    (Path(directory) / f"{last:020d}.timeindex").unlink()
    (Path(directory) / f"{before:020d}.timeindex").write_bytes(b"garbage")
    open_log(directory, config).close(NOW)
    return expected


def write_and_truncate(directory: str) -> Expected:
    """Truncated in the middle of a batch, which goes as a whole, and written on by the next leader."""
    log = open_log(directory, SMALL)
    expected: Expected = []
    kept = 0
    for n, records in enumerate(record_batches(100)):
        log.append_as_leader(LogAppend(build(records), NOW + n), 0)
        if n < 60:
            expected += shown(records)
            kept = log.log_end_offset
    log.truncate_to(kept, NOW)
    for n, records in enumerate(record_batches(20)):
        log.append_as_leader(LogAppend(build(records), NOW + n), 1)
        expected += shown(records)
    log.close(NOW)
    return expected


def write_and_compact(directory: str) -> Expected:
    """Cleaned twice, so that the second meets what the first has left; the active segment stays as it is."""
    log = open_log(directory, replace(SMALL, cleanup_policy=frozenset({"compact"})))
    *batches, active = keyed_batches(200)
    cleaned: list[RecordTuple] = []
    dirty = 0
    for n, records in enumerate(batches):
        log.append_as_leader(LogAppend(build(records, codec=codec_id(CODECS[n % 5])), NOW + n), 0)
        cleaned += records
        if n in (len(batches) // 2, len(batches) - 1):
            log.roll(NOW + n)
            dirty = compact(log, dirty)
    log.append_as_leader(LogAppend(build(active), NOW), 0)
    log.close(NOW)
    return shown(last_per_key(cleaned) + active)


def write_and_compact_transactions(directory: str) -> Expected:
    """What was aborted goes with the rest, and does not count as the last value of its key."""
    log = open_log(directory, replace(SMALL, cleanup_policy=frozenset({"compact"})))
    committed: list[RecordTuple] = []
    sequence = 0
    for n, records in enumerate(keyed_batches(150)):
        data = build(records, producer_id=1, producer_epoch=0, base_sequence=sequence, transactional=True)
        guard = log.producers.start_verification(1, sequence, 0, False, NOW)
        log.append_as_leader(LogAppend(data, NOW + n, verification_guard=guard), 0)
        log.append_as_leader(LogAppend(end_txn_marker(n % 3 != 1, 1, 0, 7, NOW + n), NOW + n, origin=COORDINATOR), 0)
        sequence += len(records)
        committed += records if n % 3 != 1 else []
    log.roll(NOW)
    compact(log, 0)
    log.close(NOW)
    return shown(last_per_key(committed))


def compact(log: Log, first_dirty_offset: int) -> int:
    """One cleaning of all that may be cleaned; gives where the next one begins."""
    log.update_high_watermark(log.log_end_offset)
    offsets = offsets_to_clean(log, first_dirty_offset, NOW)
    before = log.size
    cleaning = Cleaning(log, offsets.first_dirty_offset, offsets.first_uncleanable_offset, CleanerConfig(), NOW)
    exhaust(cleaning, NOW)
    assert log.size < before
    assert cleaning.end_offset is not None
    return cleaning.end_offset


# -- records


RecordTuple = tuple[int, bytes | None, bytes | None, list[Header]]


def record_batches(count: int) -> Iterator[list[RecordTuple]]:
    """Batches of one to nine records, with null keys and values, headers, and timestamps that jump back and forth."""
    number = 0
    for n in range(count):
        records: list[RecordTuple] = []
        for _ in range(1 + n * 7 % 9):
            key = None if number % 11 == 0 else f"key-{number % 50}".encode()
            value = None if number % 13 == 0 else f"value-{number} ".encode() + b"abcdefghij" * (number % 40)
            headers: list[Header] = [("source", b"test"), ("empty", b""), ("null", None)] if number % 5 == 0 else []
            records.append((NOW + number * 10 - number % 3 * 25, key, value, headers))
            number += 1
        yield records


def keyed_batches(count: int) -> Iterator[list[RecordTuple]]:
    """The records of `record_batches` that have a key, as compacted topics demand."""
    for records in record_batches(count):
        keyed = [record for record in records if record[1] is not None]
        if keyed:
            yield keyed


def last_per_key(records: list[RecordTuple]) -> list[RecordTuple]:
    """Tombstones stay: delete.retention.ms has only begun to run."""
    last = {key: n for n, (_, key, _, _) in enumerate(records)}
    return [records[n] for n in sorted(last.values())]


def build(
    records: list[RecordTuple],
    *,
    magic: int = 2,
    codec: int = 0,
    base_offset: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    builder = BatchBuilder(
        magic,
        codec,
        base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )
    for timestamp, key, value, headers in records:
        builder.append(timestamp, key, value, headers)
    return builder.build()


def shown(records: list[RecordTuple]) -> Expected:
    return [
        (
            None if key is None else key.decode(),
            None if value is None else value.decode(),
            f"[{','.join(name for name, _ in headers)}]",
        )
        for _, key, value, headers in records
    ]


def open_log(directory: str, config: LogConfig) -> Log:
    """Opened as after a crash, so that all of an existing log is checked."""
    log = load_log(LoadRequest(Files(), directory, TopicPartition("test", 0), config, DirectHost(), NOW))
    if log.topic_id is None:
        log.assign_topic_id(Uuid.from_string("uCAgmDnaQUG9e3dpbYnGiw"))
    return log
