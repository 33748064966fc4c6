"""A machine that loses power in the middle of anything, thousands of times, on a disk that keeps only what was synced.

Each seed runs a random history on the real storage code over a simulated disk, stops it dead before a random disk operation, lets the disk
lose, reorder and tear what was not synced, and opens what is left. `make crash` runs ten thousand seeds; a failure names its seed.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Callable

import pytest

from barnabas.errors import KafkaStorageError
from barnabas.records.builder import BatchBuilder
from barnabas.records.reader import records_of
from barnabas.simulation.disk import DiskEvent, SimulatedCrash, SimulatedFiles
from barnabas.storage.log.append import LogAppend
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.storage.producers.replay import replay_batch
from barnabas.storage.producers.state import ProducerStateManager
from barnabas.topic_partition import TopicPartition

SEEDS = int(os.environ.get("BARNABAS_CRASH_SEEDS", "600"))
CHUNKS = 20
NOW = 1_700_000_000_000
PARTITION = TopicPartition("torn", 0)
CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=200, file_delete_delay_ms=1000, retention_bytes=20_000)
PRODUCER_ID = 7


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_flushed_is_lost_and_nothing_invalid_is_served(chunk: int) -> None:
    for seed in range(chunk, SEEDS, CHUNKS):
        try:
            History(seed).run()
        except BaseException as e:
            raise AssertionError(f"seed {seed} failed: {e!r}") from e


class History:
    """What was done to a log, and what must therefore be true of what is left of it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now_ms = NOW
        self.disk = SimulatedFiles(clock=lambda: self.now_ms)
        self.written: dict[int, set[bytes | None]] = defaultdict(set)  # every value an offset ever had
        self.latest: dict[int, bytes | None] = {}  # what the log holds, as far as it was acknowledged
        self.flushed = 0  # everything below was synced
        self.log_start = 0  # the highest log start offset asked for
        self.sequence = 0
        self.number = 0

    def run(self) -> None:
        for _ in range(self.rng.randint(1, 3)):
            self.live_and_die()
            self.disk = self.disk.crash(self.rng) if self.rng.random() < 0.8 else self.disk.process_crash()
        manager = self.open()
        self.check(manager.get_or_create(PARTITION, self.now_ms))
        manager.shutdown(self.now_ms)
        reopened = self.open()
        self.check(reopened.get_or_create(PARTITION, self.now_ms))

    def open(self) -> LogManager:
        config = LogManagerConfig(num_recovery_threads_per_data_dir=1)
        manager = LogManager(self.disk, ["/data"], CONFIG, config, unique_id=lambda: f"{self.rng.getrandbits(128):032x}")
        manager.load(self.now_ms)
        return manager

    def live_and_die(self) -> None:
        self.disk.halt_at(self.disk.events + self.rng.randint(1, 400))
        try:
            manager = self.open()
            log = manager.get_or_create(PARTITION, self.now_ms)
            self.accept(log)
            for _ in range(60):
                self.now_ms += self.rng.randint(0, 500)
                self.step(manager, log)
        except SimulatedCrash:
            pass

    def step(self, manager: LogManager, log: Log) -> None:
        choice = self.rng.random()
        if choice < 0.6:
            self.append(log)
        elif choice < 0.72:
            manager.flush_later(log, log.log_end_offset)
            manager.flushes.run_all(self.now_ms)
            self.flushed = max(self.flushed, log.recovery_point)
        elif choice < 0.77:
            log.roll(self.now_ms)
        elif choice < 0.82:
            self.truncate(manager, log)
        elif choice < 0.87:
            log.update_high_watermark(log.log_end_offset)
            start = self.rng.randint(log.log_start_offset, log.high_watermark)
            self.log_start = max(self.log_start, start)
            log.increment_log_start_offset(start, "client delete records request")
        elif choice < 0.92:
            log.update_high_watermark(log.log_end_offset)
            manager.delete_old_segments(self.now_ms)
            self.log_start = max(self.log_start, log.log_start_offset)
        elif choice < 0.97:
            manager.checkpoints.write_recovery_points()
            manager.checkpoints.write_log_start_offsets()
        else:
            manager.remove_deleted(self.now_ms)

    def append(self, log: Log) -> None:
        idempotent = self.rng.random() < 0.3
        count = self.rng.randint(1, 6)
        entry = log.producers.last_entry(PRODUCER_ID)
        sequence = entry.last_sequence + 1 if entry is not None else 0
        builder = BatchBuilder(
            codec=self.rng.choice([0, 0, 0, 3, 4]),
            producer_id=PRODUCER_ID if idempotent else -1,
            producer_epoch=0 if idempotent else -1,
            base_sequence=sequence if idempotent else -1,
        )
        values = []
        for _ in range(count):
            self.number += 1
            values.append(b"%d" % self.number * self.rng.randint(1, 60))
            builder.append(self.now_ms, b"key", values[-1])
        first = log.log_end_offset
        for index, value in enumerate(values):  # from here on the disk may hold it
            self.written[first + index].add(value)
        info = log.append_as_leader(LogAppend(builder.build(), self.now_ms), max(log.latest_epoch, 0) + self.rng.randint(0, 1))
        assert (info.first_offset, info.last_offset) == (first, first + count - 1)
        self.latest.update({first + index: value for index, value in enumerate(values)})

    def truncate(self, manager: LogManager, log: Log) -> None:
        target = self.rng.choice(batch_starts(log)[-4:] or [log.log_end_offset])  # leaders ask for nothing between two batches
        self.flushed = min(self.flushed, target)  # from the moment it is asked for, what is above may be gone
        manager.truncate_to(PARTITION, target, self.now_ms)
        assert log.log_end_offset == target
        for offset in [o for o in self.latest if o >= log.log_end_offset]:
            del self.latest[offset]
        self.flushed = min(self.flushed, log.log_end_offset)

    def accept(self, log: Log) -> None:
        """After a crash: checks what is there, and takes it as the truth from now on."""
        self.check(log)
        self.latest = read_all(log)
        self.flushed = min(self.flushed, log.log_end_offset)

    def check(self, log: Log) -> None:
        assert log.log_start_offset <= self.log_start
        recovered = read_all(log)
        for offset, value in recovered.items():
            assert value in self.written[offset], f"offset {offset} holds what was never written there"
        for offset in range(max(log.log_start_offset, self.log_start), self.flushed):
            assert offset in recovered, (
                f"offset {offset} was flushed (up to {self.flushed}) and is gone; the log ends at {log.log_end_offset}"
            )
            if offset in self.latest:
                assert recovered[offset] == self.latest[offset], f"offset {offset} was flushed and changed"
        assert list(recovered) == list(range(log.log_start_offset, log.log_end_offset)), "offsets are not consecutive"
        check_producers(log, self.disk)


