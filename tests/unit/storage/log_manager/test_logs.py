"""Logs: made, found again, damaged, and truncated with their checkpoints."""

from __future__ import annotations

import logging
import random

import pytest

from barnabas.errors import InconsistentTopicId, KafkaStorageError
from barnabas.simulation.disk import SimulatedFiles
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.storage.log_manager.managing import (
    BILLS,
    MARKER,
    ORDERS,
    RECOVERY,
    WATERMARKS,
    A,
    B,
    checkpoint,
    dirs_of,
    manage,
    restart,
)
from tests.unit.storage.logs import NOW, append, append_many, commit_all, config, write_file

# -- logs


def test_a_new_log_is_made_in_its_directory(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    assert log.directory == "/a/orders-0"
    assert manager.get(ORDERS) is log and manager.get_or_create(ORDERS, NOW) is log


def test_a_new_log_goes_where_the_fewest_partitions_are(disk: SimulatedFiles) -> None:
    manager = manage(disk, A, B, "/c")
    made = [manager.get_or_create(TopicPartition("t", n), NOW).log_dir for n in range(7)]
    assert sorted(made.count(log_dir) for log_dir in (A, B, "/c")) == [2, 2, 3]
    manager.delete(TopicPartition("t", 1))
    gone = made[1]
    counts = {log_dir: made.count(log_dir) - (log_dir == gone) for log_dir in (A, B, "/c")}
    assert manager.get_or_create(TopicPartition("t", 9), NOW).log_dir in [d for d in counts if counts[d] == min(counts.values())]


def test_a_log_is_made_in_the_directory_it_is_wanted_in(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    for n in range(3):
        assert manager.get_or_create(TopicPartition("t", n), NOW, directory=B).log_dir == B


def test_a_log_has_the_config_of_its_topic(disk: SimulatedFiles) -> None:
    manager = manage(disk, default=config(retention_ms=1), topic_configs={"orders": config(retention_ms=2)})
    assert manager.get_or_create(ORDERS, NOW).config.retention_ms == 2
    assert manager.get_or_create(BILLS, NOW).config.retention_ms == 1


def test_a_new_config_reaches_the_logs_of_its_topic(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    orders, bills = manager.get_or_create(ORDERS, NOW), manager.get_or_create(BILLS, NOW)
    manager.update_topic_config("orders", config(max_message_bytes=77))
    assert orders.config.max_message_bytes == 77 and bills.config.max_message_bytes != 77
    assert manager.get_or_create(TopicPartition("orders", 1), NOW).config.max_message_bytes == 77


def test_the_topic_id_of_a_log_is_kept_and_checked(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    topic_id = Uuid.random(random.Random(1))
    append(manager.get_or_create(ORDERS, NOW, topic_id=topic_id))
    manager.shutdown(NOW)
    again = restart(disk)
    assert again.get_or_create(ORDERS, NOW, topic_id=topic_id).topic_id == topic_id
    with pytest.raises(InconsistentTopicId):
        again.get_or_create(ORDERS, NOW, topic_id=Uuid.random(random.Random(2)))


def test_all_logs_are_found_again(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    for n in range(6):
        append_many(manager.get_or_create(TopicPartition("t", n), NOW), n)
    manager.shutdown(NOW)
    again = restart(disk)
    assert {log.partition.partition: log.log_end_offset for log in again.logs} == {n: n for n in range(6)}
    assert {log.directory for log in again.logs} == {log.directory for log in manager.logs}


def test_a_partition_in_two_directories_is_refused_with_both(disk: SimulatedFiles) -> None:
    disk.make_dirs(f"{A}/orders-0")
    disk.make_dirs(f"{B}/orders-0")
    with pytest.raises(KafkaStorageError, match="Duplicate log directories for orders-0 are found in both /b/orders-0 and /a/orders-0"):
        manage(disk)


# -- logs that are damaged


def damaged(disk: SimulatedFiles, *, clean: bool = True) -> SimulatedFiles:
    """Two logs with records in one directory, of which one has lost its topic id."""
    manager = manage(disk, A)
    for partition in (ORDERS, BILLS):
        append_many(manager.get_or_create(partition, NOW, topic_id=Uuid(b"x" * 16)), 5)
    log = manager.get(ORDERS)
    assert log is not None
    manager.role_given(log)
    commit_all(log)
    log.increment_log_start_offset(2, "a test")
    if clean:
        manager.shutdown(NOW)
    after = disk.process_crash()
    write_file(after, f"{A}/orders-0/partition.metadata", b"version: 0\ntopic_id: \n")
    return after


def test_a_damaged_topic_id_costs_its_partition_and_no_other(disk: SimulatedFiles, caplog: pytest.LogCaptureFixture) -> None:
    manager = manage(damaged(disk), A)
    assert [log.partition for log in manager.logs] == [BILLS]
    assert list(manager.dirs) == [A]
    with pytest.raises(KafkaStorageError, match=r"orders-0/partition.metadata.*barnabas topics --describe"):
        manager.get_or_create(ORDERS, NOW, topic_id=Uuid(b"x" * 16))
    (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "partition.metadata" in line.getMessage() and "fix the disk" not in line.getMessage()


def test_a_damaged_log_is_as_it_was_once_it_is_repaired(disk: SimulatedFiles) -> None:
    after = damaged(disk)
    manager = manage(after, A)
    manager.tick(NOW, 1_000_000)
    manager.shutdown(NOW)
    after = after.process_crash()
    write_file(after, f"{A}/orders-0/partition.metadata", f"version: 0\ntopic_id: {Uuid(b'x' * 16)}".encode())
    log = manage(after, A).get(ORDERS)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (2, 5)
    assert after.read_bytes(f"{A}/{WATERMARKS}").decode().splitlines()[2:] == ["orders 0 5"]


def test_a_damaged_log_that_was_not_recovered_is_recovered_once_it_is_repaired(disk: SimulatedFiles) -> None:
    after = damaged(disk, clean=False)
    manage(after, A).shutdown(NOW)
    assert not after.exists(A + MARKER)


def test_a_damaged_log_is_deleted_with_its_topic(disk: SimulatedFiles) -> None:
    after = damaged(disk)
    manager = manage(after, A)
    manager.delete(ORDERS)
    assert manager.get_or_create(ORDERS, NOW, topic_id=Uuid(b"y" * 16)).log_end_offset == 0
    manager.remove_deleted(0)
    manager.remove_deleted(10**9)
    assert dirs_of(after, A) == ["bills-3", "orders-0"]


def test_a_damaged_log_that_was_marked_for_deletion_is_deleted(disk: SimulatedFiles) -> None:
    after = damaged(disk)
    after.rename(f"{A}/orders-0", f"{A}/orders-0.{'1' * 32}-delete")
    manager = manage(after, A)
    manager.clear_away()
    manager.remove_deleted(0)
    assert dirs_of(after, A) == ["bills-3"]
    assert manager.get_or_create(ORDERS, NOW).log_end_offset == 0


# -- truncation


def test_a_truncation_lowers_the_checkpoint_at_once(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 9)
    log.flush(NOW)
    manager.checkpoints.write_recovery_points()
    assert manager.truncate_to(ORDERS, 4, NOW)
    assert checkpoint(disk, A, RECOVERY) == "0\n1\norders 0 4\n"
    assert not manager.truncate_to(BILLS, 0, NOW)


def test_a_truncation_that_takes_nothing_away_writes_nothing(disk: SimulatedFiles) -> None:
    """Followers ask for it of each of their logs when leaders change: a checkpoint for each would hold a broker up for seconds."""
    manager = manage(disk, A)
    append_many(manager.get_or_create(ORDERS, NOW), 9)
    manager.checkpoints.write_recovery_points()
    written = checkpoint(disk, A, RECOVERY)
    manager.get_or_create(BILLS, NOW)  # a checkpoint would have it
    assert not manager.truncate_to(ORDERS, 9, NOW)
    assert checkpoint(disk, A, RECOVERY) == written


def test_a_log_is_emptied_and_its_checkpoints_follow(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 9)
    log.flush(NOW)
    manager.truncate_fully_and_start_at(ORDERS, 3, NOW)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    assert checkpoint(disk, A, RECOVERY) == "0\n1\norders 0 3\n"
