"""The storage engine alone: no network, no protocol, one thread.

The data is 1 KB (or 100 B) records of random bytes in 16 KB batches, 1 GB of them by default. Everything stays in the page cache: the
figure is the work of this code for each byte, next to the kernel's for a plain write or read of the same bytes.
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from barnabas.records.builder import BatchBuilder
from barnabas.storage.disk.files import Files
from barnabas.storage.host import DirectHost
from barnabas.storage.log.append import LogAppend
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_manager import LogManager
from barnabas.topic_partition import TopicPartition
from benchmarks import columns, compaction
from benchmarks.report import Figure, by_turns

MB = 1_000_000
NOW = 1_700_000_000_000
READ_BYTES = 1024 * 1024
SEGMENTS = 10_000
SEGMENTS_PER_LOG = 10
PARTITION = TopicPartition("bench", 0)


def run(megabytes: int = 1000, turns: int = 3) -> list[Figure]:
    with _scratch() as directory:
        return [
            *_append_figures(directory, megabytes * MB, turns),
            *_read_figures(directory, megabytes * MB, turns),
            compaction.figure(directory, megabytes, turns),
            *columns.figures(turns),
            *_open_figures(directory, turns),
        ]


class _Later(DirectHost):
    """Flushes are left out: how fast a disk syncs is not this code's doing."""

    def flush_later(self, log: Log, offset: int) -> None:
        return None


def record_batch(record_bytes: int, batch_bytes: int = 16 * 1024) -> bytes:
    builder = BatchBuilder()
    number = 0
    while builder.estimated_size + record_bytes <= batch_bytes or number == 0:
        builder.append(NOW + number, b"key-%012d" % number, os.urandom(record_bytes - 16))
        number += 1
    return builder.build()


# -- append


def _append_figures(directory: str, size: int, turns: int) -> Iterator[Figure]:
    for record_bytes, aim in ((1024, 1000), (100, 300)):
        batch = record_batch(record_bytes)
        count = size // len(batch)
        yield by_turns(
            Figure(f"append, {record_bytes} B records in 16 KB batches", "MB/s", aim, limit_name="plain write"),
            turns,
            lambda batch=batch, count=count: _append(directory, batch, count),  # type: ignore[misc]
            lambda batch=batch, count=count: _plain_write(directory, batch, count),  # type: ignore[misc]
        )


def _append(directory: str, batch: bytes, count: int) -> float:
    log = _open_log(f"{directory}/append/bench-0")
    try:
        seconds = _timed(lambda: _append_all(log, batch, count))
    finally:
        log.close_handlers()
        shutil.rmtree(f"{directory}/append")
    return len(batch) * count / seconds / MB


def _append_all(log: Log, batch: bytes, count: int) -> None:
    append_as_leader, append = log.append_as_leader, LogAppend(batch, NOW)
    for _ in range(count):
        append_as_leader(append, 0)


def _plain_write(directory: str, batch: bytes, count: int) -> float:
    path = f"{directory}/plain"
    descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR)
    try:
        seconds = _timed(lambda: _write_all(descriptor, batch, count))
    finally:
        os.close(descriptor)
        os.unlink(path)
    return len(batch) * count / seconds / MB


def _write_all(descriptor: int, batch: bytes, count: int) -> None:
    for _ in range(count):
        os.write(descriptor, batch)


# -- read and recover


