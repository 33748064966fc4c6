from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import KafkaStorageError, OutOfOrderSequence
from barnabas.records.batch import read_batches
from barnabas.simulation.disk import SimulatedCrash, SimulatedFiles
from barnabas.storage.leader_epochs import EpochEntry
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_offset import LogOffset
from tests.unit.storage.logs import (
    DIRECTORY,
    NOW,
    Producer,
    RecordingHost,
    append,
    append_many,
    batch,
    commit_all,
    config,
    file_name,
    make_log,
    names_in,
    offsets_of,
    path,
    produced,
    records,
    restarted,
    values,
)

SETTINGS = config(segment_bytes=300, index_interval_bytes=0)


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


@pytest.fixture
def host() -> RecordingHost:
    return RecordingHost()


@pytest.fixture
def log(disk: SimulatedFiles, host: RecordingHost) -> Log:
    """Ten records of a batch each, in segments of three."""
    return filled(disk, host)


def filled(disk: SimulatedFiles, host: RecordingHost | None = None) -> Log:
    log = make_log(disk, SETTINGS, host=host)
    for n in range(10):
        append(log, batch([b"%d" % n], size=100))
    return log


# -- truncate_to


def test_every_record_from_the_offset_on_is_gone(log: Log) -> None:
    assert log.truncate_to(4, NOW)
    assert log.log_end_offset == 4
    assert [o for o, _ in records(log)] == [0, 1, 2, 3]
    assert log.segments.base_offsets == [0, 3]


def test_truncating_to_the_log_end_or_beyond_removes_nothing(log: Log) -> None:
    assert not log.truncate_to(10, NOW)
    assert not log.truncate_to(99, NOW)
    assert log.log_end_offset == 10 and len(records(log)) == 10


def test_truncating_to_the_base_of_a_segment_leaves_it_empty(log: Log) -> None:
    log.truncate_to(6, NOW)
    assert log.segments.base_offsets == [0, 3, 6]
    assert log.active_segment.size == 0 and log.log_end_offset == 6


def test_the_offsets_are_given_again(log: Log) -> None:
    log.truncate_to(4, NOW)
    append(log, batch([b"new"]))
    assert records(log)[-1] == (4, b"new")
    assert log.log_end_offset == 5


def test_truncating_inside_a_batch_removes_all_of_it() -> None:
    log = make_log()
    append(log, batch(3))
    append(log, batch(3))
    log.truncate_to(4, NOW)
    assert [o for o, _ in records(log)] == [0, 1, 2]
    assert log.log_end_offset == 4
    assert append(log).first_offset == 4


def test_a_negative_offset_is_refused(log: Log) -> None:
    with pytest.raises(ValueError, match=r"Cannot truncate partition orders-0 to a negative offset \(-1\)"):
        log.truncate_to(-1, NOW)


def test_truncating_below_the_first_segment_empties_the_log(log: Log) -> None:
    commit_all(log)
    log.increment_log_start_offset(7, "test")
    log.delete_old_segments(NOW)
    assert log.segments.base_offsets == [6, 9]
    assert log.truncate_to(2, NOW)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (2, 2, 2)
    assert log.segments.base_offsets == [2] and records(log) == []


def test_truncating_below_the_log_start_lowers_it(log: Log) -> None:
    commit_all(log)
    log.increment_log_start_offset(5, "test")
    log.truncate_to(4, NOW)
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    assert records(log) == []


def test_the_high_watermark_is_pulled_down_to_the_new_end(log: Log) -> None:
    commit_all(log)
    log.truncate_to(4, NOW)
    assert log.fetch_high_watermark() == LogOffset(4, 3, 100) == log.end


def test_a_high_watermark_below_the_offset_stays(log: Log) -> None:
    log.update_high_watermark(2)
    log.fetch_high_watermark()
    log.truncate_to(4, NOW)
    assert log.fetch_high_watermark() == LogOffset(2, 0, 200)


