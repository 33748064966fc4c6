from __future__ import annotations

import random
from pathlib import Path

import pytest

from barnabas.errors import CorruptCheckpoint, SegmentOffsetOverflow
from barnabas.records.batch import read_batches
from barnabas.simulation.disk import SimulatedCrash, SimulatedFiles
from barnabas.storage.disk.files import Files
from barnabas.storage.host import DirectHost
from barnabas.storage.indexes.txn_index import AbortedTxn
from barnabas.storage.leader_epochs import EpochEntry
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.surgery import new_cleaned_segment, replace_segments, split_overflowed
from tests.unit.storage.logs import (
    DIRECTORY,
    NOW,
    PARTITION,
    Producer,
    RecordingHost,
    append,
    append_many,
    batch,
    commit_all,
    config,
    file_name,
    flip,
    index_entries,
    make_log,
    make_segment,
    names_in,
    path,
    produced,
    records,
    restarted,
    time_entries,
    values,
    watch,
    write_file,
)

SETTINGS = config(segment_bytes=300, index_interval_bytes=0)
TEN = [b"%d" % n for n in range(10)]


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


def fill(disk: SimulatedFiles, *, clean: bool = True, count: int = 10) -> SimulatedFiles:
    """So many records of a batch each, in segments of three, left by a process that has gone."""
    log = make_log(disk, SETTINGS)
    append_to(log, count)
    if clean:
        log.close(NOW)
    return restarted(disk)


def append_to(log: Log, count: int) -> None:
    for _ in range(count):
        append(log, batch([b"%d" % log.log_end_offset], size=100))


def load(disk: SimulatedFiles, **request: object) -> Log:
    return make_log(disk, SETTINGS, **request)  # type: ignore[arg-type]


def stripped(log: Log) -> list[bytes]:
    return [(value or b"").rstrip(b".") for value in values(log)]


# -- an ordinary start


def test_a_directory_that_does_not_exist_becomes_an_empty_log(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, log.recovery_point) == (0, 0, 0, 0)
    assert names_in(disk) == [file_name(0, suffix) for suffix in (".index", ".log", ".timeindex")]


def test_an_empty_log_begins_at_its_log_start_offset(disk: SimulatedFiles) -> None:
    log = make_log(disk, log_start_offset=77)
    assert log.segments.base_offsets == [77] and log.log_end_offset == 77


def test_a_closed_log_is_as_it_was(disk: SimulatedFiles) -> None:
    log = load(fill(disk), clean=True)
    assert stripped(log) == TEN
    assert log.segments.base_offsets == [0, 3, 6, 9]
    append_to(log, 1)
    assert log.log_end_offset == 11


def test_after_a_clean_shutdown_no_record_is_read_but_the_last(disk: SimulatedFiles) -> None:
    files = fill(disk)
    read = watch(files, "read", ".log")
    load(files, clean=True)
    assert {event.path for event in read} <= {path(9, ".log")}


def test_after_a_clean_shutdown_everything_counts_as_flushed(disk: SimulatedFiles) -> None:
    assert load(fill(disk), clean=True).recovery_point == 10


def test_after_a_crash_the_recovery_point_stays_until_the_next_flush(disk: SimulatedFiles) -> None:
    """What was read back from the page cache may still not be on disk."""
    log = load(fill(disk, clean=False), recovery_point=4)
    assert log.recovery_point == 4 and log.log_end_offset == 10


def test_a_recovery_point_past_the_end_is_lowered(disk: SimulatedFiles) -> None:
    assert load(fill(disk, clean=False), recovery_point=99).recovery_point == 10


