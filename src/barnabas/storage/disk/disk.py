"""The interface of a disk, implemented by the real files and by the simulated ones.

All storage code is typed against `AnyFiles` and `AnyFile` (imported from `barnabas.storage.disk.files`), never against one implementation,
so that the simulator can use a disk that loses, tears and rejects writes. Errors of the device are `OSError`; none is hidden.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

READ_BYTES_MAX: Final = 256 * 1024 * 1024  # the default limit of read_bytes
TEMPORARY_SUFFIX: Final = ".tmp"

Buffer = bytes | bytearray | memoryview


def is_shortage(error: BaseException) -> bool:
    """Whether the process or the machine has no descriptor left. That is no fault of the disk: the same call succeeds later."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


class DirEntry(NamedTuple):
    name: str
    size: int  # 0 for a directory
    is_dir: bool


class AnyLock(Protocol):
    """A lock on a file, exclusive among processes and within this process."""

    def release(self) -> None: ...


class AnyFile(Protocol):
    """A file that can be used until it is closed, whether or not a descriptor is open at the moment.

    There is one `AnyFile` per path: it tracks the size, and a second one on the same path would not see it grow. One thread at a time may
    use it, except for `pin`, `unpin`, `sync` and, while the file is pinned, `pread`: those may run on other threads at any time.
    """

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int: ...

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Writes all buffers at the end; returns the position where they start. A failure leaves the file as it was."""

    def append_bytes(self, data: Buffer) -> int:
        """`append` of one buffer."""

    def write_at(self, data: Buffer, position: int) -> None:
        """Overwrites, or grows the file without a gap. A failure leaves the size as it was, the overwritten part undefined."""

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes, fewer only at the end of the file."""

    def pread_nowait(self, size: int, position: int) -> bytes | None:
        """As `pread`, or None if the read would wait for the device: the caller then reads on a thread."""

    def cached_descriptor(self, size: int, position: int) -> int:
        """The descriptor of a pinned file, if that part of it seems to be in the page cache; else -1."""

    def truncate(self, size: int) -> None:
        """Shortens the file; never grows it."""

    def sync(self) -> None:
        """Makes all writes durable."""

    def renamed(self, path: str) -> None:
        """The file, or a directory above it, was renamed."""

    def pin(self) -> None:
        """Opens the descriptor and keeps it open until `unpin`. A file that is passed to a thread is pinned first."""

    def unpin(self) -> None: ...

    def close(self) -> None:
        """Closes the descriptor once it is not pinned; reading or writing afterwards raises ValueError."""


class AnyFiles(Protocol):
    """Operations on files and directories. A change of names is durable only after `sync_dir` of the directory."""

    def open(self, path: str, *, create: bool = False, truncate: bool = False, writable: bool = True) -> AnyFile:
        """Raises FileNotFoundError for a missing file at once, unless `create`. The descriptor is opened at first use."""

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None: ...

    def list_dir(self, path: str) -> list[DirEntry]:
        """Sorted by name."""

    def make_dirs(self, path: str) -> None:
        """Creates the directory and its parents if they do not exist."""

    def shut_out_others(self, path: str) -> bool:
        """Removes all permissions of others (neither owner nor group) on a path; returns whether they had any. Raises PermissionError if
        the path belongs to another user, or all users may write to it."""

    def remove(self, path: str, missing_ok: bool = False) -> bool:
        """Removes a file; returns whether there was one. An open `AnyFile` of it may be used until it is closed."""

    def remove_tree(self, path: str) -> None:
        """Removes a directory and its content if it exists."""

    def rename(self, src: str, dst: str) -> None:
        """Renames atomically; an existing file `dst` is replaced. The caller tells an open `AnyFile` with `renamed`."""

    def sync_dir(self, path: str) -> None: ...

    def sync_file(self, path: str) -> None:
        """Makes the content of a file durable that has no `AnyFile`."""

    def read_bytes(self, path: str, limit: int = READ_BYTES_MAX) -> bytes:
        """The whole file. A file larger than `limit` raises OSError (EFBIG) before anything is allocated."""

    def lock(self, path: str) -> AnyLock:
        """Creates the file if it does not exist. Raises BlockingIOError if the lock is already held."""

    def free_bytes(self, path: str) -> int: ...

    def write_atomically(self, path: str, content: bytes, sync: bool = True) -> None:
        """Replaces a file so that a crash leaves the old or the new content, never a mixture (without `sync`: or nothing)."""


def write_atomically(files: AnyFiles, path: str, content: bytes, sync: bool) -> None:
    """The steps for every disk, so that the simulated disk tests the real order of operations."""
    temporary = path + TEMPORARY_SUFFIX
    try:
        file = files.open(temporary, create=True, truncate=True)
        try:
            file.append_bytes(content)
            if sync:
                file.sync()
        finally:
            file.close()
        files.rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            files.remove(temporary, missing_ok=True)
        raise
    if sync:
        files.sync_dir(os.path.dirname(path))
