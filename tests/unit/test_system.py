"""The portable replacements of what Linux has: `barnabas.system` chooses them, and BARNABAS_PORTABLE=1 has them run here."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas import system
from barnabas.tools.running import process_memory

ROOT = Path(__file__).parents[2]
FULL_SYNC = 51  # F_FULLFSYNC of macOS
# The tests of what uses the features, without those that are marked as Linux's.
PORTABLE_TESTS = (
    "tests/unit/storage/disk/test_files.py",
    "tests/unit/network/test_streamed.py",
    "tests/unit/tools/command_line/test_command_line.py",
)
CHOICES = "from barnabas import system as s; print(s.RWF_NOWAIT, s.MSG_MORE, s.IOV_MAX, s.HAS_SENDFILE, s.HAS_PROC, s.HAS_FDATASYNC)"


def run_portably(*command: str) -> str:
    settings = {**os.environ, "BARNABAS_PORTABLE": "1"}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_barnabas_portable_switches_every_feature_off() -> None:
    assert run_portably("-c", CHOICES).split() == ["0", "0", "0", "False", "False", "False"]


def test_a_process_takes_an_unknown_amount_of_memory_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "HAS_PROC", False)
    assert process_memory.tree_bytes(os.getpid()) is None


def test_files_and_streams_work_without_the_features_of_linux() -> None:
    printed = run_portably("-m", "pytest", "-q", "-p", "no:xdist", *PORTABLE_TESTS)
    assert " passed" in printed


def test_where_there_is_no_fdatasync_all_of_the_file_is_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(system, "HAS_FDATASYNC", False)
    monkeypatch.setattr(os, "fsync", synced.append)
    system.sync_data(7)
    assert synced == [7]


def test_macos_syncs_through_the_cache_of_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(system, "F_FULLFSYNC", FULL_SYNC)
    monkeypatch.setattr(fcntl, "fcntl", lambda descriptor, command: calls.append((descriptor, command)))
    monkeypatch.setattr(os, "fsync", lambda descriptor: pytest.fail("fsync is not enough"))
    system.sync_data(7)
    system.sync_all(8)
    assert calls == [(7, FULL_SYNC), (8, FULL_SYNC)]


def refusing(error: int) -> object:
    def refuse(descriptor: int, command: int) -> int:
        raise OSError(error, "refused")

    return refuse


def test_a_file_system_without_a_full_sync_gets_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(system, "F_FULLFSYNC", FULL_SYNC)
    monkeypatch.setattr(fcntl, "fcntl", refusing(errno.ENOTSUP))
    monkeypatch.setattr(os, "fsync", synced.append)
    system.sync_all(7)
    assert synced == [7]


def test_a_full_sync_that_fails_is_an_error_and_fsync_does_not_hide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "F_FULLFSYNC", FULL_SYNC)
    monkeypatch.setattr(fcntl, "fcntl", refusing(errno.EIO))
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    with pytest.raises(OSError, match="refused"):
        system.sync_all(7)


class Limits:
    """The limits of a process on a system that allows no more than `most`, whatever its hard limit says."""

    def __init__(self, soft: int, hard: int, most: int) -> None:
        self.now, self._most = (soft, hard), most

    def getrlimit(self, what: int) -> tuple[int, int]:
        return self.now

    def setrlimit(self, what: int, limits: tuple[int, int]) -> None:
        if limits[0] > self._most:
            raise ValueError("current limit exceeds maximum limit")
        self.now = limits


@pytest.mark.parametrize(
    ("before", "hard", "most", "after", "is_refused"),
    [
        (256, 4096, 4096, 4096, False),  # Linux
        (256, 2**63 - 1, 10_240, 10_240, False),  # macOS: the hard limit is infinite, and refused
        (20_000, 2**63 - 1, 20_000, 20_000, True),  # an administrator of macOS has set more than OPEN_MAX: it is not lowered
        (4096, 4096, 4096, 4096, False),
        (256, 4096, 256, 256, True),
    ],
)
def test_the_limit_of_open_files_is_raised_as_far_as_the_system_allows(
    monkeypatch: pytest.MonkeyPatch, before: int, hard: int, most: int, after: int, is_refused: bool
) -> None:
    limits = Limits(before, hard, most)
    monkeypatch.setattr(resource, "getrlimit", limits.getrlimit)
    monkeypatch.setattr(resource, "setrlimit", limits.setrlimit)
    error = system.raise_open_files_limit()
    assert limits.now == (after, hard)
    assert (error is not None) == is_refused
