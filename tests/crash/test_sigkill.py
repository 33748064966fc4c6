"""A broker's process killed with SIGKILL in the middle of writing, again and again, on a real disk.

The page cache survives the process, so nothing that was acknowledged may be missing, nothing half-written may be served, and each life goes
on from where the one before was cut off: appends, transactions, rolls, retention, compaction and recovery all get killed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.records.reader import records_of
from barnabas.storage.log.fetch import FetchIsolation
from barnabas.storage.log.log import Log
from tests.crash.writer import COMPACTED, PLAIN, START_MS, open_manager, value_at

KILLS = 200
CHUNKS = 4  # so that they may run side by side


@pytest.fixture
def writer() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-m", "tests.crash.writer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_acknowledged_is_lost_by_a_kill(chunk: int, tmp_path: Path, writer: subprocess.Popen[str]) -> None:
    acknowledged = Acknowledged()
    for life in range(KILLS // CHUNKS):
        seed = chunk * 1000 + life
        live_and_be_killed(writer, str(tmp_path), seed, acknowledged)
        check(str(tmp_path), seed, acknowledged)


class Acknowledged:
    def __init__(self) -> None:
        self.plain_end = 0
        self.compacted: dict[int, int] = {}  # by key, the number last written


def live_and_be_killed(writer: subprocess.Popen[str], directory: str, seed: int, acknowledged: Acknowledged) -> None:
    assert writer.stdin is not None and writer.stdout is not None
    writer.stdin.write(f"{directory} {seed}\n")
    writer.stdin.flush()
    rng = random.Random(seed)
    lines_left = rng.choice([0, rng.randint(1, 10), rng.randint(1, 200)])
    killed = False
    pid = 0
    while True:
        words = writer.stdout.readline().split()
        assert words, "the writer is gone"
        if words[0] == "born":
            pid = int(words[1])
        elif words[0] == "gone":
            assert int(words[1]) == signal.SIGKILL, "the writer ended by itself"
            return
        elif words[0] == "plain":
            acknowledged.plain_end = int(words[1])
        elif words[0] == "compacted":
            acknowledged.compacted[int(words[1])] = int(words[2])
        lines_left -= words[0] != "born"
        if pid and not killed and lines_left <= 0:
            os.kill(pid, signal.SIGKILL)  # what it says until then is still read above
            killed = True


def check(directory: str, seed: int, acknowledged: Acknowledged) -> None:
    """Opens what the dead process left, as the next one will, without leaving a mark: no clean shutdown."""
    manager = open_manager(directory)
    now_ms = START_MS + seed * 10_000 + 9_000
    manager.load(now_ms)
    plain, compacted = manager.get(PLAIN), manager.get(COMPACTED)
    if plain is not None:
        check_plain(plain, acknowledged.plain_end)
    if compacted is not None:
        check_compacted(compacted, acknowledged.compacted)
    for log in manager.logs:
        log.close_handlers()
    manager.dirs[directory].release()


def check_plain(log: Log, end: int) -> None:
    assert log.log_end_offset >= end
    offsets = []
    for offset, key, value in read_all(log):
        offsets.append(offset)
        if key == b"key":  # else a marker
            assert value == value_at(offset)
    assert offsets == list(range(log.log_start_offset, log.log_end_offset))


def check_compacted(log: Log, latest: dict[int, int]) -> None:
    offsets: dict[int, int] = {}
    last_offset = -1
    for offset, key, value in read_all(log):
        assert offset > last_offset
        last_offset = offset
        assert key is not None and value is not None
        offsets[int(key)] = int(value.partition(b".")[0])
        assert offsets[int(key)] == offset, "a record moved"
    for number, offset in latest.items():
        # A write that was not acknowledged any more may have replaced it; an older one may not.
        assert offsets.get(number, -1) >= offset, f"key {number} should be {offset} or later"


def read_all(log: Log) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        fetched = log.read(offset, 30_000, FetchIsolation.LOG_END, min_one_message=True)
        if fetched.records is None:
            return
        for record in records_of(fetched.records.read()):
            if record.offset >= offset:
                yield record.offset, record.key, record.value
                offset = record.offset + 1
