"""partition.metadata: the topic id of a partition directory.

A directory left over from a deleted topic of the same name has another id and must never be used for the new topic.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from barnabas.errors import CorruptCheckpoint, InconsistentTopicId
from barnabas.storage.directory.checkpoints import read_text
from barnabas.storage.disk.files import AnyFiles
from barnabas.uuid import Uuid

PARTITION_METADATA_VERSION: Final = 0
_BYTES_MAX: Final = 4096
_SEPARATOR: Final = re.compile(r":\s+")
_VERSION: Final = re.compile(r"[0-9]{1,9}")


class PartitionMetadata(NamedTuple):
    version: int
    topic_id: Uuid

    def encode(self) -> bytes:
        return f"version: {self.version}\ntopic_id: {self.topic_id}".encode()


class PartitionMetadataFile:
    """The file of one partition. An id is recorded in memory and written with the next `maybe_flush`."""

    def __init__(self, files: AnyFiles, path: str) -> None:
        self.files = files
        self.path = path
        self._unwritten: Uuid | None = None

    def exists(self) -> bool:
        return self.files.exists(self.path)

    def read(self) -> PartitionMetadata:
        """Raises CorruptCheckpoint, or FileNotFoundError if there is no file."""
        lines = read_text(self.files, self.path, _BYTES_MAX).splitlines()
        version = self._value(lines, 0)
        if not _VERSION.fullmatch(version):
            raise self._malformed(lines, 0)
        topic_id = self._value(lines, 1)
        try:
            metadata = PartitionMetadata(int(version), Uuid.from_string(topic_id))
        except ValueError:
            raise self._malformed(lines, 1) from None
        if metadata.topic_id == Uuid.ZERO:
            raise CorruptCheckpoint(f"Invalid topic ID in partition metadata file ({self.path}) at line 2")
        return metadata

    def record(self, topic_id: Uuid) -> None:
        if self._unwritten is not None and self._unwritten != topic_id:
            raise InconsistentTopicId(f"Tried to record topic ID {topic_id} to file but had already recorded {self._unwritten}")
        self._unwritten = topic_id

    def maybe_flush(self) -> None:
        if self._unwritten is not None:
            self.files.write_atomically(self.path, PartitionMetadata(PARTITION_METADATA_VERSION, self._unwritten).encode())
            self._unwritten = None

    def delete(self) -> None:
        self.files.remove(self.path)

    def moved_to(self, directory: str) -> None:
        """The directory of the log was renamed."""
        self.path = f"{directory}/{self.path.rpartition('/')[2]}"

    def _value(self, lines: list[str], at: int) -> str:
        parts = _SEPARATOR.split(lines[at]) if at < len(lines) else []
        if len(parts) != 2:
            raise self._malformed(lines, at)
        return parts[1]

    def _malformed(self, lines: list[str], at: int) -> CorruptCheckpoint:
        line = lines[at][:200] if at < len(lines) else None
        return CorruptCheckpoint(f"Malformed line in checkpoint file [{self.path}]: {line!r} at line {at + 1}")
