from __future__ import annotations

import errno
import random

import pytest

from barnabas.errors import (
    KafkaStorageError,
)
from barnabas.records.batch import read_batches
from barnabas.records.validation.validator import COORDINATOR
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.host import DirectHost
from barnabas.storage.log.append import LogAppend
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.storage.log_offset import LogOffset
from tests.unit.storage.logs import (
    DIRECTORY,
    LOG_DIR,
    NOW,
    PARTITION,
    RecordingHost,
    append,
    append_many,
    batch,
    config,
    file_name,
    make_log,
    marker,
    names_in,
    path,
    produced,
    records,
    restarted,
    values,
    watch,
)

# -- rolling


def test_a_segment_that_is_full_is_rolled(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(segment_bytes=250))
    for _ in range(5):
        append(log, batch(size=100))
    assert log.segments.base_offsets == [0, 2, 4]
    assert file_name(4, ".log") in names_in(disk)


def test_a_segment_is_rolled_by_the_time_of_its_records(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(segment_ms=1000))
    for timestamp in (NOW, NOW + 1000, NOW + 1001, NOW + 500):
        append(log, batch(timestamp=timestamp))
    assert log.segments.base_offsets == [0, 2]


def test_the_jitter_of_a_new_segment_is_asked_for(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(segment_ms=1000, segment_jitter_ms=300), jitter=lambda jitter_ms: jitter_ms)
    append(log, batch(timestamp=NOW))
    append(log, batch(timestamp=NOW + 700))
    assert len(log.segments) == 1
    append(log, batch(timestamp=NOW + 701))
    assert len(log.segments) == 2


def test_a_jitter_larger_than_the_age_does_not_roll_with_every_append(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(segment_ms=1000, segment_jitter_ms=10**9), jitter=lambda jitter_ms: jitter_ms)
    append(log, batch(timestamp=NOW))
    append(log, batch(timestamp=NOW))
    assert len(log.segments) == 1


def test_a_compacted_log_is_rolled_in_time_for_its_compaction(disk: SimulatedFiles) -> None:
    settings = config(segment_ms=10_000, max_compaction_lag_ms=1000, cleanup_policy=frozenset({"compact"}))
    log = make_log(disk, settings)
    append(log, batch(key=b"k", timestamp=NOW))
    append(log, batch(key=b"k", timestamp=NOW + 1001))
    assert len(log.segments) == 2


