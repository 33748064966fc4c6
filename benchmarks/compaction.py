"""How fast a log is compacted: 1 KB records in 16 KB batches, of which every second is superseded by a later one."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable

from barnabas.records.builder import BatchBuilder
from barnabas.storage.compaction.cleaner import Cleaning, exhaust
from barnabas.storage.compaction.config import CleanerConfig
from barnabas.storage.disk.files import Files
from barnabas.storage.host import DirectHost
from barnabas.storage.log.append import LogAppend
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.topic_partition import TopicPartition
from benchmarks.report import Figure, by_turns

MB = 1_000_000
NOW_MS = 1_700_000_000_000
KEY_BYTES = 16
READ_BYTES = 256 * 1024


def figure(directory: str, megabytes: int, turns: int) -> Figure:
    return by_turns(
        Figure("compaction, 1 KB records in 16 KB batches, half superseded", "MB/s", 100, limit_name="read twice, write half, sync"),
        turns,
        lambda: run(directory, megabytes),
        lambda: _plain_copy(directory, megabytes),
    )


def run(directory: str, megabytes: int, record_bytes: int = 1024, batch_bytes: int = 16 * 1024, codec: int = 0) -> float:
    """Writes a log of so many megabytes below `directory` and cleans it; gives the MB of log per second, with both passes and the sync."""
    log = _dirty_log(directory, megabytes, record_bytes, batch_bytes, codec)
    try:
        size = log.size
        cleaning = Cleaning(log, 0, log.active_segment.base_offset, CleanerConfig(), NOW_MS)
        started = time.perf_counter()
        exhaust(cleaning, NOW_MS)
        elapsed = time.perf_counter() - started
        if not 0.25 < log.size / size < 0.75:
            raise AssertionError(f"{size} bytes were compacted to {log.size}: the benchmark is not what it says")
        return size / MB / elapsed
    finally:
        log.delete()


class _Host(DirectHost):
    """Old segments are deleted later, and flushes are not what is measured."""

    def delete_later(self, delete: Callable[[], None], at_ms: int) -> None:
        return None

    def flush_later(self, log: Log, offset: int) -> None:
        return None


def _dirty_log(directory: str, megabytes: int, record_bytes: int, batch_bytes: int, codec: int) -> Log:
    config = LogConfig(cleanup_policy=frozenset({"compact"}))
    log = load_log(LoadRequest(Files(), f"{directory}/compaction-0", TopicPartition("compaction", 0), config, _Host(), NOW_MS))
    source = random.Random(0)
    records = megabytes * MB // record_bytes
    keys = [b"%0*d" % (KEY_BYTES, number // 2) for number in range(records)]
    source.shuffle(keys)
    value = source.randbytes(max(0, record_bytes - KEY_BYTES - 12))
    per_batch = max(1, batch_bytes // record_bytes)
    for start in range(0, records, per_batch):
        builder = BatchBuilder(codec=codec)
        for number, key in enumerate(keys[start : start + per_batch]):
            builder.append(NOW_MS + number, key, value)
        log.append_as_leader(LogAppend(builder.build(), NOW_MS), 0)
    log.roll(NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    return log


def _plain_copy(directory: str, megabytes: int) -> float:
    """What any compaction has to do with the disk, and nothing else."""
    source, target = f"{directory}/plain", f"{directory}/plain.cleaned"
    size = megabytes * MB
    with open(source, "wb") as file:
        for _ in range(0, size, READ_BYTES):
            file.write(bytes(READ_BYTES))
    started = time.perf_counter()
    with open(source, "rb", buffering=0) as file, open(target, "wb", buffering=0) as copy:
        while file.read(READ_BYTES):
            pass
        file.seek(0)
        while chunk := file.read(READ_BYTES):
            copy.write(chunk[: len(chunk) // 2])
        os.fdatasync(copy.fileno())
    elapsed = time.perf_counter() - started
    os.unlink(source)
    os.unlink(target)
    return size / MB / elapsed


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    with tempfile.TemporaryDirectory() as directory:
        for record_bytes in (1024, 100):
            print(f"compaction, {record_bytes} B records in 16 KB batches: {run(directory, megabytes, record_bytes):.0f} MB/s")


if __name__ == "__main__":
    main()