def test_a_reader_sees_the_new_records_and_not_the_old_ones(log: Log) -> None:
    commit_all(log)
    log.read(5, 1000, FetchIsolation.HIGH_WATERMARK)
    log.truncate_to(4, NOW)
    for n in range(4, 9):
        append(log, batch([b"new %d" % n], size=120))
    commit_all(log)
    assert [o for o, _ in records(log, FetchIsolation.HIGH_WATERMARK)] == list(range(9))
    assert all(value is not None and value.startswith(b"new") for o, value in records(log) if o >= 4)


def test_the_recovery_point_is_lowered(log: Log) -> None:
    log.flush(NOW)
    log.truncate_to(4, NOW)
    assert log.recovery_point == 4


def test_epochs_from_the_offset_on_are_forgotten() -> None:
    log = make_log()
    for epoch in (1, 1, 3, 5, 5):
        append(log, epoch=epoch)
    log.truncate_to(3, NOW)
    assert log.epochs.entries == [EpochEntry(1, 0), EpochEntry(3, 2)]
    log.truncate_to(2, NOW)
    assert log.epochs.entries == [EpochEntry(1, 0)]


def test_an_epoch_noted_without_a_record_is_forgotten_even_if_nothing_is_truncated() -> None:
    log = make_log()
    append(log, epoch=1)
    log.epochs.assign(4, 1)
    assert not log.truncate_to(1, NOW)
    assert log.epochs.entries == [EpochEntry(1, 0)]


def test_the_files_of_truncated_segments_are_removed_after_the_delay(log: Log, disk: SimulatedFiles, host: RecordingHost) -> None:
    log.truncate_to(4, NOW)
    assert file_name(6, ".log") not in names_in(disk) and file_name(6, ".log.deleted") in names_in(disk)
    host.delete_due(59_999)
    assert file_name(6, ".log.deleted") in names_in(disk)
    host.delete_due(60_000)
    assert not [name for name in names_in(disk) if name.endswith(".deleted")]


def test_a_segment_rolled_at_the_same_offset_is_not_removed_with_the_old_one(log: Log, disk: SimulatedFiles, host: RecordingHost) -> None:
    log.truncate_to(6, NOW)
    log.truncate_to(5, NOW)
    for _ in range(5, 9):
        append(log, batch([b"new"], size=100))
    assert log.segments.base_offsets == [0, 3, 6]
    host.delete_due(2**62)
    assert [o for o, _ in records(log)] == list(range(9))
    assert [o for o, _ in records(make_log(restarted(disk), SETTINGS))] == list(range(9))


def test_a_truncation_survives_a_restart(log: Log, disk: SimulatedFiles) -> None:
    log.truncate_to(4, NOW)
    again = make_log(restarted(disk), SETTINGS)
    assert again.log_end_offset == 4
    assert [o for o, _ in records(again)] == [0, 1, 2, 3]


def test_a_crash_in_the_middle_of_a_truncation_leaves_no_hole(disk: SimulatedFiles) -> None:
    for number in range(1, 60):
        files = SimulatedFiles()
        log = filled(files)
        log.flush(NOW)
        files.halt_at(files.events + number)
        try:
            log.truncate_to(1, NOW)
        except SimulatedCrash:
            pass
        offsets = [o for o, _ in records(make_log(restarted(files), SETTINGS, recovery_point=10))]
        assert offsets == list(range(len(offsets)))


def test_a_crash_of_the_machine_in_the_middle_of_a_truncation_leaves_no_hole() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        files = SimulatedFiles()
        log = filled(files)
        log.flush(NOW)
        files.halt_at(files.events + rng.randint(1, 60))
        try:
            log.truncate_to(1, NOW)
        except SimulatedCrash:
            pass
        offsets = [o for o, _ in records(make_log(files.crash(rng), SETTINGS, recovery_point=10))]
        assert offsets == list(range(len(offsets))) and len(offsets) >= 1


def test_a_truncated_log_still_has_all_its_index_entries(log: Log, disk: SimulatedFiles) -> None:
    log.truncate_to(5, NOW)
    for n in range(5, 12):
        append(log, batch([b"%d" % n], size=100))
    log.close(NOW)
    again = make_log(restarted(disk), SETTINGS, clean=True)
    assert [o for o, _ in records(again)] == list(range(12))