def test_a_follower_rolls_when_an_offset_is_out_of_reach(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    log.append_as_follower(batch(), NOW)
    log.append_as_follower(batch(offset=2**31 - 1), NOW)
    assert log.segments.base_offsets == [0]
    log.append_as_follower(batch(offset=2**31 + 5), NOW)
    assert log.segments.base_offsets == [0, 2**31 + 5]
    assert [offset for offset, _ in records(log)] == [0, 2**31 - 1, 2**31 + 5]


def test_a_follower_rolls_old_formats_as_low_as_their_first_offset_may_be(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    log.append_as_follower(batch(magic=1), NOW)
    far = 2**33
    log.append_as_follower(batch(magic=1, offset=far), NOW)
    assert log.segments.base_offsets == [0, far - (2**31 - 1)]


def test_an_index_that_is_full_rolls_the_segment(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(index_interval_bytes=0, segment_index_bytes=36))
    append_many(log, 10)
    assert len(log.segments) > 1
    assert all(segment.offset_index.entries <= 4 and segment.time_index.entries <= 3 for segment in log.segments)
    assert len(records(log)) == 10


def test_an_empty_segment_with_a_full_index_is_replaced(disk: SimulatedFiles, host: RecordingHost) -> None:
    """A time index that has room for the final entry only is full from the start."""
    log = make_log(disk, config(segment_index_bytes=12), host=host)
    append_many(log, 2)
    assert [offset for offset, _ in records(log)] == [0, 1]
    host.delete_due(2**62)
    assert values(make_log(restarted(disk), config())) == [b"0", b"1"]


def test_a_rolled_segment_ends_its_time_index_with_its_largest_timestamp(disk: SimulatedFiles) -> None:
    log = make_log(disk)
    append(log, batch(timestamp=NOW + 5))
    append(log, batch(timestamp=NOW + 1))
    log.roll(NOW)
    assert disk.read_bytes(path(0, ".timeindex")) == (NOW + 5).to_bytes(8, "big") + bytes(4)


def test_a_roll_takes_a_snapshot_of_the_producers_and_asks_for_a_flush(log: Log, host: RecordingHost, disk: SimulatedFiles) -> None:
    append(log, produced(9, 0, 3))
    log.roll(NOW)
    assert file_name(3, ".snapshot") in names_in(disk)
    assert host.flushes == [(log, 3)]


def test_a_roll_moves_the_log_end_to_the_new_segment(log: Log) -> None:
    append_many(log, 3)
    assert log.end == LogOffset(3, 0, log.active_segment.size)
    log.roll(NOW)
    assert log.end == LogOffset(3, 3, 0)


def test_leftover_files_of_a_new_segment_are_removed(disk: SimulatedFiles, log: Log) -> None:
    append_many(log, 3)
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        file = disk.open(path(3, suffix), create=True)
        file.append_bytes(b"leftover" * 17)
        file.close()
    log.roll(NOW)
    append_many(log, 1)
    assert values(log) == [b"0", b"1", b"2", b"3"]
    assert file_name(3, ".txnindex") not in names_in(disk)


# -- flushing


def test_an_append_leaves_the_disk_alone(disk: SimulatedFiles, log: Log) -> None:
    append(log)
    synced, dirs_synced = watch(disk, "sync"), watch(disk, "sync_dir")
    append_many(log, 50)
    assert synced == dirs_synced == []


def test_flush_messages_asks_for_a_flush_when_so_many_are_unflushed(disk: SimulatedFiles, host: RecordingHost) -> None:
    log = make_log(disk, config(flush_messages=3), host=host)
    append_many(log, 2)
    assert host.flushes == []
    append_many(log, 1)
    assert host.flushes == [(log, 3)]


def test_the_result_of_an_append_says_whether_it_waits_for_the_flush_and_so_does_that_of_its_retry(
    disk: SimulatedFiles, host: RecordingHost
) -> None:
    log = make_log(disk, config(flush_messages=2), host=host)
    first, second = produced(7, 0), produced(7, 1)
    assert not append(log, first).must_flush
    assert append(log, second).must_flush
    retry = append(log, first)
    assert retry.duplicate and retry.must_flush
    log.flush(NOW)
    retry = append(log, second)
    assert retry.duplicate and not retry.must_flush


def test_a_flush_moves_the_recovery_point(log: Log) -> None:
    append_many(log, 3)
    assert (log.recovery_point, log.unflushed_messages) == (0, 3)
    log.flush(NOW + 50)
    assert (log.recovery_point, log.unflushed_messages, log.durability.last_flush_ms) == (3, 0, NOW + 50)


def test_a_flush_below_an_offset_leaves_the_segments_from_there_on(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(segment_bytes=150))
    for _ in range(3):
        append(log, batch(size=150))
    log.flush_below(2)
    assert log.recovery_point == 2
    synced = watch(disk, "sync")
    log.flush(NOW)
    assert {event.path for event in synced} == {path(2, suffix) for suffix in (".log", ".index", ".timeindex")}


def test_what_was_flushed_survives_any_crash_of_the_machine(disk: SimulatedFiles) -> None:
    log = make_log(disk, config(segment_bytes=300))
    append_many(log, 10)
    log.flush(NOW)
    append_many(log, 5)
    for seed in range(30):
        again = make_log(disk.crash(random.Random(seed)), config(segment_bytes=300))
        assert values(again)[:10] == [b"%d" % n for n in range(10)]


def test_a_plan_that_ran_while_the_log_was_truncated_vouches_for_nothing(log: Log) -> None:
    append_many(log, 10)
    plan = log.prepare_flush(10)
    assert plan is not None
    log.truncate_to(5, NOW)
    append_many(log, 10)
    plan.run()
    log.flushed(plan, NOW)
    assert log.recovery_point <= 5


def test_a_plan_can_run_after_a_segment_of_it_was_deleted(disk: SimulatedFiles, host: RecordingHost) -> None:
    log = make_log(disk, config(segment_bytes=150), host=host)
    for _ in range(3):
        append(log, batch(size=150))
    plan = log.prepare_flush(3)
    assert plan is not None
    log.update_high_watermark(3)
    log.increment_log_start_offset(2, "test")
    log.delete_old_segments(NOW)
    host.delete_due(2**62)
    assert plan.run()
    log.flushed(plan, NOW)
    assert log.recovery_point == 3


def test_a_plan_whose_directory_was_renamed_says_so_and_the_next_flush_sees_to_it(disk: SimulatedFiles, log: Log) -> None:
    append_many(log, 3)
    plan = log.prepare_flush(3)
    assert plan is not None
    log.rename_dir("orders-0.abc-delete")
    assert not plan.run()
    assert log.recovery_point == 0
    log.flush(NOW)
    assert log.recovery_point == 3


def test_a_flush_that_ran_while_the_log_was_let_go_of_proves_nothing(log: Log) -> None:
    append_many(log, 3)
    plan = log.prepare_flush(3)
    assert plan is not None
    log.close_handlers()
    plan.run()
    log.flushed(plan, NOW)
    assert log.recovery_point == 0


def test_a_log_that_stands_alone_flushes_at_once(disk: SimulatedFiles) -> None:
    log = load_log(LoadRequest(disk, DIRECTORY, PARTITION, config(flush_messages=2), DirectHost(), NOW))
    append_many(log, 3)
    assert log.recovery_point == 2


# -- a failing disk


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_failed_write_is_reported_and_leaves_no_half_batch(disk: SimulatedFiles, host: RecordingHost, error: int) -> None:
    log = make_log(disk, host=host)
    append_many(log, 3)
    before = disk.read_bytes(path(0, ".log"))
    disk.fail_next("write", error)
    with pytest.raises(KafkaStorageError, match=r"Error while appending records for orders-0 in dir /data"):
        append(log)
    assert log.log_end_offset == 3
    assert disk.read_bytes(path(0, ".log")) == before
    assert [directory for directory, _ in host.failures] == [LOG_DIR]


def test_a_full_disk_is_reported_and_leaves_no_half_batch() -> None:
    host = RecordingHost()
    disk = SimulatedFiles(capacity=2000)
    log = make_log(disk, host=host)
    with pytest.raises(KafkaStorageError):
        append_many(log, 1000)
    assert host.failures
    data = disk.read_bytes(path(0, ".log"))
    assert sum(b.size for b in read_batches(data)) == len(data)
    assert len(read_batches(data)) == log.log_end_offset


def test_a_log_takes_nothing_more_once_its_disk_has_failed(disk: SimulatedFiles, log: Log) -> None:
    """An index may have failed after the batch was written: to go on would give its offsets to other records."""
    append_many(log, 3)
    disk.fail_next("write")
    with pytest.raises(KafkaStorageError):
        append(log)
    with pytest.raises(KafkaStorageError):
        append(log)
    with pytest.raises(KafkaStorageError):
        log.append_as_follower(batch(offset=3), NOW)
    assert log.log_end_offset == 3
    assert values(make_log(restarted(disk))) == [b"0", b"1", b"2"]


def test_a_batch_whose_index_entry_failed_is_not_acknowledged_and_offsets_stay_unique(disk: SimulatedFiles) -> None:
    settings = config(index_interval_bytes=0)
    log = make_log(disk, settings)
    disk.fail_when(lambda event: event.kind == "write" and event.path.endswith(".index"))
    with pytest.raises(KafkaStorageError):
        append_many(log, 1000)
    acknowledged = log.log_end_offset
    again = make_log(restarted(disk), settings)
    append_many(again, 3)
    found = values(again)
    assert found == [b"%d" % n for n in range(len(found))] and len(found) >= acknowledged + 3


@pytest.mark.parametrize("kind", ["create", "write", "rename", "sync"])
def test_a_disk_that_fails_while_rolling_is_reported(disk: SimulatedFiles, host: RecordingHost, kind: str) -> None:
    log = make_log(disk, host=host)
    append_many(log, 3)
    disk.fail_when(lambda event: event.kind == kind)
    if kind == "sync":
        with pytest.raises(KafkaStorageError):
            log.flush(NOW)
    else:
        with pytest.raises(KafkaStorageError, match="while rolling log segment"):
            log.roll(NOW)
    assert len(host.failures) == 1
    assert log.log_end_offset == 3


def test_a_failed_roll_loses_nothing(disk: SimulatedFiles) -> None:
    for number in range(1, 25):
        files = SimulatedFiles()
        log = make_log(files)
        append_many(log, 3)
        start = files.events
        files.fail_when(lambda event, at=start + number: event.number == at)  # type: ignore[misc]
        try:
            log.roll(NOW)
            append_many(log, 1)
        except KafkaStorageError:
            pass
        again = make_log(restarted(files))
        append_many(again, 2)
        found = values(again)
        assert found == [b"%d" % n for n in range(len(found))] and len(found) >= 5


def test_an_error_of_the_transaction_index_comes_after_the_log_end_has_moved(disk: SimulatedFiles, log: Log) -> None:
    """Offsets keep growing; the index is rebuilt when the directory is loaded again."""
    append(log, produced(7, 0, transactional=True))
    disk.fail_when(lambda event: event.path.endswith(".txnindex"))
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(LogAppend(marker(7, False), NOW, origin=COORDINATOR), 0)
    assert log.log_end_offset == 2
    again = make_log(restarted(disk))
    assert [txn.producer_id for txn in again.collect_aborted(0, 10)] == [7]


def test_a_closed_log_takes_nothing(log: Log) -> None:
    log.close(NOW)
    with pytest.raises(KafkaStorageError, match="The log of orders-0 is closed"):
        append(log)
