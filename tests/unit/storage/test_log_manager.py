from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.errors import InconsistentTopicId, InvalidMetaProperties, KafkaStorageError
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.disk.files import Files
from barnabas.storage.disk.later import Later
from barnabas.storage.leader_epochs import EpochEntry
from barnabas.storage.log.loader import load_log
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LONG_MAX, LogConfig
from barnabas.storage.log_manager import AllLogDirsFailed, LogManager, LogManagerConfig
from barnabas.storage.management import dir_loader
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.logged import lines_of
from tests.unit.storage.logs import NOW, append, append_many, batch, commit_all, config, names_in, path, records, values, watch, write_file

A, B = "/a", "/b"
ORDERS, BILLS, RETURNS = TopicPartition("orders", 0), TopicPartition("bills", 3), TopicPartition("returns", 1)
ID, OTHER_ID = Uuid.random(random.Random(1)), Uuid.random(random.Random(2))
MARKER = "/.kafka_cleanshutdown"
RECOVERY, STARTS, WATERMARKS = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


def manage(
    disk: SimulatedFiles,
    *paths: str,
    default: LogConfig | None = None,
    settings: LogManagerConfig | None = None,
    now_ms: int = NOW,
    is_stray: Callable[[Log], bool] = lambda _: False,
    **options: object,
) -> LogManager:
    """A manager that has loaded its logs; unique ids are counted."""
    numbers = iter(range(1, 1000))
    manager = LogManager(
        disk,
        paths or (A, B),
        default or config(),
        settings or LogManagerConfig(num_recovery_threads_per_data_dir=1),
        random_source=random.Random(1),
        unique_id=lambda: f"{next(numbers):032x}",
        **options,  # type: ignore[arg-type]
    )
    manager.load(now_ms, is_stray)
    manager.start_schedule(now_ms)
    return manager


def tick(manager: LogManager, at_ms: int) -> None:
    """Where both clocks say the same."""
    manager.tick(at_ms, at_ms)


def restart(disk: SimulatedFiles, *paths: str, **options: object) -> LogManager:
    """After the process died."""
    return manage(disk.process_crash(), *paths, **options)  # type: ignore[arg-type]


def dirs_of(disk: SimulatedFiles, log_dir: str) -> list[str]:
    return [entry.name for entry in disk.list_dir(log_dir) if entry.is_dir]


def files_of(manager: LogManager) -> SimulatedFiles:
    assert isinstance(manager.files, SimulatedFiles)
    return manager.files


def checkpoint(disk: SimulatedFiles, log_dir: str, name: str) -> str:
    return disk.read_bytes(f"{log_dir}/{name}").decode()


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
    told = f"{A}/{name} is not the directory of a partition and is ignored; move it away from the log directory"
    assert lines_of(caplog, dir_loader, logging.WARNING) == [told]


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


# -- clean and unclean ends


def test_a_clean_shutdown_leaves_a_marker_in_every_directory(disk: SimulatedFiles) -> None:
    manage(disk).shutdown(NOW, broker_epoch=17)
    for log_dir in (A, B):
        assert disk.read_bytes(log_dir + MARKER) == b'{"version":0,"brokerEpoch":17}'


def test_the_marker_is_consumed_by_the_next_start(disk: SimulatedFiles) -> None:
    manage(disk).shutdown(NOW)
    again = restart(disk)
    assert not files_of(again).exists(A + MARKER)


