# Compiled by mypyc: src/compiled.toml lists this module.
"""The real disk: all reads and writes of storage go through `Files` and `File`.

Writes go to the page cache on the event loop and are positional, so the tracked size is authoritative: bytes past it, left by a failed
write, are cut off or overwritten and never read. Only the sync methods sync, and no error is swallowed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import shutil
import stat
from collections.abc import Sequence
from typing import Final

from barnabas import system
from barnabas.file_modes import DIRECTORY_MODE, FILE_MODE
from barnabas.storage.disk.disk import READ_BYTES_MAX, AnyFile, AnyFiles, AnyLock, Buffer, DirEntry, write_atomically
from barnabas.storage.disk.file_pool import NO_DESCRIPTOR, READ_ONLY, READ_WRITE, FilePool, PooledFile

__all__ = ["AnyFile", "AnyFiles", "AnyLock", "Buffer", "DirEntry", "File", "FilePool", "Files"]

RWF_NOWAIT: Final[int] = system.RWF_NOWAIT
IOV_MAX: Final[int] = system.IOV_MAX


class File(PooledFile):
    """A file on the real disk; `AnyFile` says which method may be called on which thread."""

    __slots__ = ("_nowait", "_pool", "size")

    def __init__(self, pool: FilePool, path: str, size: int, flags: int) -> None:
        super().__init__(path, flags)
        self._pool = pool
        self._nowait = RWF_NOWAIT != 0
        self.size = size

    def append(self, buffers: Sequence[Buffer]) -> int:
        start = self.size
        size = 0
        for buffer in buffers:
            size += len(buffer)
        self.busy = True
        descriptor = self.descriptor
        try:
            if descriptor < 0:
                descriptor = self._pool.open(self)
            else:
                self.used = True
            written = os.pwritev(descriptor, buffers, start) if len(buffers) <= IOV_MAX else 0
            if written != size:
                _write_all(descriptor, memoryview(b"".join(buffers))[written:], start + written)
        except OSError:
            self._cut_back(descriptor)
            raise
        finally:
            self.busy = False
        self.size = start + size
        return start

    def append_bytes(self, data: Buffer) -> int:
        start = self.size
        self.write_at(data, start)
        return start

    def write_at(self, data: Buffer, position: int) -> None:
        if not 0 <= position <= self.size:
            raise ValueError(f"{self.path}: a write at {position} is outside the file of {self.size} bytes")
        self.busy = True
        descriptor = self.descriptor
        try:
            if descriptor < 0:
                descriptor = self._pool.open(self)
            else:
                self.used = True
            written = os.pwrite(descriptor, data, position)
            if written != len(data):
                _write_all(descriptor, memoryview(data)[written:], position + written)
        except OSError:
            self._cut_back(descriptor)
            raise
        finally:
            self.busy = False
        if position + len(data) > self.size:
            self.size = position + len(data)

    def pread(self, size: int, position: int) -> bytes:
        size = self._readable(size, position)
        if size == 0:
            return b""
        self.busy = True
        descriptor = self.descriptor
        try:
            if descriptor < 0:
                descriptor = self._pool.open(self)
            else:
                self.used = True
            data = os.pread(descriptor, size, position)
            return data if len(data) == size else _read_rest(descriptor, data, size, position)
        finally:
            self.busy = False

    def pread_nowait(self, size: int, position: int) -> bytes | None:
        if not self._nowait:
            return self.pread(size, position)
        size = self._readable(size, position)
        if size == 0:
            return b""
        into = io.BytesIO(bytes(size))  # its buffer is filled by the read and becomes the result without a copy
        try:
            with into.getbuffer() as buffer:
                cached = self._read_cached(buffer, position)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
            self._nowait = False  # this file system does not support RWF_NOWAIT
            return self.pread(size, position)
        return into.getvalue() if cached else None

    def cached_descriptor(self, size: int, position: int) -> int:
        if position < 0 or size < 1 or position + size > self.size:
            return NO_DESCRIPTOR
        if self._nowait and not (self._is_cached(position) and self._is_cached(position + size - 1)):
            return NO_DESCRIPTOR
        return self.descriptor

    def truncate(self, size: int) -> None:
        if not 0 <= size <= self.size:
            raise ValueError(f"{self.path}: a file of {self.size} bytes cannot be truncated to {size}")
        self.busy = True
        try:
            os.ftruncate(self._pool.open(self), size)
        finally:
            self.busy = False
        self.size = size

    def sync(self) -> None:
        self._pool.pin(self)
        try:
            system.sync_data(self.descriptor)
        finally:
            self._pool.unpin(self)

    def renamed(self, path: str) -> None:
        self.path = path

    def pin(self) -> None:
        self._pool.pin(self)

    def unpin(self) -> None:
        self._pool.unpin(self)

    def close(self) -> None:
        self._pool.close(self)

    def _readable(self, size: int, position: int) -> int:
        """How many bytes of a read are inside the file: nothing is allocated for the rest."""
        if size < 0 or position < 0:
            raise ValueError(f"{self.path}: cannot read {size} bytes at {position}")
        return max(0, min(size, self.size - position))

    def _read_cached(self, into: memoryview, position: int) -> bool:
        """Fills the buffer from the page cache; returns False if part of it is not cached."""
        self.busy = True
        descriptor = self.descriptor
        try:
            if descriptor < 0:
                descriptor = self._pool.open(self)
            else:
                self.used = True
            return os.preadv(descriptor, [into], position, RWF_NOWAIT) == len(into)
        except BlockingIOError:
            return False
        finally:
            self.busy = False

    def _is_cached(self, position: int) -> bool:
        """Reads one byte: the system reads far larger runs from the disk, so its neighbours are cached too."""
        try:
            return self._read_cached(memoryview(bytearray(1)), position)
        except OSError:  # a file system without RWF_NOWAIT; the next read switches it off
            return False

    def _cut_back(self, descriptor: int) -> None:
        """Removes half-written bytes of a failed write. If that fails too, the next write starts at the same position."""
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, self.size)


class Files:
    """The real disk."""

    def __init__(self, pool: FilePool | None = None) -> None:
        self.pool = pool or FilePool()

    def open(self, path: str, *, create: bool = False, truncate: bool = False, writable: bool = True) -> File:
        flags = READ_WRITE if writable else READ_ONLY
        try:
            status = os.stat(path)
        except FileNotFoundError:
            if not create:
                raise
            file = File(self.pool, path, 0, flags)
            self.pool.open(file, os.O_CREAT)
            return file
        _check_no_directory(status, path)
        file = File(self.pool, path, status.st_size, flags)
        if truncate:
            file.truncate(0)
        return file

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def list_dir(self, path: str) -> list[DirEntry]:
        return self.pool.attempt(lambda: self._list_dir(path))

    def _list_dir(self, path: str) -> list[DirEntry]:
        listing = []
        with os.scandir(path) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # deleted meanwhile, or a broken link
                    is_dir = entry.is_dir()
                    listing.append(DirEntry(entry.name, 0 if is_dir else entry.stat().st_size, is_dir))
        return sorted(listing)

    def make_dirs(self, path: str) -> None:
        os.makedirs(path, DIRECTORY_MODE, exist_ok=True)

    def shut_out_others(self, path: str) -> bool:
        mode = os.stat(path).st_mode
        if not mode & stat.S_IRWXO:
            return False
        if mode & stat.S_ISVTX:
            raise PermissionError(errno.EPERM, "all users may write to it, as to /tmp", path)
        os.chmod(path, stat.S_IMODE(mode) & ~stat.S_IRWXO)
        return True

    def remove(self, path: str, missing_ok: bool = False) -> bool:
        try:
            os.unlink(path)
        except FileNotFoundError:
            if not missing_ok:
                raise
            return False
        return True

    def remove_tree(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.pool.attempt(lambda: shutil.rmtree(path))

    def rename(self, src: str, dst: str) -> None:
        os.replace(src, dst)

    def sync_dir(self, path: str) -> None:
        self.pool.attempt(lambda: _sync(path or ".", READ_ONLY | os.O_DIRECTORY))

    def sync_file(self, path: str) -> None:
        self.pool.attempt(lambda: _sync(path, READ_ONLY))

    def read_bytes(self, path: str, limit: int = READ_BYTES_MAX) -> bytes:
        descriptor = self.pool.attempt(lambda: os.open(path, READ_ONLY))
        try:
            status = os.fstat(descriptor)
            _check_no_directory(status, path)
            if status.st_size > limit:
                raise OSError(errno.EFBIG, f"{status.st_size} bytes are more than the {limit} allowed", path)
            return _read_rest(descriptor, b"", status.st_size, 0)
        finally:
            os.close(descriptor)

    def write_atomically(self, path: str, content: bytes, sync: bool = True) -> None:
        write_atomically(self, path, content, sync)

    def lock(self, path: str) -> Lock:
        return self.pool.attempt(lambda: Lock(path))

    def free_bytes(self, path: str) -> int:
        usage = os.statvfs(path)
        return usage.f_bavail * usage.f_frsize


class Lock:
    """The kind of lock that Kafka uses (fcntl), so that neither Kafka nor Barnabas starts in the other's directory.

    Such a lock does not exclude a second holder in the same process, and closing any descriptor of the file releases it; hence `_held`.
    """

    _held: Final[set[tuple[int, int]]] = set()

    def __init__(self, path: str) -> None:
        self._inode = _identity(path)
        if self._inode in Lock._held:
            raise BlockingIOError(errno.EAGAIN, "already locked by this process", path)
        self._descriptor = os.open(path, READ_WRITE | os.O_CREAT, FILE_MODE)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise BlockingIOError(errno.EAGAIN, "locked by another process", path) from error
        self._inode = _identity(path)
        Lock._held.add(self._inode)

    def release(self) -> None:
        if self._descriptor >= 0:
            Lock._held.discard(self._inode)
            os.close(self._descriptor)
            self._descriptor = -1


def _sync(path: str, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        system.sync_all(descriptor)
    finally:
        os.close(descriptor)


def _check_no_directory(status: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)


def _identity(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return -1, -1
    return status.st_dev, status.st_ino


def _write_all(descriptor: int, data: memoryview, position: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, position)
        if written == 0:  # no file system does that; an endless loop would be worse than an error
            raise OSError(errno.EIO, "a write wrote nothing")
        position += written
        data = data[written:]


def _read_rest(descriptor: int, data: bytes, size: int, position: int) -> bytes:
    """Reads on after a short read: a signal or 2 GB may end a read early, only an empty one means the end of the file."""
    pieces = [data]
    got = len(data)
    while got < size:
        piece = os.pread(descriptor, size - got, position + got)
        if not piece:
            break
        pieces.append(piece)
        got += len(piece)
    return b"".join(pieces)