def read_all(log: Log) -> dict[int, bytes | None]:
    """As a client would read: from the log start to the log end, fetch by fetch."""
    values: dict[int, bytes | None] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        fetched = log.read(offset, 700, FetchIsolation.LOG_END, min_one_message=True)
        assert fetched.records is not None
        for record in records_of(fetched.records.read()):
            if record.offset >= offset:
                values[record.offset] = record.value
                offset = record.offset + 1
    return values


def batch_starts(log: Log) -> list[int]:
    starts = [batch.base_offset for chunk in log.active_segment.chunks() for batch in chunk.batches]
    return [offset for offset in starts if offset >= log.log_start_offset]


def check_producers(log: Log, disk: SimulatedFiles) -> None:
    """What the log remembers of its producers is what a replay of its segments gives."""
    replayed = ProducerStateManager(disk, log.directory, log.partition)
    for segment in log.segments:
        for chunk in segment.chunks():
            for batch in chunk.batches:
                replay_batch(replayed, chunk.data, batch)
    entry = replayed.last_entry(PRODUCER_ID)
    if entry is not None and entry.last_data_offset >= log.log_start_offset:
        known = log.producers.last_entry(PRODUCER_ID)
        assert known is not None and known.last_sequence == entry.last_sequence
        assert known.last_data_offset == entry.last_data_offset


def changes_from(number: int) -> Callable[[DiskEvent], bool]:
    """Matches the operations from this one on that change the disk."""
    return lambda event: event.number >= number and event.kind in ("write", "sync", "rename")


def test_a_disk_that_fails_takes_its_directory_offline_and_loses_nothing_acknowledged() -> None:
    for seed in range(100):
        rng = random.Random(seed)
        history = History(seed)
        manager = history.open()
        log = manager.get_or_create(PARTITION, NOW)
        fail_at = history.disk.events + rng.randint(1, 60)
        history.disk.fail_when(changes_from(fail_at))
        with pytest.raises(KafkaStorageError):
            for _ in range(500):
                history.append(log)
                manager.flush_later(log, log.log_end_offset)
                manager.flushes.run_all(NOW)
        assert "/data" in manager.offline_dirs
        history.disk.heal()
        history.disk = history.disk.process_crash()
        reopened = history.open().get_or_create(PARTITION, NOW)
        recovered = read_all(reopened)
        assert all(recovered[offset] == value for offset, value in history.latest.items()), f"seed {seed}"
