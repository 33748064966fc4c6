"""Checkpoints: small text files that keep an offset per partition, or the start offsets of leader epochs, across restarts.

    0                 the version
    2                 the number of entries
    orders 0 4711     one entry per line
    orders 1 4650

A checkpoint is replaced whole, by temporary file, fsync and rename, so a reader finds the old one or the new one. Anything else raises
CorruptCheckpoint and never gives a shorter map: a lost entry would look like a partition without a checkpoint.
"""

from __future__ import annotations

import errno
import io
import re
import threading
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.errors import CorruptCheckpoint
from barnabas.storage.disk.files import AnyFiles
from barnabas.topic_partition import TopicPartition

RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"  # everything below is flushed
REPLICATION_OFFSET_CHECKPOINT: Final = "replication-offset-checkpoint"  # high watermarks
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"  # keeps records deleted by DeleteRecords from coming back
CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"  # first dirty offsets
CHECKPOINTS: Final = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)

CHECKPOINT_VERSION: Final = 0
CHECKPOINT_BYTES_MAX: Final = 64 * 1024 * 1024  # 250,000 partitions with names of the greatest length

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_INT32: Final = 2**31
_INT64: Final = 2**63


class OffsetCheckpoint:
    """One of the four checkpoints of a log directory: an offset for each of its partitions.

    The offsets are taken on the event loop and may be written on a thread. Writes are done one after the other. A write that is older than
    the last is skipped: it would undo later changes, such as the lower recovery point of a log that was truncated.
    """

    def __init__(self, files: AnyFiles, path: str) -> None:
        self.files = files
        self.path = path
        self._writing = threading.Lock()
        self._last_taken = 0
        self.last_written = 0  # the number of the newest write that is on disk

    def read(self) -> dict[TopicPartition, int]:
        """The offsets last written; empty if there is no file yet. Raises CorruptCheckpoint."""
        offsets: dict[TopicPartition, int] = {}
        for entry in read_checkpoint(self.files, self.path, 3):
            offsets[TopicPartition(entry.text(0), entry.int32(1))] = entry.int64(2)
        return offsets

    def is_written(self) -> bool:
        """Whether the checkpoint was ever written, even without entries. A broker creates an empty file and writes it later."""
        return self.files.exists(self.path) and self.files.size(self.path) > 0

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.take_write(offsets).run()

    def take_write(self, offsets: Mapping[TopicPartition, int]) -> CheckpointWrite:
        """A write of these offsets, to be run on any thread. The caller must not change them any more."""
        self._last_taken += 1
        return CheckpointWrite(self, offsets, self._last_taken)

    def write_taken(self, offsets: Mapping[TopicPartition, int], number: int) -> None:
        """For CheckpointWrite."""
        for topic, _ in offsets:
            if not topic or topic.split() != [topic]:
                raise ValueError(f"A checkpoint cannot hold a topic name with white space: {topic!r}")
        with self._writing:
            if number > self.last_written:
                lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())
                write_checkpoint(self.files, self.path, lines)
                self.last_written = number


class CheckpointWrite(NamedTuple):
    """The content of a checkpoint at one moment."""

    checkpoint: OffsetCheckpoint
    offsets: Mapping[TopicPartition, int]
    number: int

    @property
    def log_dir(self) -> str:
        return self.checkpoint.path.rpartition("/")[0]

    def run(self) -> None:
        self.checkpoint.write_taken(self.offsets, self.number)


class CheckpointEntry:
    """A line of a checkpoint, split at its spaces, with its line number for error messages."""

    def __init__(self, path: str, number: int, line: str) -> None:
        self.path = path
        self.number = number
        self.line = line
        self.fields = line.split()

    def text(self, at: int) -> str:
        return self.fields[at]

    def int32(self, at: int) -> int:
        return self._number(at, _INT32)

    def int64(self, at: int) -> int:
        return self._number(at, _INT64)

    def _number(self, at: int, limit: int) -> int:
        text = self.fields[at]
        value = int(text) if _NUMBER.fullmatch(text) else limit
        if not -limit <= value < limit:
            raise self.malformed()
        return value

    def malformed(self) -> CorruptCheckpoint:
        return CorruptCheckpoint(f"Malformed line in checkpoint file [{self.path}]: {self.line[:200]!r} at line {self.number}")


def read_checkpoint(files: AnyFiles, path: str, width: int) -> list[CheckpointEntry]:
    """The entries of a checkpoint, each of `width` fields.

    A missing file has none. Neither has an empty one: Apache Kafka creates empty checkpoints and fills them later.
    """
    try:
        text = read_text(files, path, CHECKPOINT_BYTES_MAX)
    except FileNotFoundError:
        return []
    if not text:
        return []
    lines = [CheckpointEntry(path, number, line.rstrip("\n")) for number, line in enumerate(io.StringIO(text, newline=None), 1)]
    version = _only_number(lines[0])
    if version != CHECKPOINT_VERSION:
        raise CorruptCheckpoint(
            f"Unrecognised version:{version}, expected version: {CHECKPOINT_VERSION} in checkpoint file at: {path} at line 1"
        )
    if len(lines) == 1:
        raise CorruptCheckpoint(f"The number of entries is missing in checkpoint file [{path}] at line 2")
    expected, entries = _only_number(lines[1]), lines[2:]
    for entry in entries:
        if len(entry.fields) != width:
            raise entry.malformed()
    if len(entries) != expected:
        raise CorruptCheckpoint(
            f"Expected [{expected}] entries in checkpoint file [{path}], but found only [{len(entries)}] at line {len(lines)}"
        )
    return entries


def write_checkpoint(files: AnyFiles, path: str, entries: Iterable[str]) -> None:
    lines = list(entries)
    text = "\n".join((str(CHECKPOINT_VERSION), str(len(lines)), *lines)) + "\n"
    files.write_atomically(path, text.encode())


def read_text(files: AnyFiles, path: str, limit: int) -> str:
    """The content of a small text file; raises CorruptCheckpoint if it is not UTF-8 or larger than `limit`."""
    try:
        return files.read_bytes(path, limit).decode()
    except UnicodeDecodeError as e:
        raise CorruptCheckpoint(f"File [{path}] is not text: byte {e.start} is not UTF-8") from None
    except OSError as e:
        if e.errno != errno.EFBIG:
            raise
        raise CorruptCheckpoint(f"File [{path}] has more than the {limit} bytes allowed for it") from None


def _only_number(line: CheckpointEntry) -> int:
    if len(line.fields) != 1:
        raise line.malformed()
    return line.int32(0)
