"""The checkpoints of recovery points, log start offsets and high watermarks."""

from __future__ import annotations

import pytest

from barnabas.simulation.disk import DiskEvent, SimulatedFiles
from barnabas.topic_partition import TopicPartition
from tests.unit.storage.log_manager.managing import (
    BILLS,
    ORDERS,
    RECOVERY,
    RETURNS,
    STARTS,
    WATERMARKS,
    A,
    B,
    checkpoint,
    manage,
    restart,
    tick,
)
from tests.unit.storage.logs import NOW, append, append_many, batch, commit_all, config, records, watch, write_file


def test_the_checkpoints_are_kafkas_text(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    orders = manager.get_or_create(ORDERS, NOW)
    append_many(orders, 8)
    orders.update_high_watermark(6)
    orders.increment_log_start_offset(2, "test")
    orders.flush(NOW)
    append_many(orders, 1)
    manager.role_given(orders)
    manager.role_given(manager.get_or_create(BILLS, NOW))
    manager.checkpoints.write_recovery_points()
    manager.checkpoints.write_log_start_offsets()
    manager.checkpoints.write_high_watermarks()
    assert checkpoint(disk, A, RECOVERY) == "0\n2\norders 0 8\nbills 3 0\n"
    assert checkpoint(disk, A, STARTS) == "0\n1\norders 0 2\n"
    assert checkpoint(disk, A, WATERMARKS) == "0\n2\norders 0 6\nbills 3 0\n"


def test_high_watermarks_are_checkpointed_of_the_logs_that_have_a_role_and_kept_of_the_others(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    for partition, high_watermark in ((ORDERS, 3), (BILLS, 2), (RETURNS, 1)):
        log = manager.get_or_create(partition, NOW)
        manager.role_given(log)
        append_many(log, 4)
        log.update_high_watermark(high_watermark)
    manager.shutdown(NOW)
    again = manage(disk, A)
    assert checkpoint(disk, A, WATERMARKS) == "0\n3\norders 0 3\nbills 3 2\nreturns 1 1\n"
    again.checkpoints.write_high_watermarks()
    tick(again, NOW + 5_000)
    assert checkpoint(disk, A, WATERMARKS) == "0\n3\norders 0 3\nbills 3 2\nreturns 1 1\n"
    orders = again.get(ORDERS)
    assert orders is not None and orders.high_watermark == 0
    again.role_given(orders)
    assert orders.high_watermark == 3
    orders.update_high_watermark(4)
    again.delete(RETURNS)
    again.checkpoints.write_high_watermarks()
    assert sorted(checkpoint(disk, A, WATERMARKS).splitlines()) == ["0", "2", "bills 3 2", "orders 0 4"]
    again.shutdown(NOW)
    assert sorted(checkpoint(disk, A, WATERMARKS).splitlines()) == ["0", "2", "bills 3 2", "orders 0 4"]


def test_every_directory_has_checkpoints_of_its_own(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    manager.get_or_create(ORDERS, NOW, directory=A)
    manager.get_or_create(BILLS, NOW, directory=B)
    manager.checkpoints.write_recovery_points()
    assert checkpoint(disk, A, RECOVERY) == "0\n1\norders 0 0\n"
    assert checkpoint(disk, B, RECOVERY) == "0\n1\nbills 3 0\n"


def test_deleted_records_stay_deleted_after_a_restart(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 8)
    commit_all(log)
    log.increment_log_start_offset(5, "client delete records request")
    manager.checkpoints.write_log_start_offsets()
    again = restart(disk, A).get(ORDERS)
    assert again is not None and [o for o, _ in records(again)] == [5, 6, 7]


@pytest.mark.parametrize("content", [b"garbage", b"0\n5\norders 0 1\n", b"1\n0\n", b"\xff\xfe"])
def test_an_unreadable_recovery_checkpoint_means_recovering_everything(
    disk: SimulatedFiles, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    manager = manage(disk, A, default=config(segment_bytes=150))
    log = manager.get_or_create(ORDERS, NOW)
    for _ in range(4):
        append(log, batch(size=150))
    manager.flushes.run_all(NOW)
    manager.checkpoints.write_recovery_points()
    files = disk.process_crash()
    write_file(files, f"{A}/{RECOVERY}", content)
    read = watch(files, "read", ".log")
    again = manage(files, A, default=config(segment_bytes=150))
    assert len({event.path for event in read}) == 4 and len(records(again.logs[0])) == 4
    assert RECOVERY in caplog.text and "All logs will be recovered from their beginning" in caplog.text


def test_an_unreadable_log_start_checkpoint_falls_back_to_the_first_segments(
    disk: SimulatedFiles, caplog: pytest.LogCaptureFixture
) -> None:
    manager = manage(disk, A)
    append_many(manager.get_or_create(ORDERS, NOW), 3)
    manager.shutdown(NOW)
    files = disk.process_crash()
    write_file(files, f"{A}/{STARTS}", b"nonsense\n")
    assert manage(files, A).logs[0].log_start_offset == 0
    assert STARTS in caplog.text


def test_a_failing_checkpoint_takes_its_directory_offline(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    manager.get_or_create(ORDERS, NOW, directory=A)
    manager.get_or_create(BILLS, NOW, directory=B)
    disk.fail_when(lambda event: event.kind == "write" and event.path.startswith(f"{A}/{RECOVERY}"))
    manager.checkpoints.write_recovery_points()
    assert list(manager.offline_dirs) == [A] and [log.partition for log in manager.logs] == [BILLS]
    assert disk.exists(f"{B}/{RECOVERY}")


def test_a_compacted_log_with_gaps_is_not_taken_for_a_damaged_one(disk: SimulatedFiles) -> None:
    """Whatever its cleanup policy is now: the cleaner's checkpoint tells that it has been compacted."""
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    for offset in (0, 5, 9):
        log.append_as_follower(batch(offset=offset), NOW)
        log.roll(NOW)
    files = disk.process_crash()
    write_file(files, f"{A}/cleaner-offset-checkpoint", b"0\n1\norders 0 9\n")
    assert [o for o, _ in records(manage(files, A).logs[0])] == [0, 5, 9]


@pytest.mark.parametrize("is_there", [False, True])
def test_without_recovery_points_a_gap_is_not_taken_for_a_loss(disk: SimulatedFiles, is_there: bool) -> None:
    """Kafka makes the checkpoint empty and writes it a minute later: one that is empty says as little as none."""
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    for offset in (0, 5, 9):
        log.append_as_follower(batch(offset=offset), NOW)
        log.roll(NOW)
    files = disk.process_crash()
    files.remove(f"{A}/{RECOVERY}")
    if is_there:
        write_file(files, f"{A}/{RECOVERY}", b"")
    assert [o for o, _ in records(manage(files, A).logs[0])] == [0, 5, 9]


def test_logs_that_are_no_longer_compacted_are_noted_in_one_write_for_each_directory(disk: SimulatedFiles) -> None:
    """Each write is synced: one for each log held the event loop for seconds."""
    manager = manage(disk, A, B, default=config(cleanup_policy=frozenset({"compact", "delete"})))
    partitions = [TopicPartition("orders", number) for number in range(20)]
    for partition in partitions:
        manager.get_or_create(partition, NOW)
    names: list[str] = []

    def is_noted(event: DiskEvent) -> bool:
        if event.kind == "write" and "cleaner-offset-checkpoint" in event.path:
            names.append(event.path)
        return False

    disk.fail_when(is_noted)
    manager.update_default_config(config(cleanup_policy=frozenset({"delete"})), {})
    assert sorted(path.split("/")[1] for path in names) == ["a", "b"]
    assert all(manager.cleaner.checkpoint_of(partition) == 0 for partition in partitions)
    assert not any(log.config.compact for log in manager.logs)
    manager.update_default_config(config(cleanup_policy=frozenset({"delete"})), {})
    assert len(names) == 2
