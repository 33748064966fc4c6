"""What a manager does regularly, later, and on the disk: retention, flushes, checkpoints and expiring producers."""

from __future__ import annotations

import random
import threading

import pytest

from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.disk.later import Later
from barnabas.storage.leader_epochs import EpochEntry
from barnabas.storage.log_config import LONG_MAX
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.topic_partition import TopicPartition
from tests.unit.storage.log_manager.managing import (
    ORDERS,
    RECOVERY,
    WATERMARKS,
    A,
    B,
    checkpoint,
    manage,
    tick,
)
from tests.unit.storage.logs import NOW, append, append_many, batch, commit_all, config, watch

# -- what is done regularly


def test_retention_is_checked_every_interval(disk: SimulatedFiles) -> None:
    manager = manage(disk, A, default=config(retention_ms=1000))
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 3)
    commit_all(log)
    tick(manager, NOW + 29_999)
    assert log.log_start_offset == 0
    tick(manager, NOW + 30_000)
    assert log.log_start_offset == 3
    append_many(log, 1)
    commit_all(log)
    tick(manager, NOW + 329_999)
    assert log.log_start_offset == 3
    tick(manager, NOW + 330_000)
    assert log.log_start_offset == 4


def test_flush_ms_is_checked_by_the_flusher(disk: SimulatedFiles) -> None:
    settings = LogManagerConfig(num_recovery_threads_per_data_dir=1, flush_scheduler_interval_ms=1000)
    manager = manage(disk, A, default=config(flush_ms=5000), settings=settings)
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 3)
    tick(manager, NOW + 1000)  # sees the log for the first time
    tick(manager, NOW + 5999)
    assert manager.flushes.take() == []
    tick(manager, NOW + 7000)
    manager.flushes.run_all(NOW + 7000)
    assert log.recovery_point == 3 and log.durability.last_flush_ms == NOW + 7000
    tick(manager, NOW + 20_000)
    assert manager.flushes.take() == []


def test_a_new_directory_gets_its_recovery_point_checkpoint_at_once(disk: SimulatedFiles) -> None:
    manage(disk, A)
    assert checkpoint(disk, A, RECOVERY) == "0\n0\n"


def test_logs_found_without_a_recovery_point_checkpoint_are_flushed_and_noted(disk: SimulatedFiles) -> None:
    append_many(manage(disk, A).get_or_create(ORDERS, NOW), 3)
    disk.remove(f"{A}/{RECOVERY}")
    manage(left := disk.process_crash(), A)
    assert checkpoint(left, A, RECOVERY) == "0\n1\norders 0 3\n"


def test_the_checkpoints_are_written_every_so_often(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 3)
    log.flush(NOW)
    commit_all(log)
    manager.role_given(log)
    tick(manager, NOW + 4_999)
    assert checkpoint(disk, A, WATERMARKS) == ""
    tick(manager, NOW + 5_000)
    assert checkpoint(disk, A, WATERMARKS) == "0\n1\norders 0 3\n"
    assert checkpoint(disk, A, RECOVERY) == "0\n0\n"
    tick(manager, NOW + 30_000)
    assert checkpoint(disk, A, RECOVERY) == "0\n1\norders 0 3\n"
    append_many(log, 1)
    log.flush(NOW)
    tick(manager, NOW + 89_999)
    assert checkpoint(disk, A, RECOVERY) == "0\n1\norders 0 3\n"
    tick(manager, NOW + 90_000)
    assert checkpoint(disk, A, RECOVERY) == "0\n1\norders 0 4\n"


