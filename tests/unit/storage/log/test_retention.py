from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import KafkaStorageError
from barnabas.simulation.disk import SimulatedCrash, SimulatedFiles
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from tests.unit.storage.logs import (
    DAY,
    NOW,
    RecordingHost,
    append,
    append_many,
    batch,
    commit_all,
    config,
    file_name,
    make_log,
    names_in,
    path,
    produced,
    records,
    restarted,
)

NOTHING = {"retention_ms": -1, "retention_bytes": -1}


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


@pytest.fixture
def host() -> RecordingHost:
    return RecordingHost()


def filled(
    disk: SimulatedFiles,
    settings: LogConfig,
    bases: list[int],
    end: int,
    host: RecordingHost | None = None,
    timestamps: list[int] | None = None,
) -> Log:
    """Segments at the given base offsets, of batches of 100 bytes, all replicated; each with records of a time of its own."""
    log = make_log(disk, settings, host=host)
    for number, (base, following) in enumerate(zip(bases, [*bases[1:], end], strict=True)):
        if log.active_segment.base_offset != base:
            log.roll(NOW)
        for offset in range(base, following):
            append(log, batch([b"%d" % offset], size=100, timestamp=NOW if timestamps is None else timestamps[number]))
    commit_all(log)
    return log


# -- by log start offset


def test_segments_before_the_log_start_go_and_the_one_that_holds_it_stays(disk: SimulatedFiles) -> None:
    log = filled(disk, config(**NOTHING), [0, 11, 23], 30)
    log.increment_log_start_offset(25, "test")
    assert log.delete_old_segments(NOW) == 2
    assert log.segments.base_offsets == [23]
    assert [o for o, _ in records(log)] == [25, 26, 27, 28, 29]


def test_a_segment_goes_if_the_next_begins_at_the_log_start(disk: SimulatedFiles) -> None:
    log = filled(disk, config(**NOTHING), [0, 11, 23], 30)
    log.increment_log_start_offset(11, "test")
    assert log.delete_old_segments(NOW) == 1
    assert log.segments.base_offsets == [11, 23]


def test_a_segment_stays_if_the_next_begins_after_the_log_start(disk: SimulatedFiles) -> None:
    log = filled(disk, config(**NOTHING), [0, 11, 23], 30)
    log.increment_log_start_offset(10, "test")
    assert log.delete_old_segments(NOW) == 0


def test_the_last_segment_never_goes_for_the_log_start(disk: SimulatedFiles) -> None:
    log = filled(disk, config(**NOTHING), [0, 5], 10)
    log.increment_log_start_offset(10, "test")
    log.delete_old_segments(NOW)
    assert log.segments.base_offsets == [5]


def test_a_compacted_log_deletes_for_the_log_start_only(disk: SimulatedFiles) -> None:
    settings = config(cleanup_policy=frozenset({"compact"}), retention_ms=0, retention_bytes=0)
    log = make_log(disk, settings)
    for _ in range(3):
        append(log, batch(key=b"k", timestamp=1))
        log.roll(NOW)
    commit_all(log)
    assert log.delete_old_segments(NOW + 100 * DAY) == 0
    log.increment_log_start_offset(2, "test")
    assert log.delete_old_segments(NOW) == 2
    assert log.segments.base_offsets == [2, 3]


def test_a_log_that_is_compacted_and_deleted_does_both(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(cleanup_policy=frozenset({"compact", "delete"}), retention_ms=DAY))
    append(log, batch(key=b"k", timestamp=NOW - 2 * DAY))
    log.roll(NOW)
    append(log, batch(key=b"k", timestamp=NOW))
    commit_all(log)
    assert log.delete_old_segments(NOW) == 1


# -- by time


def test_a_segment_whose_youngest_record_is_too_old_goes(disk: SimulatedFiles) -> None:
    log = filled(disk, config(retention_ms=1000), [0, 3, 6], 9, timestamps=[NOW, NOW + 500, NOW + 900])
    assert log.delete_old_segments(NOW + 1501) == 2
    assert log.segments.base_offsets == [6]
    assert log.log_start_offset == 6


