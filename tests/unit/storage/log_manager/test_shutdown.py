"""Clean and unclean ends: the marker, recovery from recovery points, and recovery in threads."""

from __future__ import annotations

import logging
import random
import threading
from pathlib import Path

import pytest

from barnabas.errors import KafkaStorageError
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.disk.files import Files
from barnabas.storage.log.loader import load_log
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management import dir_loader
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.topic_partition import TopicPartition
from tests.unit.storage.log_manager.managing import (
    BILLS,
    MARKER,
    ORDERS,
    A,
    B,
    files_of,
    manage,
    restart,
)
from tests.unit.storage.logs import NOW, append, append_many, batch, config, path, values, watch, write_file


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
    expected = config(segment_bytes=12_345)
    again.update_topic_config(ORDERS.topic, expected)  # one of the others
    may_go_on.set()
    assert len(list(steps)) > 0
    assert [(log.partition, values(log), log.config) for log in again.logs] == [(ORDERS, [b"0", b"1", b"2"], expected)]
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
