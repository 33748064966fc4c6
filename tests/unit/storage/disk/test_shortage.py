"""A process without descriptors: its disk is fine, nothing is done by halves, and what was refused succeeds later."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from barnabas.errors import KafkaStorageError, OutOfDescriptors
from barnabas.simulation.disk import DiskEvent, SimulatedFiles
from barnabas.storage.disk.disk import is_shortage
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.storage.producers.state import ProducerStateConfig
from barnabas.topic_partition import TopicPartition
from tests.unit.storage.logs import NOW, Producer, append, batch, commit_all, config, records, scanned

A = "/a"
ORDERS = TopicPartition("orders", 0)
CHECKPOINT = f"{A}/replication-offset-checkpoint"
NEEDS_DESCRIPTOR = frozenset({"create", "write", "truncate", "read", "read_nowait", "sync", "sync_dir"})
SETTINGS = LogManagerConfig(
    num_recovery_threads_per_data_dir=1,
    high_watermark_checkpoint_interval_ms=0,
    initial_task_delay_ms=0,
    producers=ProducerStateConfig(transaction_verification_enabled=False),
)
SMALL = {"segment_bytes": 400, "index_interval_bytes": 1}


def manage(disk: SimulatedFiles) -> LogManager:
    manager = LogManager(disk, [A], config(**SMALL), SETTINGS)
    manager.load(NOW)
    return manager


def exhaust(disk: SimulatedFiles, error: int = errno.EMFILE) -> None:
    disk.fail_when(lambda event: event.kind in NEEDS_DESCRIPTOR, error)


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
def test_a_checkpoint_that_finds_no_descriptor_costs_no_directory_and_is_written_later(error: int) -> None:
    disk = SimulatedFiles()
    manager = manage(disk)
    log = manager.get_or_create(ORDERS, NOW)
    manager.role_given(log)
    append(log)
    commit_all(log)
    exhaust(disk, error)
    manager.tick(NOW + 1, NOW + 1)
    assert list(manager.dirs) == [A]
    disk.heal()
    manager.tick(NOW + 2, NOW + 2)
    assert b"orders 0 1\n" in disk.read_bytes(CHECKPOINT)


def test_stale_checkpoints_that_find_no_descriptor_are_written_at_the_next_tick() -> None:
    disk = SimulatedFiles()
    manager = manage(disk)
    append(manager.get_or_create(ORDERS, NOW))
    manager.delete(ORDERS)
    exhaust(disk)
    with pytest.raises(OutOfDescriptors):  # a new log must not be taken to be flushed as far as the old one was
        manager.get_or_create(ORDERS, NOW)
    manager.tick(NOW + 1, NOW + 1)
    disk.heal()
    manager.tick(NOW + 2, NOW + 2)
    assert manager.get_or_create(ORDERS, NOW).log_end_offset == 0


def test_an_append_without_a_descriptor_is_refused_for_now() -> None:
    disk = SimulatedFiles()
    log = manage(disk).get_or_create(ORDERS, NOW)
    append(log)
    exhaust(disk)
    with pytest.raises(OutOfDescriptors) as refused:
        append(log)
    assert refused.value.code == KafkaStorageError.code and refused.value.retriable
    disk.heal()
    assert append(log).first_offset == 1


def test_a_disk_error_is_still_a_disk_error() -> None:
    disk = SimulatedFiles()
    manager = manage(disk)
    log = manager.get_or_create(ORDERS, NOW)
    disk.fail_when(lambda event: event.kind == "write", errno.EIO)
    with pytest.raises(KafkaStorageError) as refused:
        append(log)
    assert not isinstance(refused.value, OutOfDescriptors)
    assert manager.offline_dirs


def test_a_start_without_descriptors_fails_as_a_whole() -> None:
    disk = SimulatedFiles()
    append(manage(disk).get_or_create(ORDERS, NOW))
    disk = disk.process_crash()
    exhaust(disk)
    with pytest.raises(OSError) as failed:
        manage(disk)
    assert is_shortage(failed.value)


def test_a_shortage_is_logged_once_between_two_ticks(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimulatedFiles()
    manager = manage(disk)
    log = manager.get_or_create(ORDERS, NOW)
    exhaust(disk)
    for _ in range(100):
        with pytest.raises(OutOfDescriptors):
            append(log)
    lines = [record for record in caplog.records if "raise the limit of open files" in record.getMessage()]
    assert [record.levelno for record in lines] == [logging.WARNING]


class Life:
    """Appends, rolls, an aborted transaction, flushes, checkpoints and retention; what is refused is tried again."""

    def __init__(self, disk: SimulatedFiles) -> None:
        self.disk = disk
        self.refusals = 0
        self.manager = manage(disk)
        self._now = count(NOW)

    def run(self) -> Log:
        self.patiently(lambda: self.manager.get_or_create(TopicPartition("other", 0), NOW))
        log = self.patiently(lambda: self.manager.get_or_create(ORDERS, NOW))
        producer = Producer(log, 7)
        for value in range(12):
            self.patiently(lambda value=value: append(log, batch([b"%d" % value])))  # type: ignore[misc]
            if value in (3, 4, 8):
                self.patiently(lambda: producer.write([b"aborted"]))
            if value in (5, 9):
                self.patiently(producer.abort)
            if value % 4 == 3:
                commit_all(log)
                self.tick()
        self.tick()
        return log

    def patiently(self, action: Callable[[], object]) -> Log:
        for _ in range(50):
            try:
                return action()  # type: ignore[return-value]
            except OutOfDescriptors:
                self.refusals += 1
        raise AssertionError("refused for ever")

    def tick(self) -> None:
        now_ms = next(self._now)
        self.manager.tick(now_ms, now_ms)
        self.manager.flushes.run_all(now_ms)


def told(log: Log) -> tuple[object, ...]:
    """What a log tells its readers."""
    commit_all(log)
    aborted = log.read(0, 10_000, FetchIsolation.TXN_COMMITTED).aborted
    return records(log), [txn for segment in log.segments for txn in segment.txn_index.all()], aborted, log.log_end_offset


def test_wherever_descriptors_run_out_the_log_ends_up_as_if_they_had_not() -> None:
    undisturbed = Life(SimulatedFiles())
    started = undisturbed.disk.events
    expected = told(undisturbed.run())
    refusals = 0
    for first in range(started + 1, undisturbed.disk.events + 1):
        for length in (1, 4):
            life = Life(SimulatedFiles())
            affected = range(first, first + length)
            life.disk.fail_when(lambda event, affected=affected: _is_short(event, affected), errno.EMFILE)  # type: ignore[misc]
            log = life.run()
            life.disk.heal()
            refusals += life.refusals
            assert list(life.manager.dirs) == [A], affected
            assert told(log) == expected, affected
            life.manager.flushes.run_all(NOW)
            again = manage(life.disk.process_crash()).get(ORDERS)
            assert again is not None and (told(again), scanned(again)) == (expected, scanned(log)), affected
    assert refusals > 50


def _is_short(event: DiskEvent, affected: range) -> bool:
    return event.kind in NEEDS_DESCRIPTOR and event.number in affected


def test_the_pool_has_spares_for_what_must_not_fail_and_leaves_the_top_to_others(tmp_path: Path) -> None:
    """In a process of its own, as the limit is the process's."""
    script = f"""
import os, resource
from barnabas.storage.disk.files import Files, FilePool
resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
files = Files(FilePool(max_open=30, spares=4, share=5, ceiling=50))
opened = [files.open({str(tmp_path)!r} + "/%d" % n, create=True) for n in range(30)]
others = []
try:
    while True: others.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
for file in opened: file.append_bytes(b"x")
files.write_atomically({str(tmp_path)!r} + "/checkpoint", b"written")
files.sync_dir({str(tmp_path)!r})
assert len(files.list_dir({str(tmp_path)!r})) == 31
print(files.pool.open_count <= 30, files.pool.give_back(100) > 0, files.pool.open_count)
for other in others: os.close(other)
others = [os.open("/dev/null", os.O_RDONLY) for _ in range(30)]
for file in opened: file.append_bytes(b"x")
print(max(file.descriptor for file in opened) < 50)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=60)
    assert done.stdout.split() == ["True", "True", "5", "True"], done.stdout + done.stderr