def test_producers_expire_regularly(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    append(log, batch(producer_id=7, producer_epoch=0, base_sequence=0))
    tick(manager, NOW + 86_399_999)
    assert 7 in log.producers.active_producers
    tick(manager, NOW + 2 * 86_400_000)
    assert log.producers.active_producers == {}


def test_a_roll_is_followed_by_a_flush_of_what_was_rolled(disk: SimulatedFiles) -> None:
    manager = manage(disk, A, default=config(segment_bytes=150))
    log = manager.get_or_create(ORDERS, NOW)
    for _ in range(3):
        append(log, batch(size=150))
    plans = manager.flushes.take()
    assert [(log_, plan.recovery_point) for log_, plan in plans] == [(log, 2)]
    assert plans[0][1].run()
    log.flushed(plans[0][1], NOW)
    assert log.recovery_point == 2
    assert manager.flushes.take() == []


def test_a_deleted_log_is_not_flushed_any_more(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 3)
    manager.flush_later(log, 3)
    manager.delete(ORDERS)
    assert manager.flushes.take() == []


def test_retention_leaves_alone_what_the_cleaner_is_at_work_on(disk: SimulatedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = manage(disk, A, default=config(retention_ms=1))
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 3)
    commit_all(log)
    monkeypatch.setattr(manager.cleaner, "pause", lambda partition: False)
    assert manager.delete_old_segments(NOW + 5000) == 0


def test_a_directory_that_fails_in_the_middle_of_retention_does_not_stop_the_others(disk: SimulatedFiles) -> None:
    manager = manage(disk, default=config(retention_ms=1))
    made = [manager.get_or_create(TopicPartition("t", n), NOW, directory=(A, B)[n % 2]) for n in range(4)]
    for log in made:
        append_many(log, 3)
        commit_all(log)
    disk.fail_when(lambda event: event.kind == "rename" and event.path.startswith(A))
    manager.delete_old_segments(NOW + 5000)
    assert list(manager.offline_dirs) == [A]
    assert [log.log_start_offset for log in manager.logs] == [3, 3]


def test_a_log_without_flushes_never_syncs(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 3)
    synced = watch(disk, "sync", ".log")
    tick(manager, NOW + 10_000_000)
    manager.flushes.run_all(NOW)
    assert synced == [] and log.config.flush_ms == LONG_MAX


# -- things to do later


def test_what_is_due_comes_in_the_order_of_its_time() -> None:
    later, done = Later(), []
    for name, delay_ms in (("second", 20), ("first", 10), ("also second", 20), ("third", 30)):
        later.add(lambda name=name: done.append(name), delay_ms)  # type: ignore[misc]
    assert len(later) == 4 and later.take_due(100) == []
    for action in later.take_due(120):
        action()
    assert done == ["first", "second", "also second"]
    assert len(later) == 1 and later.take_due(129) == []


# -- what waits for the disk


def test_the_epochs_of_flushed_records_survive_the_machine(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    for epoch in (1, 1, 3):
        append(log, epoch=epoch)
    manager.flush_later(log, log.log_end_offset)
    manager.flushes.run_all(NOW)
    manager.checkpoints.write_recovery_points()
    reopened = manage(disk.crash(random.Random(1)), A).get(ORDERS)
    assert reopened is not None
    assert reopened.epochs.entries == [EpochEntry(1, 0), EpochEntry(3, 2)]


@pytest.mark.parametrize("seed", range(20))
def test_a_flush_makes_the_name_of_a_new_log_durable_too(disk: SimulatedFiles, seed: int) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 3)
    manager.flush_later(log, 3)
    manager.flushes.run_all(NOW)
    reopened = manage(disk.crash(random.Random(seed)), A).get(ORDERS)
    assert reopened is not None
    assert reopened.log_end_offset == 3


def test_many_new_logs_are_made_durable_by_one_sync(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    logs = [manager.get_or_create(TopicPartition("many", number), NOW) for number in range(5)]
    sync = manager.dir_syncs.take()
    assert sync is not None
    assert sync.paths == [A]
    sync.run()
    manager.dir_syncs.ran(sync)
    assert not any(log.durability.directory_is_new for log in logs)
    assert manager.dir_syncs.take() is None


def test_closing_a_log_that_has_not_changed_syncs_nothing(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    append_many(manager.get_or_create(ORDERS, NOW), 3)
    manager.get_or_create(TopicPartition("empty", 0), NOW)
    manager.shutdown(NOW)
    reopened = manage(disk, A)
    before = disk.events
    for log in reopened.logs:
        log.close(NOW)
    assert disk.events == before


def test_an_old_checkpoint_does_not_take_the_place_of_a_newer_one(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 3)
    manager.flush_later(log, 3)
    manager.flushes.run_all(NOW)
    late = manager.dirs[A].take_recovery_points(manager.logs)
    manager.truncate_to(ORDERS, 1, NOW)
    late.run()
    assert manager.dirs[A].recovery_points.read() == {ORDERS: 1}


def test_a_lost_copy_does_not_give_up_the_cleaning_of_the_log(disk: SimulatedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = manage(disk, A, B)
    manager.get_or_create(ORDERS, NOW, directory=A)
    manager.get_or_create(ORDERS, NOW, is_future=True, directory=B)
    removed: list[TopicPartition] = []
    monkeypatch.setattr(manager.cleaner, "removed", removed.append)
    manager.disk_failed(B, "gone", OSError())
    assert removed == []


def test_a_failure_that_another_thread_reports_is_dealt_with_by_the_next_tick(disk: SimulatedFiles) -> None:
    manager = manage(disk, A, B)
    reporter = threading.Thread(target=manager.disk_failed, args=(B, "gone", OSError()))
    reporter.start()
    reporter.join()
    assert set(manager.dirs) == {A, B}
    tick(manager, NOW)
    assert set(manager.dirs) == {A}
