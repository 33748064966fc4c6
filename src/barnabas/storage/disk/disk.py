"""What storage asks of a disk: the interface behind which the real files and the simulated ones stand.

All storage code is typed against `AnyFiles` and `AnyFile` (imported from `barnabas.storage.disk.files`), never against one implementation,
so that the simulator can put a disk underneath that loses, tears and refuses writes. Faults of the device stay `OSError`; none is hidden.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

READ_BYTES_MAX: Final = 256 * 1024 * 1024  # what read_bytes takes into memory unless told otherwise
TEMPORARY_SUFFIX: Final = ".tmp"

Buffer = bytes | bytearray | memoryview


def is_shortage(error: BaseException) -> bool:
    """Whether the process or the machine has no descriptor left. That says nothing about the disk: the same call succeeds later."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


class DirEntry(NamedTuple):
    name: str
    size: int  # 0 for a directory
    is_dir: bool


class AnyLock(Protocol):
    """A lock on a file that no other process and no other holder in this process has."""

    def release(self) -> None: ...


class AnyFile(Protocol):
    """A file that is open for as long as its user keeps it, whether or not a descriptor is open at the moment.

    One `AnyFile` per path: it tracks the size, and a second one on the same path would not see it grow. One thread at a time may use it,
    except for `pin`, `unpin`, `sync` and, while the file is pinned, `pread`: those may run beside whatever its owner does.
    """

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int: ...

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Writes all buffers at the end and gives the position where they start. A failure leaves the file as it was."""

    def append_bytes(self, data: Buffer) -> int:
        """`append` of one buffer."""

    def write_at(self, data: Buffer, position: int) -> None:
        """Overwrites, or grows the file without a gap. A failure leaves the size as it was, the overwritten part undefined."""

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes, fewer only at the end of the file."""

    def pread_nowait(self, size: int, position: int) -> bytes | None:
        """As `pread`, or None where the device would have to be waited for: read it in a thread then."""

    def cached_descriptor(self, size: int, position: int) -> int:
        """The descriptor of a file that is pinned, if such a part of it seems to be in the page cache; else -1: read it then."""

    def truncate(self, size: int) -> None:
        """Cuts the tail off; never grows the file."""

    def sync(self) -> None:
        """Makes all that was written durable."""

    def renamed(self, path: str) -> None:
        """The file, or a directory above it, now has another name."""

    def pin(self) -> None:
        """Opens the descriptor and keeps it until `unpin`: what is handed to a thread is pinned first."""

    def unpin(self) -> None: ...

    def close(self) -> None:
        """Gives the descriptor back, once nobody pins it; reading or writing afterwards is a ValueError."""


class AnyFiles(Protocol):
    """The operations on names. None of them is durable before `sync_dir` of the directory they happened in."""

    def open(self, path: str, *, create: bool = False, truncate: bool = False, writable: bool = True) -> AnyFile:
        """A missing file is a FileNotFoundError here and now, unless `create`. No descriptor is opened before it is needed."""

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None: ...

    def list_dir(self, path: str) -> list[DirEntry]:
        """Sorted by name."""

    def make_dirs(self, path: str) -> None:
        """Makes the directory and its parents; one that exists is fine."""

    def shut_out_others(self, path: str) -> bool:
        """Takes what others (neither owner nor group) may do with a path away from them and says whether they could do anything. Raises
        PermissionError where the path is not ours, or meant for everybody."""

    def remove(self, path: str, missing_ok: bool = False) -> bool:
        """Removes a file and says whether there was one. An open `AnyFile` of it may be used until it is closed."""

    def remove_tree(self, path: str) -> None:
        """Removes a directory with all that is in it; a missing one is fine."""

    def rename(self, src: str, dst: str) -> None:
        """Atomically, over whatever file `dst` names. Tell an open `AnyFile` with `renamed`."""

    def sync_dir(self, path: str) -> None: ...

    def sync_file(self, path: str) -> None:
        """Makes the content of a file durable that is not open."""

    def read_bytes(self, path: str, limit: int = READ_BYTES_MAX) -> bytes:
        """The whole file; one larger than `limit` is an OSError (EFBIG) before anything is allocated."""

    def lock(self, path: str) -> AnyLock:
        """Creates the file where needed; a lock that is held elsewhere is a BlockingIOError."""

    def free_bytes(self, path: str) -> int: ...

    def write_atomically(self, path: str, content: bytes, sync: bool = True) -> None:
        """Replaces a file so that a crash leaves the old or the new content, never a mixture (without `sync`: or nothing)."""


def write_atomically(files: AnyFiles, path: str, content: bytes, sync: bool) -> None:
    """The same steps on every disk, so that the simulated one puts the real order of things to the test."""
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