def test_segments_below_the_recovery_point_are_not_read(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    read = watch(files, "read", ".log")
    load(files, recovery_point=7)
    assert {event.path for event in read} == {path(6, ".log"), path(9, ".log")}


def test_the_segment_that_holds_the_recovery_point_is_recovered_from_its_beginning(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    flip(files, path(6, ".log"), 199)
    assert load(files, recovery_point=8).log_end_offset == 7


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_loaded_with_and_without_recovery_is_the_same(disk: SimulatedFiles, clean: bool) -> None:
    log = load(fill(disk), clean=clean)
    assert stripped(log) == TEN
    assert [index_entries(segment) for segment in log.segments][:2] == [[(1, 100), (2, 200)], [(4, 100), (5, 200)]]


def test_a_log_without_the_marker_is_recovered_with_the_same_files(disk: SimulatedFiles) -> None:
    files = fill(disk)
    before = {name: files.read_bytes(f"{DIRECTORY}/{name}") for name in names_in(files)}
    load(files)
    assert {name: files.read_bytes(f"{DIRECTORY}/{name}") for name in names_in(files)} == before


def test_loading_a_log_twice_changes_nothing_the_second_time(disk: SimulatedFiles) -> None:
    files = restarted(fill(disk, clean=False))
    load(files)
    before = {name: files.read_bytes(f"{DIRECTORY}/{name}") for name in names_in(files)}
    load(restarted(files))
    assert {name: files.read_bytes(f"{DIRECTORY}/{name}") for name in names_in(files)} == before


# -- damage


def test_a_torn_tail_is_cut_and_appending_goes_on(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    file = files.open(path(9, ".log"))
    file.append_bytes(batch(offset=10)[:50])
    file.close()
    log = load(files)
    assert stripped(log) == TEN
    append_to(log, 1)
    assert stripped(log)[-1] == b"10"


def test_damage_in_an_earlier_segment_takes_all_later_segments_along(disk: SimulatedFiles) -> None:
    files, host = fill(disk, clean=False), RecordingHost()
    flip(files, path(3, ".log"), 199)
    log = load(files, host=host)
    assert stripped(log) == TEN[:4]
    assert log.segments.base_offsets == [0, 3]
    assert file_name(6, ".log.deleted") in names_in(files) and file_name(6, ".log") not in names_in(files)
    host.delete_due(60_000)
    assert not [name for name in names_in(files) if name.endswith(".deleted")]
    append_to(log, 5)
    assert log.log_end_offset == 9


def test_damage_below_the_recovery_point_is_left_alone(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    flip(files, path(0, ".log"), 199)
    assert load(files, recovery_point=9).log_end_offset == 10


def test_damage_to_the_first_batch_leaves_an_empty_segment(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    flip(files, path(0, ".log"), 99)
    log = load(files)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    append_to(log, 2)
    assert stripped(log) == [b"0", b"1"]


def test_a_batch_with_the_offsets_of_another_segment_is_damage(disk: SimulatedFiles) -> None:
    """The base offset is not under the checksum."""
    files = fill(disk, clean=False)
    flip(files, path(3, ".log"), 200 + 6, 0x01)  # offset 5 becomes 261
    log = load(files)
    assert stripped(log) == TEN[:5]


def test_a_crash_while_later_segments_are_deleted_leaves_no_hole(disk: SimulatedFiles) -> None:
    for number in range(1, 80):
        files = fill(SimulatedFiles(), clean=False)
        flip(files, path(0, ".log"), 299)
        files.halt_at(files.events + number)
        try:
            load(files, holes_are_losses=True)
        except SimulatedCrash:
            pass
        found = [o for o, _ in records(load(restarted(files), holes_are_losses=True))]
        assert found == [0, 1]


def test_a_log_that_ends_before_its_log_start_is_emptied(disk: SimulatedFiles) -> None:
    files, host = fill(disk), RecordingHost()
    log = load(files, clean=True, log_start_offset=40, host=host)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (40, 40, 40)
    assert log.segments.base_offsets == [40]
    assert log.epochs.entries == [] and log.producers.active_producers == {}
    assert log.recovery_point <= 40
    host.delete_due(2**62)
    assert [name for name in names_in(files) if name.endswith(".log")] == [file_name(40, ".log")]
    assert append(log).first_offset == 40


def test_a_log_that_ends_at_its_log_start_is_kept(disk: SimulatedFiles) -> None:
    log = load(fill(disk), clean=True, log_start_offset=10)
    assert log.segments.base_offsets == [0, 3, 6, 9] and log.log_end_offset == 10


@pytest.mark.parametrize("tail", [b"torn", b"\0" * 100, b"\xff" * 100, batch(offset=10)[:-1]])
def test_a_tail_that_came_after_a_clean_shutdown_is_cut_before_anything_is_appended_to_it(disk: SimulatedFiles, tail: bytes) -> None:
    files = fill(disk)
    write_file(files, path(9, ".log"), files.read_bytes(path(9, ".log")) + tail)
    log = load(files, clean=True)
    append_to(log, 3)
    assert stripped(log) == [*TEN, b"10", b"11", b"12"]
    log.close(NOW)
    assert stripped(load(restarted(files))) == [*TEN, b"10", b"11", b"12"]


# -- indexes


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_index_is_rebuilt(disk: SimulatedFiles, suffix: str, clean: bool) -> None:
    files = fill(disk)
    before = files.read_bytes(path(3, suffix))
    files.remove(path(3, suffix))
    log = load(files, clean=clean, recovery_point=10)
    assert stripped(log) == TEN
    log.close(NOW)
    assert files.read_bytes(path(3, suffix)) == before


def test_all_indexes_may_be_missing(disk: SimulatedFiles) -> None:
    files = fill(disk)
    for name in names_in(files):
        if name.endswith("index"):
            files.remove(f"{DIRECTORY}/{name}")
    log = load(files, clean=True)
    assert stripped(log) == TEN
    assert [index_entries(segment) for segment in log.segments] == [[(n + 1, 100), (n + 2, 200)] for n in (0, 3, 6)] + [[]]
    assert [time_entries(segment)[-1][0] for segment in log.segments] == [NOW] * 4


def test_an_orphaned_index_is_removed(disk: SimulatedFiles) -> None:
    files = fill(disk)
    for suffix in (".index", ".timeindex", ".txnindex"):
        write_file(files, path(50, suffix), b"orphaned")
    log = load(files, clean=True)
    assert log.segments.base_offsets == [0, 3, 6, 9]
    assert not [name for name in names_in(files) if name.startswith(file_name(50, ""))]


@pytest.mark.parametrize("content", [b"torn", AbortedTxn(1, 0, 1, 2).encode() + b"x", b"\x7f" * 34, AbortedTxn(1, 0, 0, 0).encode()])
def test_a_corrupt_transaction_index_is_rebuilt(disk: SimulatedFiles, content: bytes) -> None:
    log = make_log(disk, SETTINGS)
    append_to(log, 2)
    producer = Producer(log, 7)
    producer.write()
    log.roll(NOW)
    producer.abort()
    log.roll(NOW)
    append(log)
    log.close(NOW)
    files = restarted(disk)
    write_file(files, path(3, ".txnindex"), content)
    assert load(files, clean=True).collect_aborted(0, 10) == [AbortedTxn(7, 2, 3, 4)]


def test_a_missing_index_of_a_segment_with_a_transaction_that_began_before_it_is_rebuilt(disk: SimulatedFiles) -> None:
    log = make_log(disk, SETTINGS)
    producer = Producer(log, 7)
    producer.write()
    log.roll(NOW)
    producer.abort()
    log.roll(NOW)
    append(log)
    log.close(NOW)
    files = restarted(disk)
    files.remove(path(1, ".index"))
    files.remove(path(1, ".txnindex"))
    assert load(files, clean=True).collect_aborted(0, 10) == [AbortedTxn(7, 0, 1, 2)]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("content", [b"", b"\xff" * 120, random.Random(5).randbytes(240), b"seven b"])
def test_a_garbage_index_is_healed_although_the_shutdown_was_clean(disk: SimulatedFiles, suffix: str, content: bytes) -> None:
    files = fill(disk)
    for base in (0, 3, 6, 9):
        write_file(files, path(base, suffix), content)
    log = load(files, clean=True)
    assert stripped(log) == TEN
    assert log.log_end_offset == 10
    append_to(log, 5)
    assert [o for o, _ in records(log)] == list(range(15))


def test_indexes_that_kafka_filled_up_with_zeros_are_trimmed(disk: SimulatedFiles) -> None:
    files = fill(disk)
    before = files.read_bytes(path(9, ".timeindex"))
    write_file(files, path(9, ".index"), bytes(10_485_760))
    write_file(files, path(9, ".timeindex"), before + bytes(10_485_756 - len(before)))
    log = load(files, clean=True)
    append_to(log, 1)
    log.close(NOW)
    assert stripped(load(restarted(files), clean=True)) == [*TEN, b"10"]
    assert files.size(path(9, ".timeindex")) < 100


# -- what compaction and splitting leave


def compacted(disk: SimulatedFiles) -> tuple[SimulatedFiles, bytes]:
    """A log of four segments, and the bytes of a segment that shall replace the first two."""
    files = fill(disk)
    data = b"".join(batch([b"%d" % n], offset=n, size=100) for n in (1, 4, 5))
    return files, data


def put_segment(files: SimulatedFiles, base_offset: int, suffix: str, data: bytes) -> None:
    write_file(files, path(base_offset, ".log" + suffix), data)
    write_file(files, path(base_offset, ".index" + suffix))
    write_file(files, path(base_offset, ".timeindex" + suffix))


def test_files_to_be_deleted_are_deleted(disk: SimulatedFiles) -> None:
    files = fill(disk)
    put_segment(files, 70, ".deleted", b"anything")
    write_file(files, path(70, ".snapshot.deleted"))
    assert stripped(load(files, clean=True)) == TEN
    assert not [name for name in names_in(files) if name.endswith(".deleted")]


def test_a_cleaning_that_did_not_come_to_its_end_is_thrown_away(disk: SimulatedFiles) -> None:
    files, data = compacted(disk)
    put_segment(files, 0, ".cleaned", data)
    assert stripped(load(files, clean=True)) == TEN
    assert not [name for name in names_in(files) if name.endswith(".cleaned")]


def test_a_swap_replaces_the_segments_it_was_made_from(disk: SimulatedFiles) -> None:
    """Interrupted right after the .swap files were complete: the originals are all still there."""
    files, data = compacted(disk)
    put_segment(files, 0, ".swap", data)
    log = load(files, clean=True)
    assert log.segments.base_offsets == [0, 6, 9]
    assert stripped(log) == [b"1", b"4", b"5", b"6", b"7", b"8", b"9"]
    assert not [name for name in names_in(files) if name.endswith(".swap")]


def test_a_swap_replaces_originals_that_are_already_gone(disk: SimulatedFiles) -> None:
    files, data = compacted(disk)
    put_segment(files, 0, ".swap", data)
    for suffix in (".log", ".index", ".timeindex"):
        files.rename(path(0, suffix), path(0, suffix + ".deleted"))
    files.remove(path(3, ".log"))
    assert stripped(load(files, clean=True)) == [b"1", b"4", b"5", b"6", b"7", b"8", b"9"]


def test_a_swap_whose_log_was_renamed_already_keeps_its_indexes(disk: SimulatedFiles) -> None:
    files = fill(disk)
    for suffix in (".index", ".timeindex"):
        files.rename(path(3, suffix), path(3, suffix + ".swap"))
    log = load(files, clean=True)
    assert stripped(log) == TEN
    assert index_entries(log.segments.floor(3)) == [(4, 100), (5, 200)]  # type: ignore[arg-type]


def test_swaps_from_the_first_cleaned_file_on_belong_to_a_split_that_never_became_complete(disk: SimulatedFiles) -> None:
    files = fill(disk)
    put_segment(files, 3, ".cleaned", batch([b"x"], offset=3))
    put_segment(files, 4, ".swap", batch([b"y"], offset=4))
    put_segment(files, 5, ".swap", batch([b"z"], offset=5))
    assert stripped(load(files, clean=True)) == TEN
    assert not [name for name in names_in(files) if name.endswith((".cleaned", ".swap"))]


def test_a_swap_with_a_cleaned_file_of_the_same_offset_is_incomplete(disk: SimulatedFiles) -> None:
    files, data = compacted(disk)
    write_file(files, path(0, ".log.swap"), data)
    write_file(files, path(0, ".index.cleaned"))
    write_file(files, path(0, ".timeindex.cleaned"))
    assert stripped(load(files, clean=True)) == TEN


def test_a_swap_below_every_cleaned_file_is_complete(disk: SimulatedFiles) -> None:
    files, data = compacted(disk)
    put_segment(files, 0, ".swap", data)
    put_segment(files, 6, ".cleaned", batch([b"x"], offset=6))
    log = load(files, clean=True)
    assert stripped(log) == [b"1", b"4", b"5", b"6", b"7", b"8", b"9"]
    assert not [name for name in names_in(files) if name.endswith(".cleaned")]


def test_invalid_swaps_go_before_the_cleaned_files_that_tell_they_are_invalid(disk: SimulatedFiles) -> None:
    """A crash in between must not make an incomplete set look complete."""
    for number in range(1, 40):
        files = fill(SimulatedFiles())
        put_segment(files, 3, ".cleaned", batch([b"x"], offset=3))
        put_segment(files, 4, ".swap", batch([b"y"], offset=4))
        put_segment(files, 5, ".swap", batch([b"z"], offset=5))
        files.halt_at(files.events + number)
        try:
            load(files, clean=True)
        except SimulatedCrash:
            pass
        assert stripped(load(restarted(files))) == TEN


def replace_first_two(files: SimulatedFiles, log: Log) -> None:
    """As the cleaner does it."""
    old = list(log.segments)[:2]
    cleaned = new_cleaned_segment(files, DIRECTORY, 0, SETTINGS, NOW)
    for n in (1, 4, 5):
        data = batch([b"%d" % n], offset=n, size=100)
        cleaned.append([data], read_batches(data))
    cleaned.close_indexes()
    cleaned.flush()
    files.sync_dir(DIRECTORY)
    replace_segments(log.segments, [cleaned], old, DIRECTORY, files, log.host, NOW)


@pytest.mark.parametrize("machine", [False, True])
def test_a_crash_at_any_moment_of_a_replacement_leaves_the_old_or_the_new_segments(machine: bool) -> None:
    outcomes = set()
    for number in range(1, 90):
        files = fill(SimulatedFiles())
        log = load(files, clean=True)
        log.flush(NOW)
        files.sync_dir(DIRECTORY)
        files.halt_at(files.events + number)
        try:
            replace_first_two(files, log)
        except SimulatedCrash:
            pass
        survivor = files.crash(random.Random(number)) if machine else restarted(files)
        again = load(survivor, recovery_point=10)
        outcomes.add(tuple(stripped(again)))
        append_to(again, 1)
        assert stripped(again)[-1] == b"10"
    assert outcomes == {tuple(TEN), (b"1", b"4", b"5", b"6", b"7", b"8", b"9")}


@pytest.mark.parametrize("number", range(1, 40))
def test_a_crash_while_a_swap_is_finished_is_continued_by_the_next_start(number: int) -> None:
    files, data = compacted(SimulatedFiles())
    put_segment(files, 0, ".swap", data)
    files.halt_at(files.events + number)
    try:
        load(files, clean=True)
    except SimulatedCrash:
        pass
    log = load(restarted(files), recovery_point=10)
    assert stripped(log) == [b"1", b"4", b"5", b"6", b"7", b"8", b"9"]
    assert not [name for name in names_in(log.files) if name.endswith(".swap")]


def test_a_replaced_segment_goes_on_being_readable_under_its_new_name(disk: SimulatedFiles) -> None:
    files = fill(disk)
    log = load(files, clean=True)
    replace_first_two(files, log)
    assert stripped(log) == [b"1", b"4", b"5", b"6", b"7", b"8", b"9"]
    log.close(NOW)
    assert stripped(load(restarted(files), clean=True)) == [b"1", b"4", b"5", b"6", b"7", b"8", b"9"]


# -- segments whose offsets are out of reach


FAR = 2**31 + 10
COMPACTED = config(segment_bytes=300, index_interval_bytes=0, cleanup_policy=frozenset({"compact"}))


def load_compacted(disk: SimulatedFiles, **request: object) -> Log:
    return make_log(disk, COMPACTED, **request)  # type: ignore[arg-type]


def overflowed(disk: SimulatedFiles, tail: bytes = b"") -> SimulatedFiles:
    """A segment at 3 that holds offsets no relative offset can express, as an old cleaner could make it, between two others."""
    files = fill(disk, count=3)
    parts = [batch([b"%d" % n], offset=n, size=100) for n in (3, 4, FAR, FAR + 1, 2 * FAR)]
    put_segment(files, 3, "", b"".join(parts) + tail)
    return files


def test_an_overflowed_segment_is_split(disk: SimulatedFiles) -> None:
    files = overflowed(disk)
    log = load_compacted(files)
    assert log.segments.base_offsets == [0, 3, FAR, 2 * FAR]
    assert [o for o, _ in records(log)] == [0, 1, 2, 3, 4, FAR, FAR + 1, 2 * FAR]
    assert not any(segment.has_overflow for segment in log.segments)
    assert log.log_end_offset == 2 * FAR + 1


def test_an_overflowed_segment_without_an_index_is_split_after_a_clean_shutdown(disk: SimulatedFiles) -> None:
    files = overflowed(disk)
    files.remove(path(3, ".index"))
    log = load_compacted(files, clean=True)
    assert log.segments.base_offsets == [0, 3, FAR, 2 * FAR]
    assert len(records(log)) == 8


def test_a_split_survives_a_restart(disk: SimulatedFiles) -> None:
    files = overflowed(disk)
    host = RecordingHost()
    load_compacted(files, host=host).close(NOW)
    host.delete_due(2**62)
    again = load_compacted(restarted(files), clean=True)
    assert again.segments.base_offsets == [0, 3, FAR, 2 * FAR]
    assert len(records(again)) == 8


def test_a_split_happens_also_with_a_host_that_deletes_at_once(disk: SimulatedFiles) -> None:
    files = overflowed(disk)
    files.remove(path(3, ".index"))
    log = load_log(LoadRequest(files, DIRECTORY, PARTITION, COMPACTED, DirectHost(), NOW, clean_shutdown=True))
    assert log.segments.base_offsets == [0, 3, FAR, 2 * FAR]


def test_an_overflowed_segment_with_a_torn_tail_is_split_and_cut(disk: SimulatedFiles) -> None:
    log = load_compacted(overflowed(disk, tail=batch(offset=2 * FAR + 1)[:40]))
    assert [o for o, _ in records(log)] == [0, 1, 2, 3, 4, FAR, FAR + 1, 2 * FAR]


def test_an_overflowed_segment_whose_offsets_fall_back_is_cut_there(disk: SimulatedFiles) -> None:
    log = load_compacted(overflowed(disk, tail=batch(offset=7) + batch(offset=8)))
    assert [o for o, _ in records(log)] == [0, 1, 2, 3, 4, FAR, FAR + 1, 2 * FAR]


@pytest.mark.parametrize("machine", [False, True])
def test_a_crash_at_any_moment_of_a_split_loses_nothing(machine: bool) -> None:
    for number in range(1, 160, 2):
        files = overflowed(SimulatedFiles())
        for name in names_in(files):
            files.sync_file(f"{DIRECTORY}/{name}")
        files.sync_dir(DIRECTORY)
        files.halt_at(files.events + number)
        try:
            load_compacted(files)
        except SimulatedCrash:
            pass
        survivor = files.crash(random.Random(number)) if machine else restarted(files)
        log = load_compacted(survivor)
        assert [o for o, _ in records(log)] == [0, 1, 2, 3, 4, FAR, FAR + 1, 2 * FAR]


def test_a_segment_of_old_formats_is_split_where_its_wrappers_begin(disk: SimulatedFiles) -> None:
    segment = make_segment(disk)
    for offset in (0, FAR):
        segment.file.append_bytes(batch(3, magic=1, codec=1, offset=offset))
    parts = split_overflowed(segment, DIRECTORY, disk, SETTINGS, NOW)
    assert [part.base_offset for part in parts] == [0, FAR]


def test_a_segment_that_cannot_be_written_to_far_offsets_says_so(disk: SimulatedFiles) -> None:
    with pytest.raises(SegmentOffsetOverflow):
        data = batch(offset=FAR)
        make_segment(disk).append([data], read_batches(data))


# -- the producers


def test_the_producers_come_from_the_snapshot_of_a_clean_shutdown(disk: SimulatedFiles) -> None:
    log = make_log(disk, SETTINGS)
    for sequence in range(5):
        append(log, produced(7, sequence, size=100))
    log.close(NOW)
    files = restarted(disk)
    again = load(files, clean=True)
    entry = again.producers.last_entry(7)
    assert entry is not None and entry.last_sequence == 4 and again.producers.map_end_offset == 5


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [b"", b"garbage", b"\0" * 56])
def test_corrupt_snapshots_are_replaced_by_reading_the_log(disk: SimulatedFiles, content: bytes, clean: bool) -> None:
    log = make_log(disk, SETTINGS)
    for sequence in range(8):
        append(log, produced(7, sequence, size=100))
    log.close(NOW)
    files = restarted(disk)
    for name in names_in(files):
        if name.endswith(".snapshot"):
            write_file(files, f"{DIRECTORY}/{name}", content)
    again = load(files, clean=clean)
    entry = again.producers.last_entry(7)
    assert entry is not None and entry.last_sequence == 7
    assert len(records(again)) == 8


def test_missing_snapshots_after_a_crash_are_made_up_for_by_reading_the_log(disk: SimulatedFiles) -> None:
    log = make_log(disk, SETTINGS)
    for sequence in range(8):
        append(log, produced(7, sequence, size=100))
    files = restarted(disk)
    for name in names_in(files):
        if name.endswith(".snapshot"):
            files.remove(f"{DIRECTORY}/{name}")
    entry = load(files, recovery_point=8).producers.last_entry(7)
    assert entry is not None and entry.last_sequence == 7


def test_snapshots_that_belong_to_no_segment_are_removed(disk: SimulatedFiles) -> None:
    files = fill(disk)
    good = files.read_bytes(path(10, ".snapshot"))
    for offset in (1, 4, 5):
        write_file(files, path(offset, ".snapshot"), good)
    load(files, clean=True)
    assert [name for name in names_in(files) if name.endswith(".snapshot")] == [file_name(n, ".snapshot") for n in (3, 6, 9, 10)]


def test_an_expired_producer_is_forgotten_when_it_is_loaded(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    append(log, produced(7, 0))
    log.close(NOW)
    assert make_log(restarted(disk), clean=True, now_ms=NOW + 2 * 86_400_000).producers.active_producers == {}


def test_a_log_recovered_with_a_log_start_inside_a_transaction_is_sound(disk: SimulatedFiles) -> None:
    log = make_log(disk, SETTINGS)
    producer = Producer(log, 7)
    producer.write(2, size=100)
    producer.write(2, size=100)
    producer.abort()
    append_to(log, 2)
    again = load(restarted(disk), log_start_offset=3)
    commit_all(again)
    assert again.last_stable_offset == 7


# -- leader epochs and the topic id


def test_epochs_past_the_end_are_forgotten(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    append(log, epoch=1)
    log.epochs.assign(5, 9)
    assert make_log(restarted(disk)).epochs.entries == [EpochEntry(1, 0)]


def test_epochs_before_the_log_start_are_forgotten(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    for epoch in (1, 2, 3):
        append(log, epoch=epoch)
    log.close(NOW)
    assert make_log(restarted(disk), clean=True, log_start_offset=1).epochs.entries == [EpochEntry(2, 1), EpochEntry(3, 2)]


def test_lost_epochs_are_found_in_the_batches(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    for epoch in (1, 1, 3):
        append(log, epoch=epoch)
    files = restarted(disk)
    assert not files.exists(f"{DIRECTORY}/leader-epoch-checkpoint")
    assert make_log(files).epochs.entries == [EpochEntry(1, 0), EpochEntry(3, 2)]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [b"0\n1\nnonsense\n", b"\xff\xff", b"0\n2\n0 0\n", b"7\n0\n"])
def test_epochs_whose_checkpoint_is_damaged_are_found_in_the_batches(disk: SimulatedFiles, content: bytes, clean: bool) -> None:
    log = make_log(disk, SETTINGS)
    for epoch in (0, 0, 0, 0, 2, 2, 5, 5, 5, 5, 6):
        append(log, batch(size=100), epoch=epoch)
    log.close(NOW)
    files = restarted(disk)
    write_file(files, f"{DIRECTORY}/leader-epoch-checkpoint", content)
    found = load(files, clean=clean, recovery_point=11)
    assert found.epochs.entries == [EpochEntry(0, 0), EpochEntry(2, 4), EpochEntry(5, 6), EpochEntry(6, 10)]
    again = load(restarted(files), clean=True)  # they are on the disk again
    assert again.epochs.entries == found.epochs.entries


def test_segments_of_one_epoch_are_not_read_for_it(disk: SimulatedFiles) -> None:
    files = fill(disk)
    write_file(files, f"{DIRECTORY}/leader-epoch-checkpoint", b"nonsense")
    small = watch(files, "read", ".log")
    assert load(files, clean=True).epochs.entries == [EpochEntry(0, 0)]
    assert [event.path for event in small if event.size > 300] == []
    assert [event.path for event in small].count(path(3, ".log")) == 1  # its first batch


def test_a_corrupt_topic_id_is_an_error_that_names_file_and_line(disk: SimulatedFiles) -> None:
    files = fill(disk)
    write_file(files, f"{DIRECTORY}/partition.metadata", b"version: 0\ntopic_id: \n")
    with pytest.raises(CorruptCheckpoint, match=r"/data/orders-0/partition.metadata.* at line 2"):
        load(files, clean=True)


# -- directories of another kind


def test_a_directory_that_is_being_deleted_is_not_recovered(disk: SimulatedFiles) -> None:
    files = fill(disk, clean=False)
    flip(files, path(3, ".log"), 150)
    files.rename(DIRECTORY, "/data/orders-0.abc-delete")
    log = load(files, directory="/data/orders-0.abc-delete")
    assert log.segments.base_offsets == [0, 3, 6, 9] and log.log_end_offset == 0
    log.delete()
    assert not files.exists("/data/orders-0.abc-delete")


def test_an_empty_directory_that_is_being_deleted_gets_a_segment(disk: SimulatedFiles) -> None:
    disk.make_dirs("/data/orders-0.abc-delete")
    assert load(disk, directory="/data/orders-0.abc-delete", log_start_offset=7).segments.base_offsets == [0]


def test_a_future_directory_is_an_ordinary_log(disk: SimulatedFiles) -> None:
    log = load(disk, directory="/data/orders-0.abc-future")
    append_to(log, 2)
    assert log.is_future and log.log_dir == "/data"
    assert stripped(log) == [b"0", b"1"]


def test_other_files_in_the_directory_are_left_alone(disk: SimulatedFiles) -> None:
    files = fill(disk)
    write_file(files, f"{DIRECTORY}/notes.txt", b"by hand")
    files.make_dirs(f"{DIRECTORY}/00000000000000000077.log")
    assert stripped(load(files, clean=True)) == TEN
    assert files.read_bytes(f"{DIRECTORY}/notes.txt") == b"by hand"


# -- descriptors


def test_a_log_that_cannot_be_loaded_leaves_no_file_open(tmp_path: Path) -> None:
    files = Files()
    directory = str(tmp_path / "orders-0")
    log = make_log(files, SETTINGS, directory=directory)
    append_to(log, 10)
    log.close(NOW)
    assert files.pool.open_count == 0
    (tmp_path / "orders-0" / "partition.metadata").write_text("nonsense")
    with pytest.raises(CorruptCheckpoint):
        make_log(files, SETTINGS, directory=directory)
    assert files.pool.open_count == 0


def test_a_closed_log_leaves_no_file_open(tmp_path: Path) -> None:
    files = Files()
    log = make_log(files, SETTINGS, directory=str(tmp_path / "orders-0"))
    append_to(log, 20)
    producer = Producer(log, 7)
    producer.write()
    producer.abort()
    records(log)
    log.truncate_to(15, NOW)
    log.close(NOW)
    log.close(NOW)
    open_paths = {file.path for file in files.pool._clock}
    assert all(path.endswith(".deleted") for path in open_paths)


def test_deleting_a_log_leaves_no_file_open_and_no_directory(tmp_path: Path) -> None:
    files, host = Files(), RecordingHost()
    log = make_log(files, SETTINGS, directory=str(tmp_path / "orders-0"), host=host)
    append_to(log, 20)
    log.truncate_to(10, NOW)
    log.rename_dir("orders-0.abc-delete")
    log.delete()
    host.delete_due(2**62)
    assert files.pool.open_count == 0
    assert list(tmp_path.iterdir()) == []


def test_a_renamed_log_goes_on_in_its_new_directory(disk: SimulatedFiles) -> None:
    host = RecordingHost()
    log = load(disk, host=host, directory="/data/orders-0.abc-future")
    append_to(log, 10)
    log.truncate_to(8, NOW)
    log.rename_dir("orders-0")
    append(log, produced(7, 0), epoch=5)
    log.roll(NOW)
    for _ in range(3):
        append(log, epoch=5)
    host.delete_due(2**62)
    assert log.directory == DIRECTORY
    assert not [name for name in names_in(disk) if name.endswith(".deleted") and "snapshot" not in name]
    log.close(NOW)
    again = load(restarted(disk), clean=True)
    assert [o for o, _ in records(again)] == list(range(12))
    assert again.epochs.entries == [EpochEntry(0, 0), EpochEntry(5, 8)]


def test_a_log_of_kafka_size_defaults_loads(disk: SimulatedFiles) -> None:
    log = make_log(disk, LogConfig())
    append_many(log, 3)
    log.close(NOW)
    assert len(read_batches(disk.read_bytes(path(0, ".log")))) == 3


def test_an_index_that_is_rebuilt_is_told(disk: SimulatedFiles, caplog: pytest.LogCaptureFixture) -> None:
    files = fill(disk)
    files.remove(path(3, ".index"))
    write_file(files, path(6, ".txnindex"), b"garbage")
    load(files, clean=True, recovery_point=10)
    missing, corrupt = [message for message in caplog.messages if message.endswith("recovering segment and rebuilding index files...")]
    assert missing.startswith(f"Could not find offset index file corresponding to log file {path(3, '.log')}, ")
    assert corrupt.startswith(f"Found a corrupted index file corresponding to log file {path(6, '.log')} due to ")
