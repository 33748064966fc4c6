"""Files of an archive on any file system: listing, moving and small JSON notes that are there whole or not at all.

Spark writes the data itself; only the steps around it (which file is published, which one replaced) go through here, on the driver. Uses
Arrow's file systems: local paths and file:// URIs, hdfs://, s3:// (or s3a://) and gs://.
"""

from __future__ import annotations

import json
import os
import posixpath
from dataclasses import dataclass
from typing import Any, Final

from pyarrow import fs

_HIDDEN: Final = ("_", ".")  # what Spark's readers pass over


@dataclass(frozen=True)
class File:
    path: str  # within the file system
    size: int

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    @property
    def is_data(self) -> bool:
        return not self.name.startswith(_HIDDEN)


class Directory:
    """A directory by the path or URI that Spark was given. Paths handed in and out are relative to it, with `/` between the parts."""

    def __init__(self, uri: str) -> None:
        if uri.startswith("file:/") and not uri.startswith("file://"):  # as Hadoop writes it
            uri = "file://" + uri.removeprefix("file:")
        self.uri = uri.rstrip("/") if "://" in uri else os.path.abspath(uri)
        self._files, self._root = fs.FileSystem.from_uri(_for_arrow(self.uri))

    def spark_path(self, path: str) -> str:
        """For Spark, which knows the URI's own scheme."""
        return f"{self.uri}/{path}"

    def list(self, path: str = "", *, recursive: bool = False) -> list[File]:
        """The files, by name; none where the directory is not there."""
        found = self._files.get_file_info(fs.FileSelector(self._at(path), allow_not_found=True, recursive=recursive))
        files = [File(posixpath.relpath(info.path, self._root), info.size) for info in found if info.type == fs.FileType.File]
        return sorted(files, key=lambda file: file.path)

    def exists(self, path: str) -> bool:
        return bool(self._files.get_file_info(self._at(path)).type != fs.FileType.NotFound)

    def move(self, old: str, new: str) -> None:
        self._files.create_dir(posixpath.dirname(self._at(new)), recursive=True)
        self._files.move(self._at(old), self._at(new))

    def delete(self, path: str) -> None:
        """Deletes a file, if it is there, and the checksum that Hadoop's local file system laid beside it."""
        folder, name = posixpath.split(path)
        for each in (path, posixpath.join(folder, f".{name}.crc")):
            if self.exists(each):
                self._files.delete_file(self._at(each))

    def delete_all(self, path: str) -> None:
        """Deletes a directory with all that is in it, if it is there."""
        if self.exists(path):
            self._files.delete_dir(self._at(path))

    def read_note(self, path: str) -> Any:
        with self._files.open_input_stream(self._at(path)) as stream:
            return json.loads(stream.readall())

    def write_note(self, path: str, value: Any) -> None:
        """Written under another name first: a note that can be seen is whole."""
        folder, name = posixpath.split(path)
        self._files.create_dir(self._at(folder), recursive=True)
        unfinished = posixpath.join(folder, f".{name}.unfinished")
        with self._files.open_output_stream(self._at(unfinished)) as stream:
            stream.write(json.dumps(value).encode())
        self._files.move(self._at(unfinished), self._at(path))

    def _at(self, path: str) -> str:
        return posixpath.join(self._root, path) if path else str(self._root)


def _for_arrow(uri: str) -> str:
    """Hadoop's s3a is Arrow's s3."""
    return "s3://" + uri.removeprefix("s3a://") if uri.startswith("s3a://") else uri
