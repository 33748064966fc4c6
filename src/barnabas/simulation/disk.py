"""A disk in memory with the interface of `barnabas.storage.disk.files`, which loses, tears and rejects writes as real disks do.

Storage code runs on it unchanged. `crash` returns the disk as a machine finds it after a crash, `process_crash` as the next process finds
it. Everything is determined by the calls and the random.Random passed in: there is no clock, no hash order, no thread.
"""

from __future__ import annotations

import errno
import posixpath
import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from barnabas.simulation.inode import Inode
from barnabas.simulation.namespace import LinkFile, MakeDir, NameChange, NameJournal, Namespace, RemoveDir, Rename, Unlink, os_error
from barnabas.storage.disk.disk import READ_BYTES_MAX, Buffer, DirEntry, write_atomically

FREE_BYTES: Final = 2**60  # of a disk without a capacity

Kind = Literal["create", "write", "truncate", "read", "read_nowait", "sync", "rename", "remove", "make_dir", "remove_dir", "sync_dir"]

NEEDS_DESCRIPTOR: Final[frozenset[Kind]] = frozenset({"create", "write", "truncate", "read", "read_nowait", "sync", "sync_dir"})


class DiskEvent(NamedTuple):
    """One operation of the disk; numbered from 1 on."""

    number: int
    kind: Kind
    path: str
    size: int = 0  # of a read or write; the remaining size after a truncation


class SimulatedCrash(BaseException):
    """The process has ended. No handler may stop the exception, and code that runs while it propagates changes nothing on the disk."""


@dataclass(slots=True)
class Fault:
    predicate: Callable[[DiskEvent], bool]
    error: int
    times: int | None


