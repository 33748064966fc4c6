"""The same input gives the same files: what Kafka's producers and coordinators sent to Kafka is appended here, and every file of the
directory is compared byte for byte with the one Kafka wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.records.batch import Batch, read_batches
from barnabas.records.builder import BatchBuilder
from barnabas.records.codecs.compression import codec_id
from barnabas.records.reader import read_records
from barnabas.records.validation.validator import CLIENT, COORDINATOR
from barnabas.storage.directory.checkpoints import LOG_START_OFFSET_CHECKPOINT
from barnabas.storage.disk.files import Files
from barnabas.storage.log.append import LogAppend
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.storage.producers.state import ProducerStateConfig
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests import golden

FIRST = golden.LOGS / "kafka-4.2.0" / "first"
BEFORE = golden.LOGS / "kafka-4.2.0" / "before"
SECOND = golden.LOGS / "kafka-4.2.0" / "second"
NOW = 1_794_775_580_000  # when the golden logs were written: the clock the segments without timestamps go by
T0 = 1_700_000_000_000

CONFIGS = {
    "g-multi": {"segment.ms": "10000", "index.interval.bytes": "300"},
    "g-compact": {"cleanup.policy": "compact", "segment.ms": "5000", "index.interval.bytes": "200"},
    "g-compact-txn": {"cleanup.policy": "compact", "segment.ms": "5000", "message.timestamp.after.max.ms": "9223372036854775807"},
    "g-uncompress": {"compression.type": "uncompressed"},
    "__consumer_offsets": {"cleanup.policy": "compact", "segment.bytes": "104857600"},
    "__transaction_state": {"cleanup.policy": "compact", "segment.bytes": "104857600"},
}

# Left out: logs that Kafka has cleaned (their input is in BEFORE), and those whose input cannot be told from what was stored.
REPLAYED = [
    *(FIRST / f"{name}-0" for name in ("g-none", "g-gzip", "g-snappy", "g-lz4", "g-zstd", "g-idem", "g-multi", "g-txn")),
    *(FIRST / f"{name}-0" for name in ("g-uncompress", "__consumer_offsets", "__transaction_state")),
    *(BEFORE / f"{name}-0" for name in ("g-compact", "g-compact-txn")),
]


@pytest.mark.parametrize("directory", REPLAYED, ids=golden.name)
def test_what_kafka_was_sent_gives_the_files_kafka_wrote(directory: Path, tmp_path: Path) -> None:
    with_log(tmp_path, directory, lambda log: replay(log, directory))
    assert_same_files(tmp_path / directory.name, directory)


def test_batches_built_here_give_the_files_of_kafkas_own_producer(tmp_path: Path) -> None:
    with_log(tmp_path, FIRST / "g-none-0", lambda log: append_all(log, standard()))
    assert_same_files(tmp_path / "g-none-0", FIRST / "g-none-0")


def test_many_segments_roll_at_the_same_offsets_with_the_same_indexes(tmp_path: Path) -> None:
    def batches() -> Iterator[bytes]:
        for k in range(60):
            yield built([(T0 + k * 1000 + i * 37 % 11, f"key-{i}", text(i + k)) for i in range(4)])

    with_log(tmp_path, FIRST / "g-multi-0", lambda log: append_all(log, batches()))
    assert_same_files(tmp_path / "g-multi-0", FIRST / "g-multi-0")


def test_two_idempotent_producers_leave_the_same_snapshot(tmp_path: Path) -> None:
    def batches() -> Iterator[bytes]:
        for n in range(2):
            sequence = 0
            for k in range(4):
                records = [(T0 + n * 1000 + k * 100 + i, f"k{i}", text(k)) for i in range(k + 1)]
                yield built(records, producer_id=n, producer_epoch=0, base_sequence=sequence)
                sequence += k + 1

    with_log(tmp_path, FIRST / "g-idem-0", lambda log: append_all(log, batches()))
    assert_same_files(tmp_path / "g-idem-0", FIRST / "g-idem-0")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_the_same_apart_from_the_codec_librarys_choices(codec: str, tmp_path: Path) -> None:
    directory = FIRST / f"g-{codec}-0"
    with_log(tmp_path, directory, lambda log: append_all(log, standard(codec=codec_id(codec))))
    ours = (tmp_path / directory.name / "00000000000000000000.log").read_bytes()
    theirs = (directory / "00000000000000000000.log").read_bytes()
    assert [fields(ours, batch) for batch in read_batches(ours)] == [fields(theirs, batch) for batch in read_batches(theirs)]


def test_recompression_by_the_broker_stores_the_same_records(tmp_path: Path) -> None:
    directory = FIRST / "g-recompress-0"
    with_log(tmp_path, directory, lambda log: append_all(log, standard()), {"compression.type": "gzip"})
    ours = (tmp_path / directory.name / "00000000000000000000.log").read_bytes()
    theirs = (directory / "00000000000000000000.log").read_bytes()
    assert [fields(ours, batch) for batch in read_batches(ours)] == [fields(theirs, batch) for batch in read_batches(theirs)]


def test_a_log_goes_on_after_a_restart_in_another_leader_epoch(tmp_path: Path) -> None:
    """second/ is first/ after a restart of the broker and two more rounds of records."""
    epoch = int((SECOND / "g-none-0" / "leader-epoch-checkpoint").read_text().splitlines()[-1].split()[0])
    with_log(tmp_path, FIRST / "g-none-0", lambda log: append_all(log, standard()))
    with_log(tmp_path, FIRST / "g-none-0", lambda log: append_all(log, [*standard(), *standard()], epoch))
    assert_same_files(tmp_path / "g-none-0", SECOND / "g-none-0")


def test_deleting_records_leaves_the_same_files_and_log_start_offset_checkpoint(tmp_path: Path) -> None:
    def append_and_delete(log: Log) -> None:
        append_all(log, standard())
        log.update_high_watermark(log.log_end_offset)
        log.increment_log_start_offset(11, "client delete records request")

    with_log(tmp_path, FIRST / "g-delrec-0", append_and_delete)
    assert_same_files(tmp_path / "g-delrec-0", FIRST / "g-delrec-0")
    assert (tmp_path / LOG_START_OFFSET_CHECKPOINT).read_bytes() == (FIRST / LOG_START_OFFSET_CHECKPOINT).read_bytes()


# -- the input


def standard(codec: int = 0) -> list[bytes]:
    """Three batches: ten keyed records, one of nothing but nulls, five with headers and falling timestamps."""
    headers = [[("name", b"x%d" % i), ("empty", b""), ("null", None)] for i in range(5)]
    return [
        built([(T0 + i * 10, f"key-{i}", text(i)) for i in range(10)], codec=codec),
        built([(T0 + 1000, None, None)], codec=codec),
        built([(T0 + 2000 - i, f"h{i}", text(i)) for i in range(5)], headers, codec=codec),
    ]


def text(i: int) -> str:
    return f"value-{i}-" + "abcdefghij" * (i % 7)


def built(
    records: Sequence[tuple[int, str | None, str | None]], headers: list[list[tuple[str, bytes | None]]] | None = None, **producer: Any
) -> bytes:
    builder = BatchBuilder(**producer)
    for number, (timestamp, key, value) in enumerate(records):
        builder.append(timestamp, encoded(key), encoded(value), headers[number] if headers else ())
    return builder.build()


def encoded(text_or_null: str | None) -> bytes | None:
    return None if text_or_null is None else text_or_null.encode()


def replay(log: Log, directory: Path) -> None:
    """Sends every batch as its producer did: from offset 0, without a leader epoch. Neither is covered by the checksum."""
    for path in sorted(directory.glob("*.log")):
        data = path.read_bytes()
        for batch in read_batches(data):
            sent = bytes(8) + data[batch.at + 8 : batch.at + 12] + b"\xff\xff\xff\xff" + data[batch.at + 16 : batch.end]
            origin = COORDINATOR if batch.is_control or directory.name.startswith("__") else CLIENT
            info = log.append_as_leader(LogAppend(sent, max(NOW, T0), origin=origin), 0)
            assert info.first_offset == batch.base_offset
    assert list(log.segments.base_offsets) == sorted(int(path.stem) for path in directory.glob("*.log"))


# -- the log


def with_log(tmp_path: Path, like: Path, action: object, config: dict[str, str] | None = None) -> None:
    """Opens the log, lets the action append to it, and shuts down cleanly, as Kafka was."""
    topic = like.name.removesuffix("-0")
    manager = LogManager(
        Files(),
        [str(tmp_path)],
        LogConfig(),
        LogManagerConfig(producers=ProducerStateConfig(producer_id_expiration_ms=2**62, transaction_verification_enabled=False)),
        topic_configs={topic: LogConfig.from_properties(config or CONFIGS.get(topic, {}))},
    )
    manager.load(NOW)
    topic_id = Uuid.from_string((like / "partition.metadata").read_text().split()[-1])
    log = manager.get_or_create(TopicPartition(topic, 0), NOW, topic_id=topic_id)
    assert callable(action)
    action(log)
    manager.shutdown(NOW)


def append_all(log: Log, batches: list[bytes] | Iterator[bytes], leader_epoch: int = 0) -> None:
    for batch in batches:
        log.append_as_leader(LogAppend(batch, NOW), leader_epoch)


def assert_same_files(ours: Path, theirs: Path) -> None:
    assert sorted(path.name for path in ours.iterdir()) == sorted(path.name for path in theirs.iterdir() if path.name != "DUMP.txt")
    for path in ours.iterdir():
        assert path.read_bytes() == (theirs / path.name).read_bytes(), f"{path.name} differs from {theirs}"


def fields(data: bytes, batch: Batch) -> tuple[object, ...]:
    """Everything in a batch but its size, checksum and compressed body."""
    records = [(r.offset, r.timestamp, r.key, r.value, r.headers, r.sequence) for r in read_records(data, batch)]
    return (batch.base_offset, batch.last_offset, batch.leader_epoch, batch.attributes, batch.base_timestamp, batch.max_timestamp, records)