def test_a_disk_that_fails_while_truncating_is_reported(disk: SimulatedFiles, host: RecordingHost) -> None:
    log = filled(disk, host)
    disk.fail_next("truncate")
    with pytest.raises(KafkaStorageError, match="while truncating log to offset 4"):
        log.truncate_to(4, NOW)
    assert len(host.failures) == 1


# -- producers


def test_a_producer_can_send_again_what_was_truncated() -> None:
    log = make_log()
    append(log, produced(7, 0))
    append(log, produced(7, 1))
    append(log, produced(7, 2))
    log.truncate_to(1, NOW)
    with pytest.raises(OutOfOrderSequence):
        append(log, produced(7, 2))
    assert offsets_of(append(log, produced(7, 1))) == (1, 1)
    assert not append(log, produced(7, 2)).duplicate


def test_a_producer_whose_records_are_all_truncated_is_forgotten() -> None:
    log = make_log()
    append_many(log, 2)
    append(log, produced(7, 0))
    log.truncate_to(2, NOW)
    assert log.producers.active_producers == {}


def test_the_producers_are_rebuilt_from_a_snapshot_and_the_records_after_it(log: Log, disk: SimulatedFiles) -> None:
    for sequence in range(8):
        append(log, produced(7, sequence, size=100))
    log.truncate_to(14, NOW)
    entry = log.producers.last_entry(7)
    assert entry is not None and entry.last_sequence == 3 and entry.last_data_offset == 13
    assert log.producers.map_end_offset == 14


def test_snapshots_above_the_offset_are_removed(log: Log, disk: SimulatedFiles) -> None:
    append(log, produced(7, 0))
    log.roll(NOW)
    append(log, produced(7, 1))
    log.roll(NOW)
    log.truncate_to(5, NOW)
    left = [name for name in names_in(disk) if name.endswith(".snapshot")]
    assert left and all(int(name[:20]) <= 5 for name in left)


def test_a_transaction_that_began_above_the_offset_holds_nothing_back_any_more() -> None:
    log = make_log()
    append_many(log, 3)
    Producer(log, 1).write(2)
    commit_all(log)
    assert log.last_stable_offset == 3
    log.truncate_to(3, NOW)
    append_many(log, 4)
    commit_all(log)
    assert log.last_stable_offset == 7


def test_a_transaction_whose_marker_is_truncated_is_open_again() -> None:
    log = make_log()
    producer = Producer(log, 1)
    producer.write(2)
    marker_offset = producer.abort()
    commit_all(log)
    assert log.last_stable_offset == 3
    log.truncate_to(marker_offset, NOW)
    append_many(log, 2)
    commit_all(log)
    assert log.last_stable_offset == 0
    assert log.collect_aborted(0, 10) == []
    producer.commit()
    commit_all(log)
    assert log.last_stable_offset == 5


def test_an_open_transaction_below_the_offset_keeps_its_place() -> None:
    log = make_log()
    append(log, batch(size=100))
    Producer(log, 1).write(2)
    append_many(log, 3)
    commit_all(log)
    log.truncate_to(4, NOW)
    commit_all(log)
    assert log.fetch_last_stable_offset() == LogOffset(1, 0, 100)


# -- truncate_fully_and_start_at


def test_an_emptied_log_starts_at_the_offset(log: Log) -> None:
    commit_all(log)
    log.truncate_fully_and_start_at(50, NOW)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (50, 50, 50)
    assert log.segments.base_offsets == [50] and records(log) == []
    assert append(log).first_offset == 50


def test_an_emptied_log_may_have_a_log_start_before_its_end(log: Log) -> None:
    log.truncate_fully_and_start_at(50, NOW, log_start_offset=40)
    assert (log.log_start_offset, log.log_end_offset) == (40, 50)


@pytest.mark.parametrize("offset", [0, 3, 6, 9, 10])
def test_a_log_can_be_emptied_to_start_where_a_segment_began(log: Log, disk: SimulatedFiles, host: RecordingHost, offset: int) -> None:
    log.truncate_fully_and_start_at(offset, NOW)
    append(log, batch([b"new"]))
    host.delete_due(2**62)
    assert records(log) == [(offset, b"new")]
    assert records(make_log(restarted(disk), SETTINGS)) == [(offset, b"new")]


