"""Each way a start can fail has a code of its own and one line that names the fix."""

from __future__ import annotations

import errno
import os

import pytest

from barnabas.config_def import InvalidConfig
from barnabas.errors import DuplicateBrokerRegistration, InvalidMetaProperties, KafkaStorageError
from barnabas.metadata.errors import StoreUnusable
from barnabas.storage.log_manager import AllLogDirsFailed
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode, explain


def disk_error(number: int) -> OSError:
    return OSError(number, os.strerror(number), "/data")


CASES = [
    (InvalidConfig("Invalid value x for configuration y"), ExitCode.INVALID_CONFIG, "configuration y"),
    (DuplicateBrokerRegistration("Give this one another broker.id"), ExitCode.INVALID_CONFIG, "another broker.id"),
    (OSError(errno.EADDRINUSE, "Socket server failed to bind to localhost:1; stop it"), ExitCode.ADDRESS_UNAVAILABLE, "stop it"),
    (OSError(-2, "Socket server failed to bind to nowhere:1; correct the host"), ExitCode.ADDRESS_UNAVAILABLE, "correct the host"),
    (KafkaStorageError("Failed to acquire lock on file .lock in /data."), ExitCode.DIRECTORY_IN_USE, "of its own"),
    (StoreUnusable("The store is in use by another broker. Stop that one"), ExitCode.DIRECTORY_IN_USE, "Stop that one"),
    (StoreUnusable("The store is damaged"), ExitCode.DISK_UNUSABLE, "damaged"),
    (InvalidMetaProperties("Configured broker.id 1 doesn't match"), ExitCode.FOREIGN_DIRECTORY, "doesn't match"),
    (KafkaStorageError("Found /d/x, 'x' is not in the form of topic-partition or\nmore"), ExitCode.FOREIGN_DIRECTORY, "move it away"),
    (AllLogDirsFailed("Shutdown broker because none of the log dirs works"), ExitCode.DISK_UNUSABLE, "log.dirs"),
    (disk_error(errno.EACCES), ExitCode.DISK_UNUSABLE, "/data: Permission denied; let this user write there"),
    (disk_error(errno.ENOSPC), ExitCode.DISK_UNUSABLE, "free some space"),
    (disk_error(errno.EROFS), ExitCode.DISK_UNUSABLE, "mount it writable"),
]


@pytest.mark.parametrize(("error", "code", "fix"), CASES, ids=lambda value: str(value)[:30])
def test_an_error_is_explained(error: Exception, code: ExitCode, fix: str) -> None:
    known = explain(error)
    assert known is not None
    assert known.code is code
    assert fix in str(known)
    assert "\n" not in str(known)


def test_what_was_explained_stays_as_it_is() -> None:
    known = CannotRun(ExitCode.LOG_DIRS_FAILED, "all gone")
    assert explain(known) is known


def test_a_fault_of_ours_is_not_explained_away() -> None:
    assert explain(ValueError("?")) is None


def test_codes_keep_their_numbers() -> None:
    assert [code.value for code in ExitCode] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 70]