def test_an_age_that_is_just_reached_is_not_passed(disk: SimulatedFiles) -> None:
    log = filled(disk, config(retention_ms=1000), [0, 3], 6)
    assert log.delete_old_segments(NOW + 1000) == 0
    assert log.delete_old_segments(NOW + 1001) == 2


def test_the_largest_timestamp_of_a_segment_counts_wherever_it_stands(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(retention_ms=1000))
    for timestamp in (NOW - 5000, NOW, NOW - 4000):
        append(log, batch(timestamp=timestamp))
    log.roll(NOW)
    append(log)
    commit_all(log)
    assert log.delete_old_segments(NOW + 900) == 0


def test_a_young_segment_protects_older_ones_behind_it(disk: SimulatedFiles) -> None:
    log = filled(disk, config(retention_ms=1000), [0, 3, 6], 9, timestamps=[NOW, NOW + 9000, NOW])
    assert log.delete_old_segments(NOW + 2000) == 1
    assert log.segments.base_offsets == [3, 6]


def test_a_negative_retention_time_deletes_nothing(disk: SimulatedFiles) -> None:
    log = filled(disk, config(retention_ms=-1), [0, 3], 6)
    assert log.delete_old_segments(NOW + 10_000 * DAY) == 0


def test_records_without_a_timestamp_are_as_old_as_their_file(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(retention_ms=1000))
    log.append_as_follower(batch(magic=0), NOW)
    log.roll(NOW)
    log.append_as_follower(batch(magic=0, offset=1), NOW)
    commit_all(log)
    disk.set_modified_ms(path(0, ".log"), NOW)
    disk.set_modified_ms(path(1, ".log"), NOW + 5000)
    assert log.delete_old_segments(NOW + 1000) == 0
    assert log.delete_old_segments(NOW + 1001) == 1


def test_if_every_segment_is_too_old_a_new_one_is_rolled_first(disk: SimulatedFiles) -> None:
    log = filled(disk, config(retention_ms=1000), [0, 3, 6], 9)
    assert log.delete_old_segments(NOW + 2000) == 3
    assert log.segments.base_offsets == [9]
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (9, 9, 9)
    assert append(log).first_offset == 9


def test_an_empty_active_segment_is_never_deleted(disk: SimulatedFiles) -> None:
    log = filled(disk, config(retention_ms=1000), [0, 3], 6)
    log.roll(NOW)
    commit_all(log)
    assert log.delete_old_segments(NOW + 2000) == 2
    assert log.segments.base_offsets == [6]
    assert log.delete_old_segments(NOW + 100 * DAY) == 0
    assert log.segments.base_offsets == [6]


def test_an_empty_log_has_nothing_to_delete(disk: SimulatedFiles) -> None:
    assert make_log(disk, config(retention_ms=0, retention_bytes=0)).delete_old_segments(NOW + DAY) == 0


def test_the_timestamps_of_a_restarted_log_count(disk: SimulatedFiles) -> None:
    settings = config(retention_ms=1000)
    filled(disk, settings, [0, 3], 6).close(NOW)
    log = make_log(restarted(disk), settings, clean=True)
    commit_all(log)
    assert log.delete_old_segments(NOW + 1000) == 0
    assert log.delete_old_segments(NOW + 1001) == 2


# -- by size


@pytest.mark.parametrize(
    ("retention_bytes", "left"), [(-1, 4), (1200, 4), (1199, 4), (901, 4), (900, 3), (601, 3), (600, 2), (300, 1), (0, 1)]
)
def test_segments_go_as_long_as_the_log_stays_as_large_as_it_may(disk: SimulatedFiles, retention_bytes: int, left: int) -> None:
    """Four segments of 300 bytes."""
    log = filled(disk, config(retention_ms=-1, retention_bytes=retention_bytes), [0, 3, 6, 9], 12)
    log.delete_old_segments(NOW)
    assert len(log.segments) == left