def test_no_segment_of_an_emptied_log_comes_back_after_a_crash(log: Log, disk: SimulatedFiles) -> None:
    log.flush(NOW)
    log.truncate_fully_and_start_at(50, NOW)
    again = make_log(restarted(disk), SETTINGS, recovery_point=10)
    assert (again.log_start_offset, again.log_end_offset) == (50, 50)


def test_the_files_of_an_emptied_log_are_removed_after_the_delay(log: Log, disk: SimulatedFiles, host: RecordingHost) -> None:
    log.truncate_fully_and_start_at(50, NOW)
    plain = [name for name in names_in(disk) if name.endswith((".log", ".index", ".timeindex"))]
    assert plain == [file_name(50, suffix) for suffix in (".index", ".log", ".timeindex")]
    host.delete_due(60_000)
    assert not [name for name in names_in(disk) if name.endswith(".deleted")]


def test_an_emptied_log_has_no_epochs_and_no_producers(log: Log, disk: SimulatedFiles) -> None:
    append(log, produced(7, 0), epoch=3)
    Producer(log, 8).write()
    log.truncate_fully_and_start_at(50, NOW)
    assert log.epochs.entries == [] and log.producers.active_producers == {}
    assert log.last_stable_offset == 50
    assert disk.read_bytes(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n0\n"


def test_an_emptied_log_goes_on_after_a_restart(log: Log, disk: SimulatedFiles) -> None:
    log.truncate_fully_and_start_at(50, NOW)
    append_many(log, 3)
    log.close(NOW)
    again = make_log(restarted(disk), SETTINGS, clean=True)
    assert values(again) == [b"50", b"51", b"52"]


def test_a_log_can_be_emptied_again_and_again(log: Log, disk: SimulatedFiles, host: RecordingHost) -> None:
    for offset in (50, 50, 20, 99):
        log.truncate_fully_and_start_at(offset, NOW)
        append_many(log, 2)
    host.delete_due(2**62)
    assert values(log) == [b"99", b"100"]
    assert values(make_log(restarted(disk), SETTINGS)) == [b"99", b"100"]


def test_a_high_watermark_from_before_is_not_kept(log: Log) -> None:
    commit_all(log)
    log.fetch_high_watermark()
    log.truncate_fully_and_start_at(3, NOW)
    assert log.fetch_high_watermark() == LogOffset(3, 3, 0)
    append(log)
    assert records(log, FetchIsolation.HIGH_WATERMARK) == []


# -- properties


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 60)), min_size=1, max_size=12), st.booleans())
def test_a_log_is_what_was_appended_after_each_truncation(steps: list[tuple[int, int]], crash: bool) -> None:
    """Against a plain list of batches."""
    disk = SimulatedFiles()
    log = make_log(disk, config(segment_bytes=350, index_interval_bytes=100))
    model: list[tuple[int, bytes]] = []
    number = 0
    for count, offset in steps:
        for _ in range(count):
            number += 1
            model.append((log.log_end_offset, b"n%d" % number))
            append(log, batch([b"n%d" % number], size=100))
        if offset <= log.log_end_offset:
            log.truncate_to(offset, NOW)
            model = [(o, v) for o, v in model if o < offset]
        assert [(o, (v or b"").rstrip(b".")) for o, v in records(log)] == model
        assert log.log_end_offset == (min(offset, log.log_end_offset))
    log.close(NOW)
    again = make_log(restarted(disk), config(segment_bytes=350, index_interval_bytes=100), clean=not crash)
    assert [(o, (v or b"").rstrip(b".")) for o, v in records(again)] == model


def test_a_truncated_file_holds_whole_batches_only(log: Log, disk: SimulatedFiles) -> None:
    log.truncate_to(4, NOW)
    data = disk.read_bytes(path(3, ".log"))
    assert sum(b.size for b in read_batches(data)) == len(data) == 100