def _read_figures(directory: str, size: int, turns: int) -> Iterator[Figure]:
    path = f"{directory}/read/bench-0"
    batch = record_batch(1024)
    log = _open_log(path)
    _append_all(log, batch, size // len(batch))
    log.update_high_watermark(log.log_end_offset)
    log.close(NOW)
    log = _open_log(path, clean=True)
    log.update_high_watermark(log.log_end_offset)
    yield by_turns(
        Figure("read, 1 MB fetches from the page cache", "MB/s", 2000, limit_name="plain read"),
        turns,
        lambda: _read(log),
        lambda: _plain_read(path),
    )
    log.close_handlers()
    yield by_turns(
        Figure("recovery, every batch checked, indexes rebuilt", "MB/s", 500, limit_name="plain read"),
        turns,
        lambda: _recover(path),
        lambda: _plain_read(path),
    )
    shutil.rmtree(f"{directory}/read")


def _read(log: Log) -> float:
    total = 0

    def read_all() -> None:
        nonlocal total
        offset = 0
        while offset < log.log_end_offset:
            fetched = log.read(offset, READ_BYTES, FetchIsolation.HIGH_WATERMARK, min_one_message=True)
            assert fetched.records is not None
            data = fetched.records.read()
            total += len(data)
            # A client goes on after the last whole batch; batches are alike here, so that one can be counted out.
            offset = _next_offset(data)

    seconds = _timed(read_all)
    return total / seconds / MB


def _next_offset(data: bytes) -> int:
    first = int.from_bytes(data[:8], "big")
    size = int.from_bytes(data[8:12], "big") + 12
    count = int.from_bytes(data[57:61], "big")
    return first + len(data) // size * count


def _plain_read(path: str) -> float:
    total = 0

    def read_all() -> None:
        nonlocal total
        for name in sorted(os.listdir(path)):
            if name.endswith(".log"):
                descriptor = os.open(f"{path}/{name}", os.O_RDONLY)
                position = 0
                while data := os.pread(descriptor, READ_BYTES, position):
                    position += len(data)
                total += position
                os.close(descriptor)

    seconds = _timed(read_all)
    return total / seconds / MB


def _recover(path: str) -> float:
    log: Log | None = None

    def recover() -> None:
        nonlocal log
        log = _open_log(path)

    seconds = _timed(recover)
    assert log is not None
    size = log.size
    log.close_handlers()
    return size / seconds / MB


# -- opening many segments


def _open_figures(directory: str, turns: int) -> Iterator[Figure]:
    path = f"{directory}/many"
    _make_segments(path)
    opened: list[float] = []
    figure = by_turns(
        Figure(f"opening {SEGMENTS:,} segments in {SEGMENTS // SEGMENTS_PER_LOG:,} logs", "s", 2.0, smaller_is_better=True),
        turns,
        lambda: _open_all(path, opened),
    )
    yield figure
    yield Figure("files open after that and a read of every segment", "files", 20_000, opened[-turns:], smaller_is_better=True)
    shutil.rmtree(path)


def _make_segments(path: str) -> None:
    batch = record_batch(100, 1024)
    manager = LogManager(Files(), [path], LogConfig())
    manager.load(NOW)
    for number in range(SEGMENTS // SEGMENTS_PER_LOG):
        log = manager.get_or_create(TopicPartition("many", number), NOW)
        for _ in range(SEGMENTS_PER_LOG - 1):
            log.append_as_leader(LogAppend(batch, NOW), 0)
            log.roll(NOW)
        log.append_as_leader(LogAppend(batch, NOW), 0)
        # A real shutdown syncs every file; here that would only measure the disk.
        log.producers.take_snapshot(sync=False)
        log.segments.close()
    manager.dirs[path].checkpoint_recovery_points(manager.logs)
    manager.dirs[path].clean_shutdown.write()
    manager.dirs[path].release()


def _open_all(path: str, opened: list[float]) -> float:
    manager = LogManager(Files(), [path], LogConfig())
    seconds = _timed(lambda: manager.load(NOW))
    assert sum(len(log.segments) for log in manager.logs) == SEGMENTS
    for log in manager.logs:
        for segment in log.segments:
            read = log.read(segment.base_offset, 1024, FetchIsolation.LOG_END, min_one_message=True)
            assert read.records is not None and read.records.read()
    opened.append(float(len(os.listdir("/proc/self/fd"))))
    for log in manager.logs:
        log.close_handlers()
    manager.dirs[path].clean_shutdown.write()
    manager.dirs[path].release()
    return seconds


# -- helpers


def _open_log(path: str, clean: bool = False) -> Log:
    return load_log(LoadRequest(Files(), path, PARTITION, LogConfig(), _Later(), NOW, clean_shutdown=clean))


def _timed(action: Callable[[], None]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


@contextmanager
def _scratch() -> Iterator[str]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(20_000, hard) if hard > 0 else 20_000, hard))
    directory = tempfile.mkdtemp(prefix="barnabas-bench-")
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
