"""The audit of one segment: it finds what is wrong, says where, and finds nothing where nothing is."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from barnabas.storage.disk.files import Files
from barnabas.storage.log.log import Log
from pyspark_barnabas.segments.audit import tasks_of
from pyspark_barnabas.segments.log_dirs import find_partitions
from pyspark_barnabas.segments.segment_audit import DIGEST, DIGEST_MODULUS, FAULT, SEGMENT, Finding, check_segment
from tests import golden
from tests.unit.storage.logs import Producer, append_many, batch, config, file_name, make_log

NAME = "orders-0"
LOG = f"{NAME}/{file_name(0, '.log')}"


def open_log(directory: Path, **options: int) -> Log:
    return make_log(Files(), config(**options), directory=str(directory / NAME))


def written(directory: Path, count: int = 20, **options: int) -> Path:
    """A log that was closed, with an index entry for every batch."""
    log = open_log(directory, index_interval_bytes=1, **options)
    append_many(log, count)
    log.close()
    return directory


def audited(*directories: Path) -> list[Finding]:
    return [row for task in tasks_of(find_partitions(map(str, directories))) for row in check_segment(task)]


def faults(*directories: Path) -> list[Finding]:
    return [row for row in audited(*directories) if row.kind == FAULT]


def damage(path: Path, position: int, content: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[position : position + len(content)] = content
    path.write_bytes(data)


@pytest.mark.parametrize("directory", sorted({path.parent for path in golden.partitions()}), ids=golden.name)
def test_nothing_is_wrong_with_what_kafka_wrote(directory: Path) -> None:
    assert faults(directory) == []


def test_nothing_is_wrong_with_what_we_wrote(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=500, index_interval_bytes=1)
    producer = Producer(log, 7)
    for _ in range(5):
        producer.write(3)
        producer.abort()
        append_many(log, 3)
    log.close()
    rows = audited(tmp_path)
    assert [row for row in rows if row.kind == FAULT] == []
    segments = [row for row in rows if row.kind == SEGMENT]
    assert len(segments) > 2
    assert sum(row.records or 0 for row in segments) == 30
    assert segments[-1].last_offset == 34


def test_a_checksum_that_does_not_fit_is_found_with_its_place(tmp_path: Path) -> None:
    directory = written(tmp_path)
    size = len(batch([b"0"]))
    damage(directory / LOG, 3 * size + 65, b"\xff")
    (fault,) = faults(directory)
    assert (fault.what, fault.offset, fault.position, fault.file) == ("batch", 3, 3 * size, file_name(0, ".log"))
    assert "crc" in (fault.detail or "")


def test_a_header_that_makes_no_sense_is_found(tmp_path: Path) -> None:
    directory = written(tmp_path)
    size = len(batch([b"0"]))
    damage(directory / LOG, 3 * size + 8, b"\xff\xff\xff\xff")
    (first, *rest) = faults(directory)
    assert (first.what, first.position, first.offset) == ("batch", 3 * size, 3)
    assert {fault.what for fault in rest} == {"offset index"}  # it knows batches behind that place


def test_offsets_that_go_back_are_found(tmp_path: Path) -> None:
    directory = written(tmp_path)
    (directory / LOG).write_bytes(batch(offset=0) + batch(offset=5) + batch(offset=4) + batch(offset=6))
    for path in (directory / NAME).glob("*index"):
        path.unlink()
    (fault,) = faults(directory)
    assert (fault.what, fault.offset) == ("offset order", 4)


def test_one_offset_that_is_wrong_is_one_fault(tmp_path: Path) -> None:
    directory = written(tmp_path)
    damage(directory / LOG, len(batch([b"0"])), b"\x01")
    for path in (directory / NAME).glob("*index"):
        path.unlink()
    assert [(fault.what, fault.offset) for fault in faults(directory)] == [("offset order", 2)]


@pytest.mark.parametrize(
    ("kind", "layout", "entry", "what", "detail"),
    [
        (".index", ">ii", (3, 17), "offset index", "where no batch begins"),
        (".index", ">ii", (0, 0), "offset index", "does not rise"),
        (".timeindex", ">qi", (1, 3), "time index", "stands there"),
    ],
)
def test_an_index_that_does_not_tell_the_truth_is_found(
    tmp_path: Path, kind: str, layout: str, entry: tuple[int, int], what: str, detail: str
) -> None:
    directory = written(tmp_path)
    index = directory / NAME / file_name(0, kind)
    size = struct.calcsize(layout)
    position = 2 * size if kind == ".index" else 0
    damage(index, position, struct.pack(layout, *entry))
    problems = faults(directory)
    assert {fault.what for fault in problems} == {what}
    assert any(detail in (fault.detail or "") and fault.file == index.name for fault in problems)


def test_half_an_entry_is_found(tmp_path: Path) -> None:
    directory = written(tmp_path)
    for kind in (".index", ".timeindex"):
        path = directory / NAME / file_name(0, kind)
        path.write_bytes(path.read_bytes() + b"\x01\x02\x03")
    assert sorted(fault.what or "" for fault in faults(directory)) == ["offset index", "time index"]


def test_an_index_filled_up_with_zeros_is_right(tmp_path: Path) -> None:
    directory = written(tmp_path)
    for kind in (".index", ".timeindex"):
        path = directory / NAME / file_name(0, kind)
        path.write_bytes(path.read_bytes() + bytes(24_000))
    assert faults(directory) == []


def test_a_transaction_index_of_another_segment_is_found(tmp_path: Path) -> None:
    directory = written(tmp_path)
    (directory / NAME / file_name(0, ".txnindex")).write_bytes(struct.pack(">hqqqq", 0, 7, 500, 600, 600))
    (fault,) = faults(directory)
    assert (fault.what, fault.offset, fault.last_offset) == ("transaction index", 500, 600)


def with_transactions(directory: Path, **options: int) -> Path:
    """One transaction within a segment that is committed, one that is aborted, and one that is aborted in a later segment."""
    log = open_log(directory, index_interval_bytes=1, **options)
    committed, aborted, long = Producer(log, 1), Producer(log, 2), Producer(log, 3)
    committed.write(2)  # 0, 1
    committed.commit()  # 2
    long.write(2)  # 3, 4
    aborted.write(2)  # 5, 6
    aborted.abort()  # 7
    append_many(log, 10)
    long.abort()  # 18
    log.close()
    return directory


def txn_indexes(directory: Path) -> list[Path]:
    return sorted((directory / NAME).glob("*.txnindex"))


def test_the_aborted_transactions_of_a_log_are_those_of_its_indexes(tmp_path: Path) -> None:
    assert faults(with_transactions(tmp_path / "one")) == []
    assert faults(with_transactions(tmp_path / "many", segment_bytes=500)) == []
    assert len(txn_indexes(tmp_path / "many")) == 2


def test_an_aborted_transaction_that_the_index_forgot_is_found(tmp_path: Path) -> None:
    directory = with_transactions(tmp_path)
    (index,) = txn_indexes(directory)
    index.write_bytes(index.read_bytes()[34:])
    (fault,) = faults(directory)
    assert (fault.what, fault.file, fault.offset, fault.last_offset) == ("transaction index", index.name, 5, 7)
    assert "would be shown" in (fault.detail or "")


def test_an_index_that_is_not_there_at_all_is_found(tmp_path: Path) -> None:
    directory = with_transactions(tmp_path)
    txn_indexes(directory)[0].unlink()
    assert [(fault.what, fault.offset, fault.last_offset) for fault in faults(directory)] == [
        ("transaction index", 5, 7),
        ("transaction index", 3, 18),
    ]


def test_a_transaction_of_an_earlier_segment_that_the_index_forgot_is_found_by_the_snapshot(tmp_path: Path) -> None:
    directory = with_transactions(tmp_path, segment_bytes=500)
    last = txn_indexes(directory)[-1]
    last.write_bytes(b"")
    (fault,) = faults(directory)
    assert (fault.file, fault.offset, fault.last_offset) == (last.name, 3, 18)
    for path in (directory / NAME).glob("*.snapshot"):
        path.unlink()
    assert faults(directory) == []  # nothing proves any more that there was anything to abort


@pytest.mark.parametrize(
    ("entry", "detail"),
    [
        ((2, 4, 7), "but it began at 5"),
        ((9, 5, 7), "no marker that aborts it"),
        ((1, 0, 2), "commits it"),
        ((2, 5, 6), "no marker that aborts it"),
    ],
)
def test_an_entry_that_the_log_does_not_bear_out_is_found(tmp_path: Path, entry: tuple[int, int, int], detail: str) -> None:
    directory = with_transactions(tmp_path)
    (index,) = txn_indexes(directory)
    damage(index, 0, struct.pack(">hqqqq", 0, *entry, 3))
    problems = faults(directory)
    assert detail in (problems[0].detail or "")
    assert (problems[0].position, problems[0].offset, problems[0].last_offset) == (0, *entry[1:])


def test_what_compaction_has_cleaned_is_not_held_against_the_index(tmp_path: Path) -> None:
    directory = with_transactions(tmp_path)
    txn_indexes(directory)[0].unlink()
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 19\n")
    assert faults(directory) == []


def test_a_damaged_snapshot_is_found(tmp_path: Path) -> None:
    directory = written(tmp_path)
    (directory / NAME / file_name(20, ".snapshot")).write_bytes(b"\x00\x01garbage and more")
    assert [fault.what for fault in faults(directory)] == ["producer snapshot"]


def test_a_batch_on_its_way_to_the_disk_is_no_fault_but_one_in_an_old_segment_is(tmp_path: Path) -> None:
    directory = written(tmp_path, segment_bytes=500)
    segments = sorted((directory / NAME).glob("*.log"))
    segments[-1].write_bytes(segments[-1].read_bytes() + batch(offset=20)[:30])
    assert faults(directory) == []
    segments[0].write_bytes(segments[0].read_bytes() + batch(offset=20)[:30])
    assert [(fault.what, fault.file) for fault in faults(directory)] == [("batch", segments[0].name)]


def digests(directory: Path, *others: Path) -> list[tuple[int | None, int | None]]:
    rows = audited(directory, *others)
    return [(row.offset, row.digest) for row in rows if row.kind == DIGEST and row.place.startswith(str(directory))]


def test_replicas_with_the_same_batches_have_the_same_digests_however_they_are_cut_into_segments(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a"), written(tmp_path / "b", segment_bytes=500)
    sums = [sum(digest or 0 for _, digest in digests(directory, one, other)) % DIGEST_MODULUS for directory in (one, other)]
    assert sums[0] == sums[1] != 0


def test_a_replica_that_is_behind_is_compared_as_far_as_it_is(tmp_path: Path) -> None:
    one, behind = written(tmp_path / "a"), written(tmp_path / "b", count=11)
    assert digests(one, one, behind) == digests(behind, one, behind)


def test_a_single_replica_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    assert digests(written(tmp_path)) == []
