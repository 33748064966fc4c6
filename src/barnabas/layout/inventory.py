"""The contents of the log directories of a data directory: their brokers, the logs, and the checkpointed offsets.

Read-only. The caller holds the locks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.errors import CorruptCheckpoint
from barnabas.layout.cluster_image import ClusterImage
from barnabas.layout.errors import NotConvertible
from barnabas.layout.layout import Layout
from barnabas.layout.log_end import read_log_end_offset
from barnabas.storage.directory import names
from barnabas.storage.directory.checkpoints import CHECKPOINTS, OffsetCheckpoint
from barnabas.storage.directory.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.storage.directory.log_dir import LOCK_FILE, LogDir
from barnabas.storage.directory.meta_properties import META_PROPERTIES, MetaProperties
from barnabas.storage.directory.partition_metadata import PartitionMetadataFile
from barnabas.storage.disk.disk import TEMPORARY_SUFFIX
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.leader_epochs import LeaderEpochCache
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

SMALL_FILES: Final = (META_PROPERTIES, CLEAN_SHUTDOWN_FILE, *CHECKPOINTS)
_KNOWN_FILES: Final = frozenset((LOCK_FILE, *SMALL_FILES, *(name + TEMPORARY_SUFFIX for name in SMALL_FILES)))

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True)
class LogInventory:
    topic_id: Uuid | None
    size: int  # bytes
    log_end_offset: int
    latest_epoch: int  # the last leader epoch in the log; -1 if it has none


@dataclass(frozen=True)
class NodeInventory:
    """`marked` are directories of logs that are stray or marked for deletion."""

    node: int
    meta: MetaProperties
    logs: Mapping[TopicPartition, LogInventory]
    marked: Sequence[str] = ()
    files: Sequence[str] = ()  # of SMALL_FILES
    checkpoints: Mapping[str, Offsets] = field(default_factory=dict)
    is_clean: bool = True

    def offset(self, checkpoint: str, partition: TopicPartition) -> int | None:
        return self.checkpoints.get(checkpoint, {}).get(partition)


@dataclass(frozen=True)
class LayoutInventory:
    layout: Layout
    image: ClusterImage
    nodes: Mapping[int, NodeInventory]
    leftovers: Sequence[int] = ()  # numbers of broker directories without logs


def read_node(files: AnyFiles, log_dir: LogDir, number: int | None) -> NodeInventory:
    """`number` is the number in the directory's name; None for the data directory itself, whose broker may have any id."""
    meta = log_dir.meta.read()
    assert meta is not None, "only directories with meta.properties are read"
    if number is not None and meta.node_id != number:
        raise NotConvertible(f"{log_dir.path} is of broker {meta.node_id} by its meta.properties: move it away, or give it back its name")
    if meta.node_id is None:
        raise NotConvertible(f"{log_dir.meta.path} names no broker.id: start the broker once and stop it with Ctrl-C")
    log_names = log_dir.partition_dirs()
    if number is not None:
        _refuse_foreign(files, log_dir, log_names)
    logs: dict[TopicPartition, LogInventory] = {}
    marked: list[str] = []
    for name in log_names:
        partition = names.parse_partition_dir(name)
        assert partition is not None
        if name.endswith(names.FUTURE_DIR_SUFFIX):
            raise NotConvertible(f"{log_dir.path}/{name} is being moved to another directory: start the broker and let it finish")
        if name.endswith((names.DELETE_DIR_SUFFIX, names.STRAY_DIR_SUFFIX)):
            marked.append(name)
        else:
            logs[partition] = read_log(files, f"{log_dir.path}/{name}")
    small = [name for name in SMALL_FILES if files.exists(f"{log_dir.path}/{name}")]
    checkpoints = {name: _offsets(files, f"{log_dir.path}/{name}") for name in CHECKPOINTS}
    return NodeInventory(meta.node_id, meta, logs, marked, small, checkpoints, log_dir.clean_shutdown.exists())


def read_log(files: AnyFiles, directory: str) -> LogInventory:
    metadata = PartitionMetadataFile(files, f"{directory}/{names.PARTITION_METADATA}")
    try:
        topic_id = metadata.read().topic_id if metadata.exists() else None
        latest_epoch = LeaderEpochCache(files, f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}").latest_epoch
    except CorruptCheckpoint as error:
        raise NotConvertible(f"{error}: restore this file, then convert again") from None
    size = sum(entry.size for entry in files.list_dir(directory))
    return LogInventory(topic_id, size, read_log_end_offset(files, directory), latest_epoch)


def _refuse_foreign(files: AnyFiles, log_dir: LogDir, log_names: Sequence[str]) -> None:
    """The directory of a broker is renamed or removed as a whole; files of other programs must not go with it."""
    for entry in files.list_dir(log_dir.path):
        if entry.name not in _KNOWN_FILES and entry.name not in log_names:
            raise NotConvertible(f"{log_dir.path}/{entry.name} was not made by a broker: move it away, then convert again")


def _offsets(files: AnyFiles, path: str) -> Offsets:
    try:
        return OffsetCheckpoint(files, path).read()
    except CorruptCheckpoint as error:
        raise NotConvertible(f"{error}: start the broker once and stop it with Ctrl-C, then convert again") from None