class SimulatedFiles:
    def __init__(self, clock: Callable[[], int] = lambda: 0, capacity: int | None = None) -> None:
        self.clock = clock  # milliseconds, for modification times
        self.capacity = capacity
        self.events = 0
        self.refusals: set[int] = set()  # the errno values raised so far
        self._names = Namespace()
        self._journal = NameJournal(self._names.copy())
        self._faults: list[Fault] = []
        self._halt_at: int | None = None
        self._locked: set[str] = set()
        self._used = 0

    # -- faults

    def fail_when(self, predicate: Callable[[DiskEvent], bool], error: int = errno.EIO, times: int | None = None) -> None:
        """Fails the operations that match, `times` times or until `heal`. A failed write has written half; EAGAIN suits `read_nowait`."""
        self._faults.append(Fault(predicate, error, times))

    def fail_next(self, kind: Kind, error: int = errno.EIO) -> None:
        self.fail_when(lambda event: event.kind == kind, error, times=1)

    def heal(self) -> None:
        self._faults.clear()

    @contextmanager
    def without_faults(self) -> Generator[None, None, None]:
        """For checkers: their reads do not fail and use up no fault."""
        faults, self._faults = self._faults, []
        try:
            yield
        finally:
            self._faults = faults

    def halt_at(self, number: int) -> None:
        """Raises SimulatedCrash instead of executing the event with this number or any later one."""
        self._halt_at = number

    def crash(self, rng: random.Random) -> SimulatedFiles:
        """The disk after a machine crash at this moment. This object is unchanged, so that many crashes at one moment can be tried."""
        survivor = SimulatedFiles(self.clock, self.capacity)
        names = self._journal.after(rng.randint(0, len(self._journal.changes)))
        files = {path: names.files[path].after_crash(path, rng) for path in sorted(names.files)}
        survivor._adopt(Namespace(files, names.dirs), NameJournal(Namespace(dict(files), set(names.dirs))))
        return survivor

    def process_crash(self) -> SimulatedFiles:
        """The disk as the next process finds it: all writes are present, and unsynced ones can still be lost."""
        survivor = SimulatedFiles(self.clock, self.capacity)
        copies: dict[int, Inode] = {}
        durable = _copy_names(self._journal.durable, copies)
        changes = [
            LinkFile(change.path, _copy_inode(change.inode, copies)) if isinstance(change, LinkFile) else change
            for change in self._journal.changes
        ]
        survivor._adopt(_copy_names(self._names, copies), NameJournal(durable, changes))
        return survivor

    def _adopt(self, names: Namespace, journal: NameJournal) -> None:
        self._names = names
        self._journal = journal
        self._used = sum(len(inode.content) for inode in names.files.values())

    # -- the interface of Files

    def open(self, path: str, *, create: bool = False, truncate: bool = False, writable: bool = True) -> SimulatedFile:
        name = _normal(path)
        try:
            inode = self._names.file(name)
        except FileNotFoundError:
            if not create:
                raise
            self._names.check_parent(name)
            self.act("create", name)
            inode = Inode(name, self.clock())
            self._change_names(LinkFile(name, inode))
        file = SimulatedFile(self, inode, path, writable)
        if truncate and file.size:
            file.truncate(0)
        return file

    def exists(self, path: str) -> bool:
        path = _normal(path)
        return path in self._names.files or path in self._names.dirs

    def is_dir(self, path: str) -> bool:
        return _normal(path) in self._names.dirs

    def size(self, path: str) -> int:
        return len(self._names.file(_normal(path)).content)

    def modified_ms(self, path: str) -> int:
        return self._names.file(_normal(path)).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._names.file(_normal(path)).modified_ms = modified_ms

    def list_dir(self, path: str) -> list[DirEntry]:
        path = _normal(path)
        self._names.check_dir(path)
        return [self._entry(child) for child in self._names.children(path)]

    def shut_out_others(self, path: str) -> bool:
        """There are no other users."""
        return False

    def make_dirs(self, path: str) -> None:
        path = _normal(path)
        if path in self._names.files:
            raise os_error(errno.EEXIST, path)
        missing = []
        while path not in self._names.dirs:
            if path in self._names.files:
                raise os_error(errno.ENOTDIR, path)
            missing.append(path)
            path = posixpath.dirname(path)
        for path in reversed(missing):
            self.act("make_dir", path)
            self._change_names(MakeDir(path))

    def remove(self, path: str, missing_ok: bool = False) -> bool:
        path = _normal(path)
        try:
            inode = self._names.file(path)
        except FileNotFoundError:
            if not missing_ok:
                raise
            return False
        self.act("remove", path)
        self._change_names(Unlink(path))
        self._forget(inode)
        return True

    def remove_tree(self, path: str) -> None:
        path = _normal(path)
        with suppress(FileNotFoundError):
            self._names.check_dir(path)
            for child in self._names.children(path):
                if child in self._names.dirs:
                    self.remove_tree(child)
                else:
                    self.remove(child)
            self.act("remove_dir", path)
            self._change_names(RemoveDir(path))

    def rename(self, src: str, dst: str) -> None:
        src, dst = _normal(src), _normal(dst)
        self._names.check_rename(src, dst)
        self.act("rename", src)
        if src == dst:
            return
        replaced = self._names.files.get(dst)
        self._change_names(Rename(src, dst))
        if replaced is not None:
            self._forget(replaced)
        for path in self._names.inside(dst):
            self._names.files[path].path = path

    def sync_dir(self, path: str) -> None:
        path = _normal(path)
        self._names.check_dir(path)
        self.act("sync_dir", path)
        self._journal.sync(path)

    def sync_file(self, path: str) -> None:
        path = _normal(path)
        self.sync_inode(self._names.file(path), path)

    def read_bytes(self, path: str, limit: int = READ_BYTES_MAX) -> bytes:
        path = _normal(path)
        inode = self._names.file(path)
        size = len(inode.content)
        if size > limit:
            raise OSError(errno.EFBIG, f"{size} bytes are more than the {limit} allowed", path)
        self.act("read", path, size)
        return bytes(inode.content)

    def write_atomically(self, path: str, content: bytes, sync: bool = True) -> None:
        write_atomically(self, path, content, sync)

    def lock(self, path: str) -> SimulatedLock:
        path = _normal(path)
        if path in self._locked:
            raise BlockingIOError(errno.EAGAIN, "already locked by this process", path)
        self.open(path, create=True).close()
        self._locked.add(path)
        return SimulatedLock(self._locked, path)

    def free_bytes(self, path: str) -> int:
        if not self.exists(path):
            raise os_error(errno.ENOENT, path)
        return FREE_BYTES if self.capacity is None else max(0, self.capacity - self._used)

    # -- used by SimulatedFile

    def act(self, kind: Kind, path: str, size: int = 0) -> None:
        """Every operation of the disk calls this first; it raises if the operation fails."""
        self.events += 1
        if self._halt_at is not None and self.events >= self._halt_at:
            raise SimulatedCrash(f"halted before event {self.events}: {kind} {path}")
        event = DiskEvent(self.events, kind, path, size)
        for fault in self._faults:
            if fault.times != 0 and fault.predicate(event):
                if fault.times is not None:
                    fault.times -= 1
                self.refusals.add(fault.error)
                raise os_error(fault.error, path)

    def write_inode(self, inode: Inode, path: str, data: bytes, position: int) -> None:
        """Writes all data, or the part that a real disk may have written before it failed."""
        written = len(data)
        error: OSError | None = None
        try:
            self.act("write", path, len(data))
        except OSError as refused:
            written, error = len(data) // 2, refused
        room = FREE_BYTES if self.capacity is None or inode.path is None else self.capacity - self._used
        if position + written - len(inode.content) > room:
            written, error = len(inode.content) + max(0, room) - position, os_error(errno.ENOSPC, path)
        if written > 0:
            self._change_content(inode, lambda: inode.write(data[:written], position))
        if error is not None:
            raise error

    def truncate_inode(self, inode: Inode, path: str, size: int) -> None:
        self.act("truncate", path, size)
        self._change_content(inode, lambda: inode.truncate(size))

    def sync_inode(self, inode: Inode, path: str) -> None:
        try:
            self.act("sync", path)
        except OSError:
            inode.sync_failed()
            raise
        inode.synced()

    def _change_content(self, inode: Inode, change: Callable[[], None]) -> None:
        before = len(inode.content)
        change()
        inode.modified_ms = self.clock()
        if inode.path is not None:
            self._used += len(inode.content) - before

    def _change_names(self, change: NameChange) -> None:
        self._names.apply(change)
        self._journal.changes.append(change)

    def _forget(self, inode: Inode) -> None:
        self._used -= len(inode.content)
        inode.path = None

    def _entry(self, path: str) -> DirEntry:
        inode = self._names.files.get(path)
        return DirEntry(posixpath.basename(path), 0 if inode is None else len(inode.content), inode is None)


