"""Copies of files, durable when they return: as a hard link where the file never changes again and the file system allows it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Final

from barnabas.file_modes import DIRECTORY_MODE, FILE_MODE

_CHUNK: Final = 4 * 1024 * 1024

Note = Callable[[int], None]  # is given the number of bytes that were copied


class Copier:
    def __init__(self, note: Note = lambda _: None) -> None:
        self.linked = 0
        self.copied = 0
        self.note = note
        self._made: set[str] = set()

    def make_dir(self, path: str) -> None:
        if path not in self._made:
            os.makedirs(path, DIRECTORY_MODE, exist_ok=True)
            self._made.add(path)

    def link(self, source: str, target: str, size: int) -> None:
        """A hard link, or a copy where the file system has none."""
        try:
            os.link(source, target)
        except FileExistsError:
            if os.path.samefile(source, target):
                return
            os.unlink(target)
            self.link(source, target, size)
            return
        except FileNotFoundError:
            raise
        except OSError:  # another file system, or one without hard links
            self.copy(source, target, size)
            return
        self.linked += size
        self.note(size)

    def copy(self, source: str, target: str, size: int | None = None) -> None:
        """Copies the first `size` bytes, all without it. Raises EOFError if the file is shorter."""
        left = os.stat(source).st_size if size is None else size
        into = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        try:
            with open(source, "rb", buffering=0) as file:
                while left:
                    chunk = file.read(min(left, _CHUNK))
                    if not chunk:
                        raise EOFError(f"{source} is shorter than it was")
                    _write_all(into, chunk)
                    left -= len(chunk)
                    self.copied += len(chunk)
                    self.note(len(chunk))
            os.fsync(into)
        finally:
            os.close(into)

    def remove_made(self, directory: str) -> None:
        """Removes a copy that is to be made again."""
        shutil.rmtree(directory, ignore_errors=True)
        self._made = {path for path in self._made if not path.startswith(f"{directory}/")}

    def sync_dirs(self) -> None:
        """Makes the names of all files durable."""
        for path in sorted(self._made):
            sync_dir(path)


def sync_dir(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
