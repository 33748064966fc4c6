"""The names on a simulated disk, and the journal of the changes to them that are not durable yet.

Directory operations reach the device in the order in which they were made, as on a journaling file system: a crash keeps a prefix of them.
Errors are those of POSIX, in the same cases as on a real disk.
"""

from __future__ import annotations

import errno
import os
import posixpath
from typing import NamedTuple

from barnabas.simulation.inode import Inode


class Rename(NamedTuple):
    src: str
    dst: str


class LinkFile(NamedTuple):
    path: str
    inode: Inode


class Unlink(NamedTuple):
    path: str


class MakeDir(NamedTuple):
    path: str


class RemoveDir(NamedTuple):
    path: str


NameChange = Rename | LinkFile | Unlink | MakeDir | RemoveDir


class Namespace:
    """A tree of directories, stored flat: whole paths to inodes."""

    def __init__(self, files: dict[str, Inode] | None = None, dirs: set[str] | None = None) -> None:
        self.files = {} if files is None else files
        self.dirs = {"/"} if dirs is None else dirs

    def copy(self) -> Namespace:
        return Namespace(dict(self.files), set(self.dirs))

    def children(self, path: str) -> list[str]:
        return sorted(other for other in (*self.files, *self.dirs) if other != "/" and posixpath.dirname(other) == path)

    def inside(self, path: str) -> list[str]:
        """The files in a directory and below it; for the path of a file, the file itself."""
        return [path] if path in self.files else [other for other in self.files if other.startswith(path + "/")]

    def apply(self, change: NameChange) -> None:
        match change:
            case LinkFile(path, inode):
                self.files[path] = inode
            case Unlink(path):
                del self.files[path]
            case MakeDir(path):
                self.dirs.add(path)
            case RemoveDir(path):
                self.dirs.remove(path)
            case Rename(src, dst):
                self._rename(src, dst)

    def _rename(self, src: str, dst: str) -> None:
        if src in self.files:
            self.files[dst] = self.files.pop(src)
            return
        for path in self.inside(src):
            self.files[dst + path[len(src) :]] = self.files.pop(path)
        for path in [path for path in self.dirs if path == src or path.startswith(src + "/")]:
            self.dirs.remove(path)
            self.dirs.add(dst + path[len(src) :])

    # -- the errors of POSIX

    def file(self, path: str) -> Inode:
        self.check_parent(path)
        if path in self.dirs:
            raise os_error(errno.EISDIR, path)
        if path not in self.files:
            raise os_error(errno.ENOENT, path)
        return self.files[path]

    def check_dir(self, path: str) -> None:
        self.check_parent(path)
        if path in self.files:
            raise os_error(errno.ENOTDIR, path)
        if path not in self.dirs:
            raise os_error(errno.ENOENT, path)

    def check_parent(self, path: str) -> None:
        parent = posixpath.dirname(path)
        if parent in self.dirs:
            return
        while parent not in self.dirs:
            if parent in self.files:
                raise os_error(errno.ENOTDIR, path)
            parent = posixpath.dirname(parent)
        raise os_error(errno.ENOENT, path)

    def check_rename(self, src: str, dst: str) -> None:
        self.check_parent(src)
        self.check_parent(dst)
        if src not in self.files and src not in self.dirs:
            raise os_error(errno.ENOENT, src)
        if dst.startswith(src + "/"):
            raise os_error(errno.EINVAL, src)
        if src.startswith(dst + "/"):
            raise os_error(errno.ENOTEMPTY, src)
        if src in self.files and dst in self.dirs:
            raise os_error(errno.EISDIR, src)
        if src in self.dirs and dst in self.files:
            raise os_error(errno.ENOTDIR, src)
        if src != dst and dst in self.dirs and self.children(dst):
            raise os_error(errno.ENOTEMPTY, src)


class NameJournal:
    """The changes that are not durable yet."""

    def __init__(self, durable: Namespace, changes: list[NameChange] | None = None) -> None:
        self.durable = durable
        self.changes = [] if changes is None else changes

    def sync(self, directory: str) -> None:
        """Makes the last change in this directory durable, and with it all earlier changes."""
        touching = [n for n, change in enumerate(self.changes) if directory in _directories(change)]
        kept = touching[-1] + 1 if touching else 0
        for change in self.changes[:kept]:
            self.durable.apply(change)
        del self.changes[:kept]

    def after(self, kept: int) -> Namespace:
        """The names after the first `kept` changes have reached the device."""
        names = self.durable.copy()
        for change in self.changes[:kept]:
            names.apply(change)
        return names


def os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


def _directories(change: NameChange) -> set[str]:
    paths = {change.src, change.dst} if isinstance(change, Rename) else {change.path}
    return {posixpath.dirname(path) for path in paths}
