"""Segments that were cut or lost while the broker was stopped: noticed, logged, and never passed over in silence."""

from __future__ import annotations

import logging
import random

import pytest

from barnabas.errors import CorruptRecord, KafkaStorageError
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.topic_partition import TopicPartition
from tests.unit.storage.logs import NOW, append, batch, commit_all, config, path, watch, write_file

A, B = "/a", "/b"
ORDERS = TopicPartition("orders", 0)
DIRECTORY = f"{A}/orders-0"
BATCH = 100  # bytes, of one record
SETTINGS = config(segment_bytes=300, index_interval_bytes=150)  # three batches to a segment
COMPACTED = config(segment_bytes=300, index_interval_bytes=150, cleanup_policy=frozenset({"compact"}))


def manage(disk: SimulatedFiles, settings: LogConfig = SETTINGS) -> LogManager:
    manager = LogManager(disk, [A], settings, LogManagerConfig(num_recovery_threads_per_data_dir=1))
    manager.load(NOW)
    return manager


def stopped(settings: LogConfig = SETTINGS, count: int = 12) -> SimulatedFiles:
    """The disk of a broker that was stopped cleanly: segments at 0, 3, 6 and 9."""
    disk = SimulatedFiles()
    manager = manage(disk, settings)
    log = manager.get_or_create(ORDERS, NOW)
    for _ in range(count):
        append(log, batch([b"%d" % log.log_end_offset], size=BATCH, key=b"k"))
    assert log.segments.base_offsets == [0, 3, 6, 9][: -(-count // 3)]
    manager.shutdown(NOW)
    return disk.process_crash()


def cut(disk: SimulatedFiles, base: int, size: int) -> None:
    write_file(disk, path(base, ".log", DIRECTORY), disk.read_bytes(path(base, ".log", DIRECTORY))[:size])


def lose(disk: SimulatedFiles, base: int) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        disk.remove(path(base, suffix, DIRECTORY))


def log_of(manager: LogManager) -> Log:
    log = manager.get(ORDERS)
    assert log is not None
    commit_all(log)
    return log


def readable(log: Log) -> list[int]:
    """The offsets from which something can be read; a reader that goes on from the others gets CORRUPT_MESSAGE."""
    found = []
    for offset in range(log.log_start_offset, log.log_end_offset):
        try:
            assert log.read(offset, 10_000, FetchIsolation.HIGH_WATERMARK).records is not None
        except CorruptRecord as error:
            assert error.code == 2
        else:
            found.append(offset)
    return found


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def inspect(manager: LogManager) -> None:
    for inspection in manager.inspections():
        inspection.run()
        manager.inspected(inspection)


WHOLE = list(range(12))


def test_a_log_that_is_whole_is_read_through_and_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    manager = manage(stopped())
    inspect(manager)
    assert readable(log_of(manager)) == WHOLE and not errors(caplog)


@pytest.mark.parametrize(("size", "missing"), [(2 * BATCH, [5]), (2 * BATCH + 40, [5]), (BATCH, [4, 5]), (5, [3, 4, 5]), (0, [3, 4, 5])])
def test_a_reader_gets_an_error_where_a_segment_was_cut(caplog: pytest.LogCaptureFixture, size: int, missing: list[int]) -> None:
    disk = stopped()
    cut(disk, 3, size)
    log = log_of(manage(disk))
    assert readable(log) == [offset for offset in WHOLE if offset not in missing]
    assert readable(log) == [offset for offset in WHOLE if offset not in missing]
    (line,) = errors(caplog)
    assert "may go on at offset 6" in line and "delete-records" in line


def test_a_reader_gets_an_error_where_a_segment_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    disk = stopped()
    lose(disk, 6)
    log = log_of(manage(disk))
    assert readable(log) == [0, 1, 2, 3, 4, 5, 9, 10, 11]
    assert len(errors(caplog)) == 1


def test_a_reader_gets_an_error_where_a_batch_is_missing() -> None:
    disk = stopped()
    data = disk.read_bytes(path(3, ".log", DIRECTORY))
    write_file(disk, path(3, ".log", DIRECTORY), data[:BATCH] + data[2 * BATCH :])
    assert 4 not in readable(log_of(manage(disk)))


@pytest.mark.parametrize("size", [2 * BATCH, 2 * BATCH + 40, BATCH, 5, 0])
def test_a_cut_segment_is_noticed_after_the_start(caplog: pytest.LogCaptureFixture, size: int) -> None:
    disk = stopped()
    cut(disk, 3, size)
    manager = manage(disk)
    assert not errors(caplog)
    inspect(manager)
    (line,) = errors(caplog)
    assert path(3, ".log", DIRECTORY) in line and "may go on at offset 6" in line
    readable(log_of(manager))
    assert len(errors(caplog)) == 1  # once is enough


def test_a_missing_segment_is_noticed_after_the_start(caplog: pytest.LogCaptureFixture) -> None:
    disk = stopped()
    lose(disk, 6)
    inspect(manage(disk))
    (line,) = errors(caplog)
    assert "ends at offset 6, and the next begins at 9" in line


@pytest.mark.parametrize("size", [2 * BATCH, 2 * BATCH + 40, 0])
def test_a_last_segment_that_was_cut_is_noticed_at_the_start(caplog: pytest.LogCaptureFixture, size: int) -> None:
    disk = stopped()
    cut(disk, 9, size)
    log = log_of(manage(disk))
    assert log.log_end_offset == 9 + size // BATCH
    assert [line for line in errors(caplog) if "but ended at 12 when the broker was stopped" in line]


def test_the_last_segments_that_are_missing_are_noticed_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    disk = stopped()
    lose(disk, 9)
    manage(disk)
    assert [line for line in errors(caplog) if "ends at offset 9, but ended at 12" in line]


def test_a_start_reads_no_more_than_before_and_an_inspection_only_the_ends() -> None:
    disk = stopped()
    read = watch(disk, "read", ".log")
    manager = manage(disk)
    assert {event.path for event in read} <= {path(9, ".log", DIRECTORY)}
    read.clear()
    inspect(manager)
    assert [event.size for event in read] == [BATCH] * 3  # behind the last index entry


def test_a_gap_that_compaction_made_is_no_hole(caplog: pytest.LogCaptureFixture) -> None:
    disk = stopped(COMPACTED)
    lose(disk, 6)  # as if nothing of it had been the last of its key
    manager = manage(disk, COMPACTED)
    inspect(manager)
    assert readable(log_of(manager)) == WHOLE and not errors(caplog)


def test_but_a_compacted_log_that_was_cut_has_one(caplog: pytest.LogCaptureFixture) -> None:
    disk = stopped(COMPACTED)
    cut(disk, 3, 2 * BATCH + 40)
    manager = manage(disk, COMPACTED)
    inspect(manager)
    assert readable(log_of(manager)) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert len(errors(caplog)) == 1


def test_a_log_that_once_was_compacted_keeps_its_gaps_when_its_policy_changes(caplog: pytest.LogCaptureFixture) -> None:
    disk = stopped(COMPACTED)
    lose(disk, 6)
    manager = manage(disk, COMPACTED)
    manager.update_topic_config("orders", SETTINGS)
    assert readable(log_of(manager)) == WHOLE
    manager.shutdown(NOW)
    again = manage(disk.process_crash(), SETTINGS)
    inspect(again)
    assert readable(log_of(again)) == WHOLE and not errors(caplog)


def test_a_policy_of_compaction_lets_readers_pass() -> None:
    """The way out that the log names."""
    disk = stopped()
    lose(disk, 6)
    manager = manage(disk)
    assert 6 not in readable(log_of(manager))
    manager.update_topic_config("orders", COMPACTED)
    assert 6 in readable(log_of(manager))


def test_deleting_the_records_before_the_hole_is_a_way_out() -> None:
    disk = stopped()
    lose(disk, 6)
    log = log_of(manage(disk))
    log.increment_log_start_offset(9, "a test")
    assert readable(log) == [9, 10, 11]


def test_a_high_watermark_in_a_hole_holds_up_nobody() -> None:
    disk = stopped()
    lose(disk, 6)
    log = manage(disk).get(ORDERS)
    assert log is not None
    log.update_high_watermark(7)
    assert log.read(0, 10_000, FetchIsolation.HIGH_WATERMARK).records is not None
    assert log.fetch_high_watermark().offset == 7


def test_segments_that_are_deleted_while_they_are_looked_at_are_no_matter(caplog: pytest.LogCaptureFixture) -> None:
    disk = stopped()
    manager = manage(disk)
    inspections = list(manager.inspections())
    log = log_of(manager)
    log.truncate_to(4, NOW)
    for inspection in inspections:
        inspection.run()
        manager.inspected(inspection)
    assert not errors(caplog) and readable(log) == [0, 1, 2, 3]


# -- replicas of a log that once was compacted


KEPT = (2, 5, 8, 11)


def batches(offsets: tuple[int, ...] = KEPT) -> list[bytes]:
    """What a leader sends of a log whose other batches compaction has removed."""
    log = log_of(manage(stopped()))
    found = []
    for offset in offsets:
        records = log.read(offset, BATCH, FetchIsolation.LOG_END).records
        assert records is not None
        found.append(records.read())
    return found


def follow(manager: LogManager, fetched: list[bytes]) -> Log:
    log = manager.get_or_create(ORDERS, NOW)
    for data in fetched:
        log.append_as_follower(data, NOW)
    return log


@pytest.mark.parametrize(("kept", "at_once"), [(KEPT, 1), (KEPT, 2), ((0, 1, 2, 11), 4)])
def test_a_new_replica_of_a_log_that_once_was_compacted_takes_its_gaps_for_what_they_are(
    caplog: pytest.LogCaptureFixture, kept: tuple[int, ...], at_once: int
) -> None:
    manager = manage(SimulatedFiles(), config(segment_bytes=400))
    sent = batches(kept)
    follow(manager, [b"".join(sent[first : first + at_once]) for first in range(0, len(sent), at_once)])
    inspect(manager)
    assert readable(log_of(manager)) == WHOLE and not errors(caplog)


def test_a_replica_that_is_killed_keeps_what_is_behind_a_gap(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimulatedFiles()
    follow(manage(disk), batches())
    manager = manage(disk.process_crash())
    inspect(manager)
    assert readable(log_of(manager)) == WHOLE and not errors(caplog)


@pytest.mark.parametrize("seed", range(5))
def test_a_replica_whose_machine_dies_has_no_holes_where_the_leader_has_gaps(caplog: pytest.LogCaptureFixture, seed: int) -> None:
    disk = SimulatedFiles()
    follow(manage(disk), batches()).flush()
    manager = manage(disk.crash(random.Random(seed)))
    inspect(manager)
    assert readable(log_of(manager)) == WHOLE and not errors(caplog)


def test_a_replica_takes_nothing_behind_a_gap_before_the_gap_is_noted() -> None:
    disk = SimulatedFiles()
    manager = manage(disk)
    log = follow(manager, batches((0,)))
    disk.fail_when(lambda event: "cleaner-offset-checkpoint" in event.path)
    with pytest.raises(KafkaStorageError):
        log.append_as_follower(batches()[0], NOW)
    assert log.log_end_offset == 1


def test_a_gap_is_noted_once() -> None:
    disk = SimulatedFiles()
    manager = manage(disk)
    written = watch(disk, "rename", "cleaner-offset-checkpoint.tmp")
    follow(manager, batches())
    assert len(written) == 1


def test_a_compacted_replica_knows_of_its_gaps_when_the_policy_changes_while_its_broker_is_stopped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = SimulatedFiles()
    manager = manage(disk, COMPACTED)
    follow(manager, batches())
    manager.shutdown(NOW)
    again = manage(disk.process_crash(), SETTINGS)
    inspect(again)
    assert readable(log_of(again)) == WHOLE and not errors(caplog)


def test_a_replica_without_gaps_has_a_hole_where_a_segment_is_missing() -> None:
    disk = SimulatedFiles()
    manager = manage(disk)
    follow(manager, batches(tuple(WHOLE)))
    manager.shutdown(NOW)
    disk = disk.process_crash()
    lose(disk, 6)
    assert readable(log_of(manage(disk))) == [0, 1, 2, 3, 4, 5, 9, 10, 11]


def test_a_log_that_moves_to_another_directory_takes_its_gaps_along(caplog: pytest.LogCaptureFixture) -> None:
    """Also where the copy was made by a broker that did not note them."""
    disk = stopped(COMPACTED)
    lose(disk, 6)
    manager = LogManager(disk, [A, B], COMPACTED, LogManagerConfig(num_recovery_threads_per_data_dir=1))
    manager.load(NOW)
    manager.update_topic_config("orders", SETTINGS)
    future = manager.get_or_create(ORDERS, NOW, is_future=True, directory=B)
    for data in batches((0, 1, 2, 3, 4, 5, 9, 10, 11)):
        future.append_as_follower(data, NOW)
    future.gaps_are_losses = True
    manager.replace_current_with_future(ORDERS)
    inspect(manager)
    assert log_of(manager).log_dir == B
    assert readable(log_of(manager)) == WHOLE and not errors(caplog)
