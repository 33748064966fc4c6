"""The inventory of log directories that Apache Kafka wrote: their owner, partitions, leader epochs and producer ids.

The first half of `barnabas adopt`. It only reads; the caller has locked the directories, so that no other process writes. Log segments are
read only where no smaller file has the answer: after an unclean shutdown, and for the transaction coordinator's topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.broker.adoption.kraft_metadata import KraftMetadata, read_kraft_metadata
from barnabas.errors import CorruptCheckpoint, CorruptRecord, CorruptSnapshot, KafkaError
from barnabas.protocol.coordinator_log import TRANSACTION_RECORDS
from barnabas.protocol.coordinator_records.transaction_log_value import TransactionLogValue
from barnabas.protocol.errors import MalformedMessage
from barnabas.records.reader import read_records
from barnabas.storage.directory import names
from barnabas.storage.directory.log_dir import CLUSTER_METADATA_DIR, LogDir
from barnabas.storage.directory.meta_properties import MetaProperties
from barnabas.storage.directory.partition_metadata import PartitionMetadataFile
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.leader_epochs import LeaderEpochCache
from barnabas.storage.producers.snapshot import SNAPSHOT_BYTES_MAX, decode_snapshot
from barnabas.storage.segments.scan import ScannedChunk, scan
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
_MARKED: Final = (names.DELETE_DIR_SUFFIX, names.FUTURE_DIR_SUFFIX, names.STRAY_DIR_SUFFIX)


class NotAdoptable(Exception):
    """The directories cannot be adopted. The message says why, and what to do."""


@dataclass(frozen=True)
class FoundPartition:
    path: str
    topic_id: Uuid | None
    leader_epoch: int  # the last epoch in leader-epoch-checkpoint, -1 if there is none


@dataclass(frozen=True)
class KafkaInventory:
    meta: MetaProperties
    partitions: Mapping[TopicPartition, FoundPartition]
    compacted: frozenset[str]  # topics that the log cleaner has cleaned
    kraft: KraftMetadata | None
    next_producer_id: int  # greater than every producer id in the directories
    is_clean: bool
    passed_over: Sequence[str]  # directories of partitions that are being deleted, being moved, or stray


def take_inventory(
    files: AnyFiles, log_dirs: Sequence[LogDir], metadata_dir: str, note: Callable[[int, int], None] = lambda done, total: None
) -> KafkaInventory:
    """Raises NotAdoptable, or the error of an unreadable file. `note` is called with the number of directories read and of all."""
    meta = _common_meta(log_dirs)
    is_clean = all(log_dir.clean_shutdown.exists() for log_dir in log_dirs)
    partitions: dict[TopicPartition, FoundPartition] = {}
    passed_over: list[str] = []
    compacted: set[str] = set()
    next_producer_id = 0
    names_of = {log_dir.path: sorted(log_dir.partition_dirs()) for log_dir in log_dirs}
    total, done = sum(map(len, names_of.values())), 0
    for log_dir in log_dirs:
        compacted.update(partition.topic for partition in log_dir.cleaner_offsets.read())
        for name in names_of[log_dir.path]:
            note(done, total)
            done += 1
            path = f"{log_dir.path}/{name}"
            partition = names.parse_partition_dir(name)
            assert partition is not None
            if name.endswith(_MARKED):
                passed_over.append(path)
                continue
            if partition in partitions:
                raise NotAdoptable(
                    f"{partition} is in {partitions[partition].path} and in {path}: keep the right one and move the other away"
                )
            partitions[partition] = _read_partition(files, path)
            next_producer_id = max(next_producer_id, _next_producer_id(files, path, partition, is_clean))
    kraft_dir = f"{metadata_dir}/{CLUSTER_METADATA_DIR}"
    kraft = read_kraft_metadata(files, kraft_dir) if files.is_dir(kraft_dir) else None
    next_producer_id = max(next_producer_id, kraft.next_producer_id if kraft is not None else 0)
    return KafkaInventory(meta, partitions, frozenset(compacted), kraft, next_producer_id, is_clean, passed_over)


def _common_meta(log_dirs: Sequence[LogDir]) -> MetaProperties:
    metas = [(log_dir, log_dir.meta.read()) for log_dir in log_dirs]
    first: MetaProperties | None = None
    for log_dir, meta in metas:
        if meta is None:
            raise NotAdoptable(f"{log_dir.path} has no meta.properties, so it is no log directory of Apache Kafka: name its log.dirs")
        if first is None:
            first = meta
        elif (meta.cluster_id, meta.node_id) != (first.cluster_id, first.node_id):
            raise NotAdoptable(
                f"{log_dir.path} is of node {meta.node_id} of cluster {meta.cluster_id}, {log_dirs[0].path} of node {first.node_id} of "
                f"cluster {first.cluster_id}: adopt the directories of one node at a time"
            )
    assert first is not None, "there is at least one directory"
    return first


def _read_partition(files: AnyFiles, path: str) -> FoundPartition:
    metadata = PartitionMetadataFile(files, f"{path}/{names.PARTITION_METADATA}")
    try:
        topic_id = metadata.read().topic_id if metadata.exists() else None
    except CorruptCheckpoint as error:
        raise NotAdoptable(f"{error}: restore {metadata.path}, or remove it if the topic never had an id") from None
    return FoundPartition(path, topic_id, LeaderEpochCache(files, f"{path}/{names.LEADER_EPOCH_CHECKPOINT}").latest_epoch)


# -- producer ids: an id must never be used again, because the batches of the second producer would be taken for duplicates


def _next_producer_id(files: AnyFiles, path: str, partition: TopicPartition, is_clean: bool) -> int:
    """One more than the greatest producer id in the partition, 0 if there is none."""
    file_names = [entry.name for entry in files.list_dir(path)]
    snapshots = sorted(name for name in file_names if name.endswith(names.SNAPSHOT_SUFFIX) and names.offset_of(name) is not None)
    greatest = max((_in_snapshot(files, f"{path}/{name}") for name in snapshots), default=-1)
    segments = sorted(name for name in file_names if name.endswith(names.LOG_SUFFIX) and names.offset_of(name) is not None)
    for name in _after(segments, snapshots) if not is_clean else ():
        greatest = max(greatest, _in_batches(files, f"{path}/{name}"))
    if partition.topic == TRANSACTION_STATE_TOPIC:
        for name in segments:
            greatest = max(greatest, _in_transactions(files, f"{path}/{name}"))
    return greatest + 1


def _after(segments: list[str], snapshots: list[str]) -> list[str]:
    """The segments that may have producer ids after the newest snapshot. Names begin with the offset, so they sort by offset."""
    newest = snapshots[-1].partition(".")[0] if snapshots else ""
    first = sum(name.partition(".")[0] <= newest for name in segments) - 1
    return segments[max(0, first) :]


def _in_snapshot(files: AnyFiles, path: str) -> int:
    try:
        return max((entry.producer_id for entry in decode_snapshot(files.read_bytes(path, SNAPSHOT_BYTES_MAX), path)), default=-1)
    except CorruptSnapshot:
        return -1  # loading the log deletes the snapshot and reads the segments again


def _in_batches(files: AnyFiles, path: str) -> int:
    return max((batch.producer_id for chunk in _chunks(files, path) for batch in chunk.batches), default=-1)


def _in_transactions(files: AnyFiles, path: str) -> int:
    """The greatest id of a transactional producer. It may be used again, however long ago the producer was active."""
    greatest = -1
    for chunk in _chunks(files, path):
        for batch in chunk.batches:
            for record in read_records(chunk.data, batch) if not batch.is_control else ():
                if record.key is None or record.value is None:
                    continue
                try:
                    kind, _ = TRANSACTION_RECORDS.read_key(record.key)
                    value = TRANSACTION_RECORDS.read_value(kind, record.value)
                except (KafkaError, MalformedMessage):
                    continue  # a record of a newer Kafka
                if isinstance(value, TransactionLogValue):
                    greatest = max(greatest, value.producer_id, value.previous_producer_id, value.next_producer_id)
    return greatest


def _chunks(files: AnyFiles, path: str) -> Iterator[ScannedChunk]:
    """The chunks up to the first corrupt record: recovery truncates the log there."""
    file = files.open(path, writable=False)
    try:
        yield from scan(file, 0, file.size)
    except CorruptRecord:
        return
    finally:
        file.close()