def test_a_lone_segment_larger_than_allowed_stays(disk: SimulatedFiles) -> None:
    log = filled(disk, config(retention_ms=-1, retention_bytes=100), [0], 3)
    assert log.delete_old_segments(NOW) == 0


def test_a_limit_of_no_bytes_empties_the_log(disk: SimulatedFiles) -> None:
    log = filled(disk, config(retention_ms=-1, retention_bytes=0), [0, 3], 6)
    assert log.delete_old_segments(NOW) == 2
    assert log.segments.base_offsets == [6] and log.size == 0


def test_a_large_segment_at_the_front_keeps_smaller_ones_behind_it(disk: SimulatedFiles) -> None:
    log = filled(disk, config(retention_ms=-1, retention_bytes=500), [0, 8, 9], 10)
    assert log.delete_old_segments(NOW) == 0


def test_all_reasons_are_applied_one_after_the_other(disk: SimulatedFiles) -> None:
    log = filled(disk, config(retention_ms=1000, retention_bytes=600), [0, 3, 6, 9], 12, timestamps=[NOW, NOW, NOW, NOW + 5000])
    log.increment_log_start_offset(3, "test")
    assert log.delete_old_segments(NOW + 2000) == 3
    assert log.segments.base_offsets == [9]


# -- never past the high watermark


@pytest.mark.parametrize(
    ("high_watermark", "bases"), [(0, [0, 3, 6]), (2, [0, 3, 6]), (3, [3, 6]), (5, [3, 6]), (6, [6]), (8, [6]), (9, [9])]
)
def test_no_record_from_the_high_watermark_on_is_deleted(disk: SimulatedFiles, high_watermark: int, bases: list[int]) -> None:
    log = make_log(disk, config(retention_ms=1000, segment_bytes=300))
    for _ in range(9):
        append(log, batch(size=100))
    log.update_high_watermark(high_watermark)
    log.delete_old_segments(NOW + 2000)
    assert log.segments.base_offsets == bases
    assert log.log_start_offset <= log.high_watermark


# -- two steps


def test_files_are_renamed_at_once_and_removed_after_the_delay(disk: SimulatedFiles, host: RecordingHost) -> None:
    log = filled(disk, config(retention_ms=1000, file_delete_delay_ms=500), [0, 3], 6, host, [NOW, NOW + 5000])
    log.delete_old_segments(NOW + 2000)
    gone = [file_name(0, suffix + ".deleted") for suffix in (".index", ".log", ".timeindex")]
    assert [name for name in names_in(disk) if name.endswith(".deleted")] == gone
    host.delete_due(499)
    assert [name for name in names_in(disk) if name.endswith(".deleted")] == gone
    host.delete_due(500)
    assert [name for name in names_in(disk) if name.endswith(".deleted")] == []


def test_the_snapshots_of_deleted_segments_go_with_them(disk: SimulatedFiles, host: RecordingHost) -> None:
    log = make_log(disk, config(retention_ms=-1, retention_bytes=0), host=host)
    for sequence in range(3):
        append(log, produced(7, sequence))
        log.roll(NOW)
    commit_all(log)
    assert [name for name in names_in(disk) if name.endswith(".snapshot")] == [file_name(n, ".snapshot") for n in (1, 2, 3)]
    log.increment_log_start_offset(2, "test")
    log.delete_old_segments(NOW)
    assert [name for name in names_in(disk) if name.endswith(".snapshot")] == [file_name(3, ".snapshot")]
    host.delete_due(2**62)
    assert not [name for name in names_in(disk) if name.endswith(".deleted")]


def test_the_producers_outlive_their_records(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(retention_ms=1000))
    data = produced(7, 0)
    append(log, data)
    commit_all(log)
    log.delete_old_segments(NOW + 2000)
    assert records(log) == []
    assert append(log, data).duplicate


