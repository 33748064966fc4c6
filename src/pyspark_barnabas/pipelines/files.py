"""Files of an archive on any file system: listing, moving and small JSON notes that are written atomically.

Spark writes the data. The driver uses this module to publish and replace files. The file systems are those of Arrow: local paths and
file:// URIs, hdfs://, s3:// (or s3a://) and gs://.
"""

from __future__ import annotations

import json
import os
import posixpath
from dataclasses import dataclass
from typing import Any, Final

from pyarrow import fs

_HIDDEN: Final = ("_", ".")  # names that Spark's readers ignore


@dataclass(frozen=True)
class ArchiveFile:
    path: str  # within the file system
    size: int

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    @property
    def is_data(self) -> bool:
        return not self.name.startswith(_HIDDEN)


class Directory:
    """A directory with the path or URI that Spark uses. All paths of the methods are relative to it, with `/` between the parts."""

    def __init__(self, uri: str) -> None:
        if uri.startswith("file:/") and not uri.startswith("file://"):  # as Hadoop writes it
            uri = "file://" + uri.removeprefix("file:")
        self.uri = uri.rstrip("/") if "://" in uri else os.path.abspath(uri)
        self._files, self._root = fs.FileSystem.from_uri(_for_arrow(self.uri))

    def spark_path(self, path: str) -> str:
        """The path for Spark, with the original scheme of the URI."""
        return f"{self.uri}/{path}"

    def list(self, path: str = "", *, recursive: bool = False) -> list[ArchiveFile]:
        """The files, sorted by name; empty if the directory does not exist."""
        infos = self._files.get_file_info(fs.FileSelector(self._at(path), allow_not_found=True, recursive=recursive))
        files = [ArchiveFile(posixpath.relpath(info.path, self._root), info.size) for info in infos if info.type == fs.FileType.File]
        return sorted(files, key=lambda file: file.path)

    def exists(self, path: str) -> bool:
        return bool(self._files.get_file_info(self._at(path)).type != fs.FileType.NotFound)

    def move(self, old: str, new: str) -> None:
        self._files.create_dir(posixpath.dirname(self._at(new)), recursive=True)
        self._files.move(self._at(old), self._at(new))

    def delete(self, path: str) -> None:
        """Deletes a file, if it exists, and its checksum file, which Hadoop's local file system writes."""
        folder, name = posixpath.split(path)
        for file in (path, posixpath.join(folder, f".{name}.crc")):
            if self.exists(file):
                self._files.delete_file(self._at(file))

    def delete_all(self, path: str) -> None:
        """Deletes a directory with its content, if it exists."""
        if self.exists(path):
            self._files.delete_dir(self._at(path))

    def read_note(self, path: str) -> Any:
        with self._files.open_input_stream(self._at(path)) as stream:
            return json.loads(stream.readall())

    def write_note(self, path: str, value: Any) -> None:
        """Writes the note under another name and renames it, so that a visible note is complete."""
        folder, name = posixpath.split(path)
        self._files.create_dir(self._at(folder), recursive=True)
        unfinished = posixpath.join(folder, f".{name}.unfinished")
        with self._files.open_output_stream(self._at(unfinished)) as stream:
            stream.write(json.dumps(value).encode())
        self._files.move(self._at(unfinished), self._at(path))

    def _at(self, path: str) -> str:
        return posixpath.join(self._root, path) if path else str(self._root)


def _for_arrow(uri: str) -> str:
    """The URI for Arrow, which has the scheme s3 for Hadoop's s3a."""
    return "s3://" + uri.removeprefix("s3a://") if uri.startswith("s3a://") else uri
