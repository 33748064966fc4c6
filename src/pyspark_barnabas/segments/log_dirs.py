"""The content of log directories by file names: partitions, their segments, and the remains of deleted or replaced segments.

Used by the direct reader for planning and by the audit. A directory may be written by this broker or by Apache Kafka, in use, closed, or
copied while a broker wrote to it; it is only read. The remains of an interrupted compaction are treated as a broker treats them at its
next start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.storage.directory import names
from barnabas.storage.directory.checkpoints import CLEANER_OFFSET_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT
from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.errors import OptionError
from pyspark_barnabas.read.batch_cuts import last_offset_of
from pyspark_barnabas.segments.file_store import LOG_DIRS, Entry, FileStore

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
SMALL_FILE_BYTES_MAX: Final = 64 * 1024 * 1024
_MARKED: Final = (names.DELETE_DIR_SUFFIX, names.FUTURE_DIR_SUFFIX, names.STRAY_DIR_SUFFIX)


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """A segment with its base offset. Paths are relative to the log directory; None if the file does not exist."""

    base_offset: int
    log: str
    size: int
    index: str | None = None
    time_index: str | None = None
    txn_index: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """One replica of a partition: the directory of its files in a log directory, which `store` opens."""

    topic: str
    partition: int
    store: FileStore
    directory: str
    log_start_offset: int
    segments: tuple[SegmentFiles, ...]
    snapshots: tuple[tuple[int, str], ...]  # producer snapshots by offset
    topic_id: str | None = None
    cleaned_to: int = 0  # below this offset the log has been compacted

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def place(self) -> str:
        return f"{self.store.uri}/{self.directory}".rstrip("/")


def parse_log_dirs(text: str) -> list[str]:
    """The directories of the option logDirs: paths or URIs, separated by commas."""
    uris = [uri.strip() for uri in text.split(",") if uri.strip()]
    if not uris:
        raise OptionError(LOG_DIRS, "must name at least one log directory, such as '/var/lib/kafka/data' or 's3://bucket/copy'.")
    return list(dict.fromkeys(uris))


def find_partitions(uris: Iterable[str], wants: Callable[[TopicPartition], bool] | None = None) -> list[PartitionLog]:
    """Every replica in these directories. A directory is a log directory, which contains partitions, or the directory of one partition. The
    directories of partitions that `wants` rejects are not opened."""
    logs: list[PartitionLog] = []
    for uri in uris:
        store = FileStore(uri)
        if not store.is_dir():
            raise OptionError(LOG_DIRS, f"'{uri}' is no directory.")
        entries = store.entries()
        if any(names.offset_of(entry.name) is not None and names.LOG_SUFFIX in entry.name for entry in entries):
            logs.append(_of_one_partition(uri))
            continue
        checkpoints = _Checkpoints(store, entries)
        for entry in entries:
            partition = names.parse_partition_dir(entry.name) if entry.is_dir and not entry.name.endswith(_MARKED) else None
            if partition is not None and (wants is None or wants(partition)):
                logs.append(_read_partition(store, entry.name, partition, checkpoints))
    return logs


def _of_one_partition(uri: str) -> PartitionLog:
    above, _, name = uri.rstrip("/").rpartition("/")
    partition = names.parse_partition_dir(name)
    if partition is None:
        raise OptionError(LOG_DIRS, f"'{uri}' has segments in it, but is not named after a topic and a partition, such as 'orders-0'.")
    store = FileStore(above or ".")
    try:
        entries = store.entries()
    except OSError:  # the user may have access to the directory, but not to its parent
        entries = []
    return _read_partition(store, name, partition, _Checkpoints(store, entries))


class _Checkpoints:
    """The checkpoint files of a log directory."""

    def __init__(self, store: FileStore, entries: Sequence[Entry]) -> None:
        there = {entry.name for entry in entries}
        self.starts = _read_checkpoint(store, LOG_START_OFFSET_CHECKPOINT) if LOG_START_OFFSET_CHECKPOINT in there else {}
        self.cleaned = _read_checkpoint(store, CLEANER_OFFSET_CHECKPOINT) if CLEANER_OFFSET_CHECKPOINT in there else {}


def _read_checkpoint(store: FileStore, name: str) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for line in store.read(name, SMALL_FILE_BYTES_MAX).decode().splitlines()[2:]:
        topic, number, offset = line.split()
        offsets[TopicPartition(topic, int(number))] = int(offset)
    return offsets


def _read_partition(store: FileStore, directory: str, partition: TopicPartition, checkpoints: _Checkpoints) -> PartitionLog:
    files = {entry.name: entry for entry in store.entries(directory) if not entry.is_dir}
    segments = _segments(store, directory, files)
    first = segments[0].base_offset if segments else 0
    snapshots = [
        (offset, f"{directory}/{name}")
        for name in files
        if name.endswith(names.SNAPSHOT_SUFFIX) and (offset := names.offset_of(name)) is not None
    ]
    return PartitionLog(
        partition.topic,
        partition.partition,
        store,
        directory,
        max(checkpoints.starts.get(partition, 0), first),  # records deleted by DeleteRecords may still be in a segment
        tuple(segments),
        tuple(sorted(snapshots)),
        _topic_id(store, f"{directory}/{names.PARTITION_METADATA}") if names.PARTITION_METADATA in files else None,
        checkpoints.cleaned.get(partition, 0),
    )


def _segments(store: FileStore, directory: str, files: dict[str, Entry]) -> list[SegmentFiles]:
    """The segments that a broker would load: `.deleted` and `.cleaned` files are ignored, `.swap` files replace their source segments."""
    cleaned = [offset for name in files if name.endswith(names.CLEANED_SUFFIX) and (offset := names.offset_of(name)) is not None]
    swapped: dict[int, SegmentFiles] = {}
    plain: dict[int, SegmentFiles] = {}
    for name in files:
        offset = names.offset_of(name)
        if offset is None:
            continue
        if name.endswith(names.LOG_SUFFIX):
            plain[offset] = _segment(directory, files, offset, "")
        elif name.endswith(names.LOG_SUFFIX + names.SWAP_SUFFIX) and not (cleaned and offset >= min(cleaned)):
            # A split renames from the last part to the first: a .cleaned below a .swap means that the renaming was not finished.
            swapped[offset] = _segment(directory, files, offset, names.SWAP_SUFFIX)
    if swapped:
        high = max(_next_offset(store, segment) for segment in swapped.values())
        plain = {offset: segment for offset, segment in plain.items() if not min(swapped) <= offset < high}
    return [segment for _, segment in sorted({**plain, **swapped}.items())]


def _segment(directory: str, files: dict[str, Entry], base_offset: int, suffix: str) -> SegmentFiles:
    prefix = names.offset_prefix(base_offset)

    def path(kind: str) -> str | None:
        # The .log file is renamed first: its indexes may still have the .swap suffix, or may be renamed already.
        return next((f"{directory}/{prefix}{kind}{ending}" for ending in (suffix, "") if f"{prefix}{kind}{ending}" in files), None)

    log = f"{prefix}{names.LOG_SUFFIX}{suffix}"
    return SegmentFiles(
        base_offset,
        f"{directory}/{log}",
        files[log].size,
        path(names.INDEX_SUFFIX),
        path(names.TIME_INDEX_SUFFIX),
        path(names.TXN_INDEX_SUFFIX),
    )


def _next_offset(store: FileStore, segment: SegmentFiles) -> int:
    with store.open(segment.log) as file:
        last = last_offset_of(file)
    return segment.base_offset if last is None else last + 1


def _topic_id(store: FileStore, path: str) -> str | None:
    for line in store.read(path, SMALL_FILE_BYTES_MAX).decode(errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "topic_id":
            return value.strip() or None
    return None
