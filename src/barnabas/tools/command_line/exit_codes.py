"""The exit codes of the commands that run a broker, and the one line that names the cause and the fix.

Scripts and service managers act on the code, people on the line. An expected error never shows a traceback.
"""

from __future__ import annotations

import errno
from enum import IntEnum
from typing import Final

from barnabas.config_def import InvalidConfig
from barnabas.errors import DuplicateBrokerRegistration, InvalidMetaProperties, KafkaError, StorageFault
from barnabas.metadata.errors import SessionExpired, StoreUnusable, TreeError
from barnabas.metadata.znodes.json_text import CorruptZNode
from barnabas.storage.log_manager import AllLogDirsFailed


class ExitCode(IntEnum):
    """Documented in docs/running.md; a number, once given, keeps its meaning."""

    STOPPED = 0
    INVALID_CONFIG = 1
    USAGE = 2  # argparse's own
    ADDRESS_UNAVAILABLE = 3
    DIRECTORY_IN_USE = 4
    FOREIGN_DIRECTORY = 5
    DISK_UNUSABLE = 6
    LOG_DIRS_FAILED = 7
    ZOOKEEPER_UNUSABLE = 8  # of zookeeper.connect
    INTERNAL_ERROR = 70


class CannotRun(Exception):
    """An error that ends a command; the text is printed for the user."""

    def __init__(self, code: ExitCode, text: str) -> None:
        super().__init__(text)
        self.code = code


_ADDRESS_ERRORS: Final = (errno.EADDRINUSE, errno.EADDRNOTAVAIL)
_DISK_ADVICE: Final = {
    errno.EACCES: "let this user write there, or name another directory in log.dirs",
    errno.EPERM: "let this user write there, or name another directory in log.dirs",
    errno.EROFS: "mount it writable, or name another directory in log.dirs",
    errno.ENOSPC: "free some space, or name a directory on another disk in log.dirs",
    errno.EDQUOT: "free some space, or name a directory on another disk in log.dirs",
    errno.ENOTDIR: "name another directory in log.dirs",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the limit of open files of this machine (fs.file-max)",
}
_IN_USE: Final = "stop it, or give this broker a directory of its own in log.dirs"


def explain(error: BaseException) -> CannotRun | None:
    """The exit code and text for an error at start-up; None for an error that only a bug of ours can cause."""
    if isinstance(error, CannotRun):
        return error
    if isinstance(error, InvalidConfig | DuplicateBrokerRegistration):
        return CannotRun(ExitCode.INVALID_CONFIG, str(error))
    if isinstance(error, InvalidMetaProperties):
        return CannotRun(ExitCode.FOREIGN_DIRECTORY, str(error))
    if isinstance(error, StoreUnusable):
        if "ookeeper" in str(error).lower():
            return CannotRun(ExitCode.ZOOKEEPER_UNUSABLE, str(error))
        in_use = "is in use" in str(error)
        return CannotRun(ExitCode.DIRECTORY_IN_USE if in_use else ExitCode.DISK_UNUSABLE, str(error))
    if isinstance(error, SessionExpired):
        fix = "start it again, or raise zookeeper.session.timeout.ms"
        return CannotRun(ExitCode.ZOOKEEPER_UNUSABLE, f"The session with ZooKeeper ended while the broker was starting; {fix}")
    if isinstance(error, AllLogDirsFailed):
        return CannotRun(ExitCode.DISK_UNUSABLE, f"{_one_line(error)}; let this user write there, or name another directory in log.dirs")
    if isinstance(error, KafkaError | StorageFault | TreeError | CorruptZNode):
        return _explain_directory(error)
    if isinstance(error, OSError):
        return _explain_system(error)
    return None


def _explain_directory(error: Exception) -> CannotRun:
    text = _one_line(error)
    if "Failed to acquire lock" in text:
        return CannotRun(ExitCode.DIRECTORY_IN_USE, f"{text.rstrip('.')}; {_IN_USE}")
    if "is not in the form of topic-partition" in text:
        return CannotRun(ExitCode.FOREIGN_DIRECTORY, f"{text.rstrip('.')}; move it away, or name another directory in log.dirs")
    return CannotRun(ExitCode.DISK_UNUSABLE, text)


def _explain_system(error: OSError) -> CannotRun:
    if error.errno in _ADDRESS_ERRORS or "failed to bind" in str(error):
        return CannotRun(ExitCode.ADDRESS_UNAVAILABLE, error.strerror or str(error))
    what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    advice = _DISK_ADVICE.get(error.errno or 0, "check the disk")
    return CannotRun(ExitCode.DISK_UNUSABLE, f"{what}; {advice}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