def test_a_crash_before_the_files_are_removed_does_not_bring_them_back(disk: SimulatedFiles) -> None:
    log = filled(disk, config(retention_ms=1000), [0, 3, 6], 9, timestamps=[NOW, NOW, NOW + 5000])
    log.delete_old_segments(NOW + 2000)
    files = restarted(disk)
    again = make_log(files)
    assert [o for o, _ in records(again)] == [6, 7, 8]
    assert not [name for name in names_in(files) if name.endswith(".deleted")]


@pytest.mark.parametrize("machine", [False, True])
def test_a_crash_in_the_middle_of_a_deletion_leaves_a_log_without_a_hole(machine: bool) -> None:
    for number in range(1, 50):
        files = SimulatedFiles()
        settings = config(retention_ms=1000)
        log = filled(files, settings, [0, 3, 6, 9], 12, timestamps=[NOW, NOW, NOW, NOW + 5000])
        log.flush(NOW)
        files.halt_at(files.events + number)
        try:
            log.delete_old_segments(NOW + 2000)
        except SimulatedCrash:
            pass
        survivor = files.crash(random.Random(number)) if machine else restarted(files)
        offsets = [o for o, _ in records(make_log(survivor, settings, recovery_point=12))]
        assert offsets == list(range(offsets[0], 12)) and offsets[0] in (0, 3, 6, 9)


def test_a_disk_that_fails_while_deleting_is_reported(disk: SimulatedFiles, host: RecordingHost) -> None:
    log = filled(disk, config(retention_ms=1000), [0, 3], 6, host, [NOW, NOW + 5000])
    disk.fail_next("rename")
    with pytest.raises(KafkaStorageError, match="while deleting segments for orders-0"):
        log.delete_old_segments(NOW + 2000)
    assert len(host.failures) == 1


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3000)), min_size=1, max_size=8),
    st.integers(-1, 2500),
    st.integers(-1, 2500),
    st.integers(0, 40),
    st.integers(0, 4000),
)
def test_what_is_left_is_a_suffix_and_no_more_was_deleted_than_allowed(
    layout: list[tuple[int, int]], retention_ms: int, retention_bytes: int, high_watermark: int, age: int
) -> None:
    log = make_log(settings=config(retention_ms=retention_ms, retention_bytes=retention_bytes))
    sizes: dict[int, tuple[int, int]] = {}
    for count, timestamp in layout:
        if log.active_segment.size:
            log.roll(NOW)
        for _ in range(count):
            append(log, batch(size=100, timestamp=NOW + timestamp))
        sizes[log.active_segment.base_offset] = (100 * count, timestamp)
    log.update_high_watermark(high_watermark)
    before = log.segments.base_offsets
    log.delete_old_segments(NOW + age)
    left = [base for base in log.segments.base_offsets if base in sizes]
    assert left == before[len(before) - len(left) :]
    gone = before[: len(before) - len(left)]
    assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
    for base in gone:
        too_old = retention_ms >= 0 and age - sizes[base][1] > retention_ms
        after = sum(size for other, (size, _) in sizes.items() if other > base)
        too_large = 0 <= retention_bytes <= after
        assert too_old or too_large
    assert [o for o, _ in records(log)] == list(range(log.log_start_offset, log.log_end_offset))


def test_deleting_everything_again_and_again_keeps_the_offsets_rising(disk: SimulatedFiles, host: RecordingHost) -> None:
    settings = config(retention_ms=0)
    log = make_log(disk, settings, host=host)
    for round_ in range(1, 4):
        append_many(log, 3)
        commit_all(log)
        log.delete_old_segments(NOW + 1)
        host.delete_due(2**62)
        assert (log.log_start_offset, log.log_end_offset) == (3 * round_, 3 * round_)
    log.close(NOW)
    again = make_log(restarted(disk), settings, clean=True)
    assert (again.log_start_offset, again.log_end_offset) == (9, 9)
