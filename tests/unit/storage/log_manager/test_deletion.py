"""Logs that are deleted, stray logs that no topic claims, and future logs that replace current ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.errors import KafkaStorageError
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.disk.files import Files
from barnabas.storage.log_manager import LogManager
from barnabas.topic_partition import TopicPartition
from tests.unit.storage.log_manager.managing import (
    BILLS,
    ID,
    ORDERS,
    OTHER_ID,
    RECOVERY,
    A,
    B,
    checkpoint,
    dirs_of,
    files_of,
    manage,
    restart,
    tick,
)
from tests.unit.storage.logs import NOW, append, append_many, batch, commit_all, config, names_in, values

# -- deleting


def test_a_deleted_log_is_renamed_at_once_and_removed_after_the_delay(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    append_many(manager.get_or_create(ORDERS, NOW), 3)
    manager.delete(ORDERS)
    assert manager.get(ORDERS) is None
    assert dirs_of(disk, A) == [f"orders-0.{1:032x}-delete"]
    manager.remove_deleted(NOW)
    manager.remove_deleted(NOW + 59_999)
    assert dirs_of(disk, A) == [f"orders-0.{1:032x}-delete"]
    manager.remove_deleted(NOW + 60_000)
    assert dirs_of(disk, A) == []


def test_a_topic_can_be_made_again_while_the_old_one_is_being_removed(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    append_many(manager.get_or_create(ORDERS, NOW), 3)
    manager.delete(ORDERS)
    log = manager.get_or_create(ORDERS, NOW)
    append(log, batch([b"new"]))
    manager.remove_deleted(NOW)
    manager.remove_deleted(NOW + 60_000)
    assert values(log) == [b"new"]
    assert dirs_of(disk, A) == ["orders-0"]


def test_a_deletion_that_a_crash_interrupts_is_finished_by_the_next_start(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    append_many(manager.get_or_create(ORDERS, NOW), 3)
    manager.delete(ORDERS)
    again = restart(disk, A, now_ms=NOW + 5)
    again.clear_away()
    assert again.logs == []
    again.remove_deleted(NOW + 5)
    again.remove_deleted(NOW + 60_004)
    assert dirs_of(files_of(again), A) != []
    again.remove_deleted(NOW + 60_005)
    assert dirs_of(files_of(again), A) == []


def test_a_deleted_log_is_gone_from_the_checkpoints_with_the_next_tick(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    manager.get_or_create(ORDERS, NOW)
    manager.checkpoints.write_recovery_points()
    manager.delete(ORDERS)
    tick(manager, NOW)
    assert checkpoint(disk, A, RECOVERY) == "0\n0\n"


def test_a_deleted_log_is_gone_from_the_checkpoints_before_another_of_its_name_is_made(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    manager.get_or_create(ORDERS, NOW)
    manager.checkpoints.write_recovery_points()
    manager.delete(ORDERS)
    manager.get_or_create(ORDERS, NOW)
    assert checkpoint(disk, A, RECOVERY) == "0\n0\n"


def test_deleting_a_log_that_does_not_exist_does_nothing(disk: SimulatedFiles) -> None:
    assert manage(disk).delete(ORDERS) is None


def test_deleting_a_log_that_may_be_on_an_offline_disk_is_refused(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    manager.disk_failed(A, "gone", OSError())
    with pytest.raises(KafkaStorageError, match="offline"):
        manager.delete(ORDERS)


def test_a_log_whose_rename_fails_is_let_go(tmp_path: Path) -> None:
    class Unrenamable:
        """Stands before the real files: those are compiled, and cannot be inherited from."""

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def rename(self, src: str, dst: str) -> None:
            if dst.endswith("-delete"):
                raise OSError(5, "Input/output error")
            real.rename(src, dst)

    real = Files()
    files = Unrenamable()
    manager = LogManager(files, [str(tmp_path / "one"), str(tmp_path / "two")], config())
    manager.load(NOW)
    log = manager._create(ORDERS, NOW, False, str(tmp_path / "one"))
    with pytest.raises(KafkaStorageError):
        manager.delete(ORDERS)
    assert list(manager.offline_dirs) == [str(tmp_path / "one")]
    assert files.pool.open_count == 0
    with pytest.raises(KafkaStorageError):
        append(log)


def test_what_cannot_be_deleted_is_left_for_the_next_start(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    log = manager.get_or_create(ORDERS, NOW, directory=A)
    append_many(log, 3)
    log.roll(NOW)
    commit_all(log)
    log.increment_log_start_offset(3, "test")
    log.delete_old_segments(NOW)
    disk.fail_when(lambda event: event.kind == "remove")
    manager.remove_deleted(NOW)
    manager.remove_deleted(NOW + 60_000)
    disk.heal()
    files = disk.process_crash()
    manage(files)
    assert not [name for name in names_in(files, f"{A}/orders-0") if name.endswith(".deleted")]


# -- stray and future logs


def unclaimed(disk: SimulatedFiles) -> tuple[SimulatedFiles, LogManager]:
    """Loaded again by a broker that does not know the topic of one of its two logs."""
    manager = manage(disk, A)
    append_many(manager.get_or_create(ORDERS, NOW, topic_id=ID), 3)
    manager.get_or_create(BILLS, NOW)
    manager.shutdown(NOW)
    return disk, manage(disk, A, is_stray=lambda log: log.partition == ORDERS)


def test_a_log_that_no_topic_claims_is_not_served_and_keeps_its_name_until_the_controller_has_spoken(disk: SimulatedFiles) -> None:
    files, again = unclaimed(disk)
    assert again.get(ORDERS) is None and again.get(BILLS) is not None
    assert dirs_of(files, A) == ["bills-3", "orders-0"]
    again.clear_away()
    assert [log.partition for log in again.stray_logs] == [ORDERS]
    assert dirs_of(files, A) == ["bills-3", f"orders-0.{1:032x}-stray"]


def test_a_start_that_fails_before_the_controller_has_spoken_leaves_a_log_that_nobody_claims_as_it_was(disk: SimulatedFiles) -> None:
    _, again = unclaimed(disk)
    again.shutdown(NOW)
    assert "orders 0 3" in checkpoint(disk, A, "recovery-point-offset-checkpoint")
    right = manage(disk, A)
    log = right.get(ORDERS)
    assert log is not None and log.log_end_offset == 3


def test_a_log_is_served_after_all_when_the_controller_names_its_topic_id(disk: SimulatedFiles) -> None:
    files, again = unclaimed(disk)
    assert again.get_or_create(ORDERS, NOW, topic_id=ID).log_end_offset == 3
    again.clear_away()
    assert dirs_of(files, A) == ["bills-3", "orders-0"] and again.stray_logs == []


def test_a_log_of_another_topic_of_the_name_makes_room_for_the_one_that_the_controller_orders(disk: SimulatedFiles) -> None:
    files, again = unclaimed(disk)
    assert again.get_or_create(ORDERS, NOW, topic_id=OTHER_ID).log_end_offset == 0
    assert dirs_of(files, A) == ["bills-3", "orders-0", f"orders-0.{1:032x}-stray"]


def test_a_log_that_was_marked_for_deletion_before_the_start_stays_until_the_controller_has_spoken(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    append_many(manager.get_or_create(ORDERS, NOW), 3)
    manager.delete(ORDERS)
    again = restart(disk, A)
    again.remove_deleted(NOW + 600_000)
    assert dirs_of(files_of(again), A) == [f"orders-0.{1:032x}-delete"]
    again.clear_away()
    again.remove_deleted(NOW)
    again.remove_deleted(NOW + 600_000)
    assert dirs_of(files_of(again), A) == []


def test_a_stray_directory_stays_stray(disk: SimulatedFiles) -> None:
    disk.make_dirs(f"{A}/orders-0.abc-stray")
    manager = manage(disk, A)
    assert manager.logs == [] and [log.directory for log in manager.stray_logs] == [f"{A}/orders-0.abc-stray"]
    manager.get_or_create(ORDERS, NOW)
    manager.shutdown(NOW)


def test_a_future_log_is_made_in_another_directory(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    manager.get_or_create(ORDERS, NOW, directory=A)
    future = manager.get_or_create(ORDERS, NOW, is_future=True, directory=B)
    assert future.directory == f"{B}/orders-0.{1:032x}-future" and future.is_future
    assert manager.get(ORDERS, is_future=True) is future and manager.get(ORDERS) is not future


@pytest.mark.parametrize("directory", [None, A])
def test_a_future_log_needs_a_directory_of_its_own(disk: SimulatedFiles, directory: str | None) -> None:
    manager = manage(disk)
    manager.get_or_create(ORDERS, NOW, directory=A)
    with pytest.raises(KafkaStorageError, match="needs a directory other than that of the current log"):
        manager.get_or_create(ORDERS, NOW, is_future=True, directory=directory)


def test_a_topic_name_too_long_for_a_future_log_does_not_cost_a_directory(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    partition = TopicPartition("n" * 249, 0)
    manager.get_or_create(partition, NOW, directory=A)
    with pytest.raises(KafkaStorageError, match="too long"):
        manager.get_or_create(partition, NOW, is_future=True, directory=B)
    assert manager.offline_dirs == {}


def test_a_future_log_is_found_again(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    append_many(manager.get_or_create(ORDERS, NOW, directory=A), 3)
    future = manager.get_or_create(ORDERS, NOW, is_future=True, directory=B)
    append_many(future, 2)
    commit_all(future)
    future.increment_log_start_offset(1, "test")
    manager.shutdown(NOW)
    again = restart(disk).get(ORDERS, is_future=True)
    assert again is not None and (again.log_start_offset, again.log_end_offset) == (1, 2)


def test_a_future_log_takes_the_place_of_the_current_one(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    current = manager.get_or_create(ORDERS, NOW, directory=A)
    append_many(current, 5)
    current.update_high_watermark(4)
    future = manager.get_or_create(ORDERS, NOW, is_future=True, directory=B)
    append_many(future, 5)
    manager.replace_current_with_future(ORDERS)
    assert manager.get(ORDERS) is future and manager.get(ORDERS, is_future=True) is None
    assert future.directory == f"{B}/orders-0" and future.high_watermark == 4
    assert dirs_of(disk, A) == [f"orders-0.{2:032x}-delete"]
    append(future)
    manager.remove_deleted(NOW)
    manager.remove_deleted(NOW + 60_000)
    assert dirs_of(disk, A) == []
    assert checkpoint(disk, B, RECOVERY) == "0\n1\norders 0 0\n" and checkpoint(disk, A, RECOVERY) == "0\n0\n"
    again = restart(disk).get(ORDERS)
    assert again is not None and again.log_end_offset == 6


def test_there_may_be_no_future_log_to_replace_with(disk: SimulatedFiles) -> None:
    with pytest.raises(KafkaStorageError, match="The future replica for orders-0 is offline"):
        manage(disk).replace_current_with_future(ORDERS)


def test_a_future_log_that_cannot_be_renamed_leaves_the_current_one_in_place(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    current = manager.get_or_create(ORDERS, NOW, directory=A)
    manager.get_or_create(ORDERS, NOW, is_future=True, directory=B)
    disk.fail_when(lambda event: event.kind == "rename" and event.path.endswith("-future"))
    with pytest.raises(KafkaStorageError):
        manager.replace_current_with_future(ORDERS)
    assert manager.get(ORDERS) is current and manager.get(ORDERS, is_future=True) is None
    assert list(manager.offline_dirs) == [B]
    append(current)
