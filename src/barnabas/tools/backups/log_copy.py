"""The copy of one log directory at a cut: its partitions, its checkpoints and meta.properties.

What is copied is what a broker would find after a crash at the moment of the cut: it opens the copy with an ordinary recovery.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.storage.directory import names
from barnabas.storage.directory.checkpoints import CHECKPOINTS, REPLICATION_OFFSET_CHECKPOINT, OffsetCheckpoint
from barnabas.storage.directory.log_dir import SECURE_DIR
from barnabas.storage.directory.meta_properties import META_PROPERTIES
from barnabas.storage.disk.files import Files
from barnabas.tools.backups.copying import Copier
from barnabas.tools.backups.cut import LogChanged, SegmentCut, SegmentFile, cut_log
from barnabas.topic_partition import TopicPartition

_BATCH_START: Final = struct.Struct(">qi")  # base offset and length of a batch, in every record format

Listing = dict[int, SegmentFile]


class LogDirCut:
    """One log directory while its cut is taken: `begin` before the sizes are requested, `decide` with the sizes."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._before: dict[TopicPartition, Listing] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._checkpoints: dict[str, bytes] = {}
        self._cuts: dict[TopicPartition, list[SegmentCut]] = {}

    def begin(self) -> None:
        self._checkpoints = {name: content for name in CHECKPOINTS if (content := _content(f"{self.path}/{name}")) is not None}
        self._high_watermarks = OffsetCheckpoint(Files(), f"{self.path}/{REPLICATION_OFFSET_CHECKPOINT}").read()
        for entry in os.scandir(self.path):
            partition = names.parse_partition_dir(entry.name) if entry.is_dir() else None
            if partition is not None and entry.name == names.partition_dir_name(partition):
                self._before[partition] = _segments(entry.path)

    def decide(self, sizes: Mapping[TopicPartition, int]) -> None:
        """Raises LogChanged."""
        self._cuts = {
            partition: cut_log(
                self._before.get(partition),
                size,
                _segments(f"{self.path}/{names.partition_dir_name(partition)}"),
                self._high_watermarks.get(partition, 0),
            )
            for partition, size in sizes.items()
        }

    @property
    def size(self) -> int:
        return sum(segment.size for cut in self._cuts.values() for segment in cut)

    @property
    def partitions(self) -> int:
        return len(self._cuts)

    def copy(self, target: str, copier: Copier) -> None:
        """Raises LogChanged if a segment of the cut is no longer there."""
        copier.make_dir(target)
        for name, content in self._checkpoints.items():
            _write(f"{target}/{name}", content)
        for partition, cut in self._cuts.items():
            name = names.partition_dir_name(partition)
            copier.make_dir(f"{target}/{name}")
            try:
                _copy_log(f"{self.path}/{name}", f"{target}/{name}", cut, copier)
            except (FileNotFoundError, EOFError):
                raise LogChanged from None
        copy_tree(f"{self.path}/{SECURE_DIR}", f"{target}/{SECURE_DIR}", copier)
        if os.path.exists(f"{self.path}/{META_PROPERTIES}"):
            copier.copy(f"{self.path}/{META_PROPERTIES}", f"{target}/{META_PROPERTIES}")


def copy_tree(source: str, target: str, copier: Copier) -> None:
    """Copies a directory with all that is in it, if it is there."""
    if not os.path.isdir(source):
        return
    copier.make_dir(target)
    for entry in os.scandir(source):
        if entry.is_dir(follow_symlinks=False):
            copy_tree(entry.path, f"{target}/{entry.name}", copier)
        else:
            copier.copy(entry.path, f"{target}/{entry.name}")
            os.chmod(f"{target}/{entry.name}", entry.stat().st_mode & 0o777)


def _copy_log(source: str, target: str, cut: Sequence[SegmentCut], copier: Copier) -> None:
    for segment in cut:
        _copy_segment(source, target, segment, copier)
    last = cut[-1].base_offset
    for entry in os.scandir(source):
        offset = names.offset_of(entry.name)
        is_snapshot = offset is not None and offset <= last and entry.name.endswith(names.SNAPSHOT_SUFFIX)
        # Copied after the segments: entries beyond the end of the log are dropped when the log is loaded, missing ones are not restored.
        if is_snapshot or entry.name in (names.LEADER_EPOCH_CHECKPOINT, names.PARTITION_METADATA):
            copier.copy(entry.path, f"{target}/{entry.name}")


def _copy_segment(source: str, target: str, segment: SegmentCut, copier: Copier) -> None:
    path, copy = (names.segment_file(place, segment.base_offset, names.LOG_SUFFIX) for place in (source, target))
    if not segment.is_settled:
        copier.copy(path, copy, segment.size)
        _require_batch_boundary(copy, segment.size)
        return
    copier.link(path, copy, segment.size)
    if os.stat(copy).st_size != segment.size or os.stat(path).st_ino != segment.inode:
        raise LogChanged
    for kind in names.INDEX_SUFFIXES:  # the indexes of other segments are built again by the recovery
        index = names.segment_file(source, segment.base_offset, kind)
        if os.path.exists(index):
            copier.link(index, names.segment_file(target, segment.base_offset, kind), os.stat(index).st_size)


def _require_batch_boundary(path: str, size: int) -> None:
    """Raises LogChanged unless the file ends with a whole batch."""
    position = 0
    with open(path, "rb") as file:
        while position < size:
            file.seek(position)
            start = file.read(_BATCH_START.size)
            if len(start) < _BATCH_START.size:
                raise LogChanged
            _, length = _BATCH_START.unpack(start)
            if length <= 0:
                raise LogChanged
            position += _BATCH_START.size + length
    if position != size:
        raise LogChanged


def _segments(directory: str) -> Listing:
    """The segment files by base offset; empty if the directory is gone."""
    listing: Listing = {}
    try:
        for entry in os.scandir(directory):
            base_offset = names.offset_of(entry.name)
            if base_offset is not None and entry.name.endswith(names.LOG_SUFFIX):
                stat = entry.stat()
                listing[base_offset] = SegmentFile(base_offset, stat.st_size, stat.st_ino)
    except FileNotFoundError:
        return {}
    return listing


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
