"""The files of a log directory on any file system of pyarrow.fs: a local path, file://, hdfs://, s3:// and others.

Used by the direct reader and the audit. Files are read by position and never written.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final, NamedTuple

from pyarrow import fs

from pyspark_barnabas.errors import OptionError

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
LOG_DIRS: Final = "logDirs"


class Entry(NamedTuple):
    """A file or a directory in a directory."""

    name: str
    size: int
    is_dir: bool


class FileStore:
    """The files below one directory, by their paths relative to it. It is plain data until its first use, so that Spark can pickle it."""

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/") or "/"
        self._opened: tuple[Any, str] | None = None

    def __getstate__(self) -> str:
        return self.uri

    def __setstate__(self, uri: str) -> None:
        self.uri, self._opened = uri, None

    def entries(self, path: str = "") -> list[Entry]:
        """The entries of a directory, sorted by name."""
        system, root = self._system()
        selector = fs.FileSelector(_joined(root, path), recursive=False)
        listed = [Entry(info.base_name, int(info.size or 0), info.type == fs.FileType.Directory) for info in system.get_file_info(selector)]
        return sorted(listed)

    def is_dir(self) -> bool:
        system, root = self._system()
        return bool(system.get_file_info(root).type == fs.FileType.Directory)

    def open(self, path: str) -> StoredFile:
        system, root = self._system()
        return StoredFile(system.open_input_file(_joined(root, path)), f"{self.uri}/{path}")

    def read(self, path: str, limit: int) -> bytes:
        """The content of a small file; None if the file is larger than such a file can be."""
        with self.open(path) as file:
            if file.size > limit:
                raise ValueError(f"{file.name} has {file.size} bytes, more than the {limit} that it can have")
            return file.read_at(0, file.size)

    def _system(self) -> tuple[Any, str]:
        if self._opened is None:
            try:
                self._opened = _open(self.uri)
            except (ValueError, OSError) as error:
                raise OptionError(LOG_DIRS, f"'{self.uri}' cannot be opened: {error}.") from error
        return self._opened


class StoredFile:
    """An open file; use it in a `with` block."""

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self.name = name
        self.size: int = file.size()

    def read_at(self, position: int, size: int) -> bytes:
        data: bytes = self._file.read_at(size, position)
        return data

    def __enter__(self) -> StoredFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _open(uri: str) -> tuple[Any, str]:
    if not _SCHEME.match(uri):
        return fs.LocalFileSystem(), os.path.abspath(uri)
    if uri.startswith("file:/"):  # Hadoop writes file:/path; other programs write file:///path
        return fs.LocalFileSystem(), "/" + uri.removeprefix("file:").lstrip("/")
    system, root = fs.FileSystem.from_uri(re.sub("^s3[an]://", "s3://", uri))
    return system, root.rstrip("/")


def _joined(root: str, path: str) -> str:
    return f"{root.rstrip('/')}/{path}" if path else root
