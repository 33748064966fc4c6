"""Log directories: made, locked, refused where they hold something foreign, and offline where the disk fails."""

from __future__ import annotations

import logging

import pytest

from barnabas.errors import InvalidMetaProperties, KafkaStorageError
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.log_manager import AllLogDirsFailed
from barnabas.storage.management import dir_loader
from barnabas.storage.management.log_manager_hooks import LogManagerHooks
from barnabas.topic_partition import TopicPartition
from tests.logged import lines_of
from tests.unit.storage.log_manager.managing import (
    BILLS,
    ORDERS,
    RECOVERY,
    STARTS,
    WATERMARKS,
    A,
    B,
    checkpoint,
    manage,
    tick,
)
from tests.unit.storage.logs import NOW, append, append_many, commit_all, config, write_file

# -- directories


def test_all_four_checkpoints_are_there_from_the_first_start_on(disk: SimulatedFiles) -> None:
    names = (RECOVERY, STARTS, WATERMARKS, "cleaner-offset-checkpoint")
    manager = manage(disk)
    assert [name for name in names if not disk.exists(f"{A}/{name}") or not disk.exists(f"{B}/{name}")] == []
    append_many(manager.get_or_create(ORDERS, NOW, directory=A), 3)
    manager.shutdown(NOW)
    written = checkpoint(disk, A, RECOVERY)
    files = disk.process_crash()
    manage(files)
    assert written == checkpoint(files, A, RECOVERY) == "0\n1\norders 0 3\n", "and one that is there is left as it is"


def test_log_directories_are_made_where_they_are_missing(disk: SimulatedFiles) -> None:
    manage(disk, "/data/one", "/data/two")
    assert disk.is_dir("/data/one") and disk.is_dir("/data/two")


def test_a_directory_given_twice_is_refused(disk: SimulatedFiles) -> None:
    with pytest.raises(KafkaStorageError, match="Duplicate log directory found: /a, /a"):
        manage(disk, A, A)


def test_a_directory_that_another_process_has_is_refused_and_the_others_are_let_go(disk: SimulatedFiles) -> None:
    first = manage(disk, B)
    with pytest.raises(
        KafkaStorageError, match=r"Failed to acquire lock on file \.lock in /b\. A Kafka instance in another process or thread"
    ):
        manage(disk, A, B)
    first.shutdown(NOW)
    manage(disk, A, B)


def test_the_lock_is_given_back_at_the_end(disk: SimulatedFiles) -> None:
    manage(disk).shutdown(NOW)
    manage(disk)


def test_a_directory_that_is_a_file_goes_offline_and_the_others_go_on(disk: SimulatedFiles) -> None:
    write_file(disk, A, b"no directory")
    manager = manage(disk)
    assert list(manager.offline_dirs) == [A]
    assert manager.get_or_create(ORDERS, NOW).log_dir == B


def test_a_manager_without_a_directory_has_to_stop(disk: SimulatedFiles) -> None:
    write_file(disk, A, b"no directory")
    with pytest.raises(AllLogDirsFailed, match=r"All log dirs have failed: .*/a"):
        manage(disk, A)


FOREIGN = ["lost+found", "backup", "orders-x", "orders-0-delete", "remote-log-index-cache"]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_directory_is_warned_of(disk: SimulatedFiles, name: str, caplog: pytest.LogCaptureFixture) -> None:
    disk.make_dirs(f"{A}/{name}")
    manage(disk)
    warning = f"{A}/{name} is not the directory of a partition and is ignored; move it away from the log directory"
    assert lines_of(caplog, dir_loader, logging.WARNING) == [warning]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_directory_with_segments_is_refused_by_name(disk: SimulatedFiles, name: str) -> None:
    disk.make_dirs(f"{A}/{name}")
    write_file(disk, f"{A}/{name}/00000000000000000000.log", b"")
    with pytest.raises(KafkaStorageError, match="should only contain Kafka topic data"):
        manage(disk)


def test_the_log_directory_of_one_of_several_brokers_is_not_taken_for_a_log(disk: SimulatedFiles) -> None:
    disk.make_dirs(f"{A}/broker-1")
    write_file(disk, f"{A}/broker-1/meta.properties", b"version=0")
    with pytest.raises(InvalidMetaProperties, match="was made for several brokers: broker-1 is the log directory of one of them"):
        manage(disk)


def test_a_log_directory_that_a_failed_start_left_is_passed_over_until_a_topic_has_it(disk: SimulatedFiles) -> None:
    disk.make_dirs(f"{A}/broker-1")
    write_file(disk, f"{A}/broker-1/.lock", b"")
    manager = manage(disk, A)
    assert manager.logs == []
    append_many(manager.get_or_create(TopicPartition("broker", 1), NOW), 3)
    manager.shutdown(NOW)
    (log,) = manage(disk, A).logs
    assert log.log_end_offset == 3


def test_a_directory_whose_conversion_was_interrupted_is_refused(disk: SimulatedFiles) -> None:
    disk.make_dirs(f"{A}/barnabas-conversion")
    manage(disk, A).shutdown(NOW)  # one that was not begun, or is finished, is not in the way
    write_file(disk, f"{A}/barnabas-conversion/journal.json", b"{}")
    with pytest.raises(InvalidMetaProperties, match="was interrupted"):
        manage(disk, A)


