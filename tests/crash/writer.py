"""A process that writes to logs until it is killed, for test_sigkill.py.

`python -m tests.crash.writer` waits for orders on stdin, one line each: a directory and a seed. For every order it forks a child, which
opens the directory, writes, and says on stdout what it has been told is written: a line only after the append returned. The parent says
when a child is gone. Forking saves starting an interpreter for each of hundreds of lives.
"""

from __future__ import annotations

import os
import random
import sys
from typing import Any

from barnabas.records.builder import BatchBuilder
from barnabas.records.control import end_txn_marker
from barnabas.records.validation.validator import COORDINATOR
from barnabas.storage.disk.files import Files
from barnabas.storage.log.append import LogAppend
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_manager import LogManager
from barnabas.storage.management.log_manager_config import LogManagerConfig
from barnabas.storage.producers.state import ProducerStateConfig
from barnabas.topic_partition import TopicPartition

PLAIN = TopicPartition("plain", 0)
COMPACTED = TopicPartition("compacted", 0)
KEYS = 40
PRODUCER_ID = 11
START_MS = 1_700_000_000_000


def open_manager(directory: str) -> LogManager:
    plain = LogConfig(segment_bytes=60_000, index_interval_bytes=1000, retention_bytes=200_000, file_delete_delay_ms=5)
    compacted = LogConfig(
        segment_bytes=20_000,
        index_interval_bytes=500,
        cleanup_policy=frozenset({"compact"}),
        min_cleanable_dirty_ratio=0.1,
        delete_retention_ms=50,
        file_delete_delay_ms=5,
    )
    config = LogManagerConfig(producers=ProducerStateConfig(transaction_verification_enabled=False))
    return LogManager(Files(), [directory], plain, config, topic_configs={"compacted": compacted})


def value_at(offset: int) -> bytes:
    """What the plain log holds at an offset: checkable without remembering anything."""
    return b"%d-" % offset * (offset % 40 + 1)


def write(directory: str, seed: int) -> None:
    rng = random.Random(seed)
    manager = open_manager(directory)
    now_ms = START_MS + seed * 10_000
    manager.load(now_ms)
    plain = manager.get_or_create(PLAIN, now_ms)
    compacted = manager.get_or_create(COMPACTED, now_ms)
    while True:
        now_ms += rng.randint(0, 20)
        choice = rng.random()
        if choice < 0.5:
            append_plain(plain, rng, now_ms)
            say("plain", plain.log_end_offset)
        elif choice < 0.85:
            key, number = append_compacted(compacted, rng, now_ms)
            say("compacted", key, number)
        elif choice < 0.9:
            manager.flushes.run_all(now_ms)
        elif choice < 0.95:
            for log in (plain, compacted):
                log.update_high_watermark(log.log_end_offset)
            manager.tick(now_ms, now_ms)
            manager.remove_deleted(now_ms)
            manager.delete_old_segments(now_ms)
        else:
            compacted.update_high_watermark(compacted.log_end_offset)
            manager.cleaner.run_once(now_ms)


def append_plain(log: Log, rng: random.Random, now_ms: int) -> None:
    """Plain, idempotent or, now and then, a whole transaction."""
    entry = log.producers.last_entry(PRODUCER_ID)
    epoch = max(entry.producer_epoch, 0) if entry is not None else 0
    sequence = entry.last_sequence + 1 if entry is not None else 0
    kind = rng.choice(["plain", "idempotent", "transaction"])
    if entry is not None and entry.current_txn_first_offset >= 0:
        kind = "transaction"  # the one a killed writer left open
    producer: dict[str, Any] = {}
    if kind != "plain":
        producer = {"producer_id": PRODUCER_ID, "producer_epoch": epoch, "base_sequence": sequence}
    builder = BatchBuilder(codec=rng.choice([0, 0, 1, 2, 3, 4]), transactional=kind == "transaction", **producer)
    for offset in range(log.log_end_offset, log.log_end_offset + rng.randint(1, 20)):
        builder.append(now_ms, b"key", value_at(offset))
    log.append_as_leader(LogAppend(builder.build(), now_ms), 0)
    if kind == "transaction":
        log.append_as_leader(LogAppend(end_txn_marker(rng.random() < 0.5, PRODUCER_ID, epoch, 0, now_ms), now_ms, origin=COORDINATOR), 0)


def append_compacted(log: Log, rng: random.Random, now_ms: int) -> tuple[int, int]:
    key, number = rng.randrange(KEYS), log.log_end_offset
    builder = BatchBuilder()
    builder.append(now_ms, b"%d" % key, b"%d" % number + b"." * rng.randint(0, 300))
    log.append_as_leader(LogAppend(builder.build(), now_ms), 0)
    return key, number


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main() -> None:
    for line in sys.stdin:
        directory, seed = line.split()
        child = os.fork()
        if child == 0:
            write(directory, int(seed))
        say("born", child)
        _, status = os.waitpid(child, 0)
        say("gone", status)


if __name__ == "__main__":
    main()