def test_the_marker_is_gone_before_the_first_log_is_opened(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    append_many(manager.get_or_create(ORDERS, NOW), 3)
    manager.shutdown(NOW)
    files = disk.process_crash()
    opened, removed = watch(files, "read", ".log"), watch(files, "remove", MARKER)
    manage(files, A)
    assert len(removed) == 1 and opened and opened[0].number > removed[0].number


def test_after_a_clean_shutdown_nothing_is_recovered(disk: SimulatedFiles) -> None:
    manager = manage(disk, A)
    append_many(manager.get_or_create(ORDERS, NOW), 3)
    manager.shutdown(NOW)
    log = restart(disk, A).get(ORDERS)
    assert log is not None and log.recovery_point == 3


def test_after_a_crash_logs_are_recovered_from_their_recovery_points(disk: SimulatedFiles) -> None:
    manager = manage(disk, A, default=config(segment_bytes=150))
    log = manager.get_or_create(ORDERS, NOW)
    for n in range(4):
        append(log, batch([b"%d" % n], size=150))
    manager.flushes.run_all(NOW)
    assert log.recovery_point == 3
    manager.checkpoints.write_recovery_points()
    files = disk.process_crash()
    read = watch(files, "read", ".log")
    again = manage(files, A, default=config(segment_bytes=150)).get(ORDERS)
    assert again is not None and again.log_end_offset == 4
    assert {event.path for event in read} == {path(3, ".log", f"{A}/orders-0")}


def test_a_start_that_failed_may_not_call_itself_clean(disk: SimulatedFiles) -> None:
    """Otherwise the next start would not recover what this one has not."""
    manager = manage(disk)
    append_many(manager.get_or_create(ORDERS, NOW, directory=A), 3)
    append_many(manager.get_or_create(BILLS, NOW, directory=B), 3)
    files = disk.process_crash()
    write_file(files, f"{B}/bills-3/{0:020d}.log", files.read_bytes(f"{B}/bills-3/{0:020d}.log") + b"torn")
    files.make_dirs(f"{B}/orders-0")
    manager = LogManager(files, (A, B), config(), LogManagerConfig(num_recovery_threads_per_data_dir=1))
    with pytest.raises(KafkaStorageError, match="Duplicate"):
        manager.load(NOW)
    manager.shutdown(NOW)
    assert files.exists(A + MARKER) and not files.exists(B + MARKER)


def test_a_manager_that_never_loaded_its_logs_leaves_no_marker(disk: SimulatedFiles) -> None:
    LogManager(disk, (A,), config()).shutdown(NOW)
    assert not disk.exists(A + MARKER)


def test_a_shutdown_is_durable(disk: SimulatedFiles) -> None:
    manager = manage(disk, A, default=config(segment_bytes=200))
    log = manager.get_or_create(ORDERS, NOW)
    append_many(log, 7)
    manager.shutdown(NOW)
    for seed in range(20):
        survivor = disk.crash(random.Random(seed))
        assert survivor.exists(A + MARKER)
        again = manage(survivor, A).get(ORDERS)
        assert again is not None and values(again) == [b"%d" % n for n in range(7)]


def test_a_shutdown_that_fails_in_one_directory_is_clean_in_the_other(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    append_many(manager.get_or_create(ORDERS, NOW, directory=A), 3)
    append_many(manager.get_or_create(BILLS, NOW, directory=B), 3)
    disk.fail_when(lambda event: event.kind == "sync" and event.path.startswith(A))
    manager.shutdown(NOW)
    assert not disk.exists(A + MARKER) and disk.exists(B + MARKER)


def test_recovery_in_threads_gives_the_same_as_one_after_the_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = Files()
    paths = [str(tmp_path / name) for name in ("one", "two")]
    manager = LogManager(files, paths, config(segment_bytes=500))
    manager.load(NOW)
    for n in range(12):
        append_many(manager.get_or_create(TopicPartition("t", n), NOW), 3 * n)
    for log_dir in manager.dirs.values():
        log_dir.release()
    with caplog.at_level(logging.INFO, "barnabas.storage.management.dir_loader"):
        again = LogManager(Files(), paths, config(segment_bytes=500), LogManagerConfig(num_recovery_threads_per_data_dir=4))
        again.load(NOW)
    assert {log.partition.partition: values(log) for log in again.logs} == {n: [b"%d" % i for i in range(3 * n)] for n in range(12)}
    progress = [record.message for record in caplog.records if "Completed load of" in record.message]
    assert len(progress) == 12
    assert sum("(6/6 completed in" in line for line in progress) == 2
    again.shutdown(NOW)


def test_others_have_their_turn_while_a_log_is_recovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = str(tmp_path / "one")
    manager = LogManager(Files(), [directory], config())
    manager.load(NOW)
    append_many(manager.get_or_create(ORDERS, NOW), 3)
    manager.dirs[directory].release()
    may_go_on = threading.Event()
    monkeypatch.setattr(dir_loader, "load_or_describe", lambda request: may_go_on.wait(60) and load_log(request))
    again = LogManager(Files(), [directory], config())
    steps = again.loading(NOW, lambda _: False)
    for _ in range(3):
        next(steps)
        assert again.logs == []
    wanted = config(segment_bytes=12_345)
    again.update_topic_config(ORDERS.topic, wanted)  # one of the others
    may_go_on.set()
    assert len(list(steps)) > 0
    assert [(log.partition, values(log), log.config) for log in again.logs] == [(ORDERS, [b"0", b"1", b"2"], wanted)]
    again.shutdown(NOW)


def test_one_log_that_fails_in_a_thread_takes_its_directory_offline_and_leaves_no_file_open(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("one", "two")]
    manager = LogManager(Files(), paths, config())
    manager.load(NOW)
    for n in range(6):
        append_many(manager.get_or_create(TopicPartition("t", n), NOW, directory=paths[n % 2]), 3)
    for log_dir in manager.dirs.values():
        log_dir.release()
    (tmp_path / "one" / "t-2" / "leader-epoch-checkpoint").mkdir()
    files = Files()
    again = LogManager(files, paths, config(), LogManagerConfig(num_recovery_threads_per_data_dir=3))
    again.load(NOW)
    assert list(again.offline_dirs) == [paths[0]]
    assert "leader-epoch-checkpoint" in again.offline_dirs[paths[0]]
    assert sorted(log.partition.partition for log in again.logs) == [1, 3, 5]
    assert all(file.path.startswith(paths[1]) for file in files.pool._clock)
    again.shutdown(NOW)
    assert files.pool.open_count == 0


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


# -- checkpoints


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


# -- a failing disk


def test_a_disk_that_fails_under_one_log_takes_all_logs_in_its_directory_along(disk: SimulatedFiles) -> None:
    manager = manage(disk)
    first, second = manager.get_or_create(ORDERS, NOW, directory=A), manager.get_or_create(TopicPartition("orders", 1), NOW, directory=A)
    other = manager.get_or_create(BILLS, NOW, directory=B)
    failed: list[str] = []
    manager.on_dir_failure = failed.append
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
    found = right.get(ORDERS)
    assert found is not None and found.log_end_offset == 3


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
