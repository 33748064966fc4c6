from __future__ import annotations

import random

import pytest

from barnabas.errors import SegmentOffsetOverflow
from barnabas.records.batch import read_batches
from barnabas.simulation.disk import SimulatedCrash, SimulatedFiles
from barnabas.storage.host import DirectHost
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.storage.segments.surgery import new_cleaned_segment, replace_segments, split_overflowed
from tests.unit.storage.log.loaded_logs import SETTINGS, TEN, append_to, fill, load, stripped
from tests.unit.storage.logs import (
    DIRECTORY,
    NOW,
    PARTITION,
    RecordingHost,
    batch,
    config,
    index_entries,
    make_log,
    make_segment,
    names_in,
    path,
    records,
    restarted,
    write_file,
)

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