def test_plain_files_in_a_log_directory_are_left_alone(disk: SimulatedFiles) -> None:
    disk.make_dirs(A)
    write_file(disk, f"{A}/notes", b"by hand")
    manage(disk)
    assert disk.read_bytes(f"{A}/notes") == b"by hand"


def test_the_metadata_log_of_kraft_is_no_topic(disk: SimulatedFiles) -> None:
    disk.make_dirs(f"{A}/__cluster_metadata-0")
    assert manage(disk).logs == []


# -- a failing disk


def test_a_disk_that_fails_under_one_log_takes_all_logs_in_its_directory_along(disk: SimulatedFiles) -> None:
    failed: list[str] = []
    manager = manage(disk, hooks=LogManagerHooks(dir_failed=failed.append))
    first, second = manager.get_or_create(ORDERS, NOW, directory=A), manager.get_or_create(TopicPartition("orders", 1), NOW, directory=A)
    other = manager.get_or_create(BILLS, NOW, directory=B)
    disk.fail_when(lambda event: event.kind == "write" and event.path.startswith(A))
    with pytest.raises(KafkaStorageError):
        append(first)
    assert failed == [A] and A in manager.offline_dirs and A not in manager.dirs
    assert manager.get(ORDERS) is None and manager.get(TopicPartition("orders", 1)) is None
    append(other)
    with pytest.raises(KafkaStorageError, match="closed"):
        append(second)


def test_the_last_directory_that_fails_stops_the_manager(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    disk.fail_when(lambda event: event.kind == "write")
    with pytest.raises(AllLogDirsFailed):
        append(log)


def test_a_failure_of_the_last_directory_is_not_passed_over_by_the_regular_work(disk: SimulatedFiles) -> None:
    manager = manage(disk, A, default=config(retention_ms=1))
    log = manager.get_or_create(ORDERS, NOW)
    append(log)
    commit_all(log)
    disk.fail_when(lambda event: event.kind == "rename")
    with pytest.raises(AllLogDirsFailed):
        tick(manager, NOW + 86_400_000)


def test_a_log_that_may_be_on_an_offline_disk_is_not_made_again(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    manager.disk_failed(A, "gone", OSError())
    with pytest.raises(KafkaStorageError, match="Can not create log for orders-0 because log directories /a are offline"):
        manager.get_or_create(ORDERS, NOW, is_new=False)
    assert manager.get_or_create(BILLS, NOW).log_dir == B


def test_a_log_is_not_made_in_an_offline_directory(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    manager.disk_failed(A, "gone", OSError())
    with pytest.raises(KafkaStorageError, match="log directory /a is offline"):
        manager.get_or_create(ORDERS, NOW, directory=A)


def test_a_log_is_made_in_the_next_directory_if_the_first_fails(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    disk.fail_when(lambda event: event.path.startswith(f"{A}/orders"))
    assert manager.get_or_create(ORDERS, NOW).log_dir == B
    assert A in manager.offline_dirs


def test_a_directory_that_cannot_be_read_goes_offline_and_the_others_are_loaded(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    append_many(manager.get_or_create(ORDERS, NOW, directory=A), 3)
    append_many(manager.get_or_create(BILLS, NOW, directory=B), 3)
    files = disk.process_crash()
    files.fail_when(lambda event: event.kind == "read" and event.path.startswith(A))
    again = manage(files)
    assert list(again.offline_dirs) == [A]
    assert [log.partition for log in again.logs] == [BILLS]


def test_a_stray_log_that_cannot_be_renamed_takes_its_directory_offline_only(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    append_many(manager.get_or_create(ORDERS, NOW, directory=A), 3)
    append_many(manager.get_or_create(BILLS, NOW, directory=B), 3)
    files = disk.process_crash()
    files.fail_when(lambda event: event.kind == "rename" and event.path == f"{A}/orders-0")
    again = manage(files, is_stray=lambda log: log.partition == ORDERS)
    again.clear_away()
    assert list(again.offline_dirs) == [A] and [log.partition for log in again.logs] == [BILLS]


def test_a_flush_that_fails_takes_its_directory_offline(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    first, second = manager.get_or_create(ORDERS, NOW, directory=A), manager.get_or_create(BILLS, NOW, directory=B)
    for log in (first, second):
        append_many(log, 2)
        manager.flush_later(log, 2)
    disk.fail_when(lambda event: event.kind == "sync" and event.path.startswith(A))
    manager.flushes.run_all(NOW)
    assert list(manager.offline_dirs) == [A] and second.recovery_point == 2


def test_a_cordoned_directory_gets_no_new_logs_and_keeps_those_it_has(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    kept = manager.get_or_create(ORDERS, NOW, directory=A)
    manager.cordoned_dirs = frozenset({A})
    made = [manager.get_or_create(TopicPartition("new", number), NOW).log_dir for number in range(3)]
    assert made == [B, B, B]
    assert manager.get(ORDERS) is kept


def test_a_replica_that_the_controller_has_placed_is_made_though_all_directories_are_cordoned(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    manager.cordoned_dirs = frozenset({A, B})
    assert manager.get_or_create(ORDERS, NOW).log_dir in (A, B)
