"""What the operating system offers beyond POSIX: each feature is looked up here, once, and has a portable replacement.

Linux has all of them, macOS some. BARNABAS_PORTABLE=1 switches all of them off, so that the tests run the replacements on Linux too.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import socket
import struct
import sys
from typing import Final

PORTABLE: Final = os.environ.get("BARNABAS_PORTABLE") == "1"


def _constant(module: object, name: str) -> int:
    """A flag of the system; 0, which changes nothing, where the system does not have it."""
    flag: int = 0 if PORTABLE else getattr(module, name, 0)
    return flag


# preadv reads only what is in the page cache. Without it the event loop waits for the disk when it reads a page that is not cached.
RWF_NOWAIT: Final = _constant(os, "RWF_NOWAIT")
# The next bytes belong to the same packet. Without it a header may be sent as a packet of its own.
MSG_MORE: Final = _constant(socket, "MSG_MORE")
# Buffers that one pwritev takes; Linux and macOS allow 1,024. Without pwritev the buffers are joined first.
IOV_MAX: Final = 1024 if hasattr(os, "pwritev") and not PORTABLE else 0
# The kernel sends a file. Without it the bytes are read and go through the transport, as on a TLS connection.
HAS_SENDFILE: Final = hasattr(os, "sendfile") and not PORTABLE
# Memory and command line of processes. Without it memory is unknown and a command line is left as it is.
HAS_PROC: Final = os.path.exists("/proc/self/stat") and not PORTABLE

# The data of a file without its times of access and change. Without it all of the file is synced.
HAS_FDATASYNC: Final = hasattr(os, "fdatasync") and not PORTABLE
# macOS's fsync leaves the data in the cache of the drive, F_FULLFSYNC does not. Elsewhere fsync is enough.
F_FULLFSYNC: Final = _constant(fcntl, "F_FULLFSYNC")
_NO_FULL_SYNC: Final = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY})  # file systems of macOS with fsync alone
OPEN_FILES_MAX: Final = 10_240  # OPEN_MAX of macOS, which refuses more although it calls the hard limit infinite


# The process at the other end of a Unix socket. Linux gives its ids as three numbers; macOS has an option for its process id alone.
SO_PEERCRED: Final = _constant(socket, "SO_PEERCRED")
_CREDENTIALS: Final = struct.Struct("3i")
_SOL_LOCAL: Final = 0
_LOCAL_PEERPID: Final = 2
_PROCESS: Final = struct.Struct("i")


def peer_process(connection: socket.socket) -> int | None:
    """The id of the process that connected to a Unix socket of this one; None where the system does not tell it."""
    try:
        if SO_PEERCRED:
            return int(_CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, SO_PEERCRED, _CREDENTIALS.size))[0])
        if sys.platform == "darwin" and not PORTABLE:
            return int(_PROCESS.unpack(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, _PROCESS.size))[0])
    except OSError:
        pass
    return None


def sync_data(descriptor: int) -> None:
    """Returns when the bytes of a file are on the disk."""
    if HAS_FDATASYNC and not F_FULLFSYNC:
        os.fdatasync(descriptor)
    else:
        sync_all(descriptor)


def sync_all(descriptor: int) -> None:
    """Returns when the bytes of a file and its metadata, or the entries of a directory, are on the disk."""
    if F_FULLFSYNC:
        try:
            fcntl.fcntl(descriptor, F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in _NO_FULL_SYNC:
                raise
    os.fsync(descriptor)


def raise_open_files_limit() -> OSError | ValueError | None:
    """Lets this process open as many files as the hard limit allows. Returns the error where the limit stays as it was."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    refused: OSError | ValueError | None = None
    for limit in (hard, min(hard, OPEN_FILES_MAX)):
        if soft >= limit:
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        except (ValueError, OSError) as error:
            refused = error
        else:
            return None
    return refused