class SimulatedFile:
    """Tracks its own size, as `File` does, so that two handles of one path show the same problems."""

    def __init__(self, disk: SimulatedFiles, inode: Inode, path: str, writable: bool) -> None:
        self.path = path
        self.size = len(inode.content)
        self._name = _normal(path)
        self._disk = disk
        self._inode = inode
        self._writable = writable
        self._pins = 0
        self._closed = False

    def append(self, buffers: Sequence[Buffer]) -> int:
        start = self.size
        self._write(b"".join(buffers), start)
        return start

    def append_bytes(self, data: Buffer) -> int:
        return self.append([data])

    def write_at(self, data: Buffer, position: int) -> None:
        if not 0 <= position <= self.size:
            raise ValueError(f"{self.path}: a write at {position} is outside the file of {self.size} bytes")
        self._write(bytes(data), position)

    def _write(self, data: bytes, position: int) -> None:
        self._check(writing=True)
        try:
            self._disk.write_inode(self._inode, self._name, data, position)
        except OSError:
            with suppress(OSError):
                self._disk.truncate_inode(self._inode, self._name, self.size)
            raise
        self.size = max(self.size, position + len(data))

    def pread(self, size: int, position: int) -> bytes:
        return self._read("read", size, position)

    def pread_nowait(self, size: int, position: int) -> bytes | None:
        try:
            return self._read("read_nowait", size, position)
        except BlockingIOError:
            return None

    def cached_descriptor(self, size: int, position: int) -> int:
        return -1  # sendfile needs a real descriptor

    def _read(self, kind: Literal["read", "read_nowait"], size: int, position: int) -> bytes:
        if size < 0 or position < 0:
            raise ValueError(f"{self.path}: cannot read {size} bytes at {position}")
        size = max(0, min(size, self.size - position))
        if size == 0:
            return b""
        self._check()
        self._disk.act(kind, self._name, size)
        return bytes(self._inode.content[position : position + size])

    def truncate(self, size: int) -> None:
        if not 0 <= size <= self.size:
            raise ValueError(f"{self.path}: a file of {self.size} bytes cannot be truncated to {size}")
        self._check(writing=True)
        self._disk.truncate_inode(self._inode, self._name, size)
        self.size = size

    def sync(self) -> None:
        self._check()
        self._disk.sync_inode(self._inode, self._name)

    def renamed(self, path: str) -> None:
        self.path = path
        self._name = _normal(path)

    def pin(self) -> None:
        self._check()
        self._pins += 1

    def unpin(self) -> None:
        assert self._pins > 0, f"{self.path} is not pinned"
        self._pins -= 1

    def close(self) -> None:
        self._closed = True

    def _check(self, writing: bool = False) -> None:
        if self._closed and not self._pins:
            raise ValueError(f"{self.path} is closed")
        if writing and not self._writable:
            raise os_error(errno.EBADF, self.path)
        # A real file could not be reopened once its descriptor was evicted.
        assert self._inode.path in (self._name, None), f"{self.path} is now {self._inode.path}, but the open file still has the old name"


class SimulatedLock:
    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path: str | None = path

    def release(self) -> None:
        if self._path is not None:
            self._locked.remove(self._path)
            self._path = None


def _normal(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def _copy_names(names: Namespace, copies: dict[int, Inode]) -> Namespace:
    return Namespace({path: _copy_inode(inode, copies) for path, inode in names.files.items()}, set(names.dirs))


def _copy_inode(inode: Inode, copies: dict[int, Inode]) -> Inode:
    """The same copy for the same inode: the names before and after the journal share inodes."""
    if id(inode) not in copies:
        copies[id(inode)] = inode.copy()
    return copies[id(inode)]
