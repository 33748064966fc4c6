"""One of the directories in `log.dirs`: its lock, its identity, its checkpoints.

Every directory is complete in itself, so that a disk can fail, or be moved to another machine, without the others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.errors import CorruptCheckpoint, InvalidMetaProperties, KafkaStorageError
from barnabas.storage.directory import names
from barnabas.storage.directory.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    CheckpointWrite,
    OffsetCheckpoint,
)
from barnabas.storage.directory.clean_shutdown import CleanShutdownFile
from barnabas.storage.directory.meta_properties import META_PROPERTIES, MetaProperties, MetaPropertiesFile
from barnabas.storage.disk.files import AnyFiles
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.storage.log.damaged_log import DamagedLog
    from barnabas.storage.log.log import Log

_log = logging.getLogger(__name__)

LOCK_FILE: Final = ".lock"
# KRaft keeps its own log here; it is no topic of ours.
CLUSTER_METADATA_DIR: Final = "__cluster_metadata-0"
# What `barnabas convert` works in. Without a journal it holds nothing that counts.
CONVERSION_DIR: Final = "barnabas-conversion"
CONVERSION_JOURNAL: Final = "journal.json"


def is_unused_log_dir(files: AnyFiles, path: str) -> bool:
    """Whether a start that failed has made the directory: it was locked, and nobody has used it since, also not a topic of that name."""
    if not files.exists(f"{path}/{LOCK_FILE}"):
        return False
    return not any(entry.is_dir or entry.name.endswith(names.LOG_SUFFIX) for entry in files.list_dir(path))


class LogDir:
    def __init__(self, files: AnyFiles, path: str) -> None:
        """Makes the directory where needed and locks it; raises OSError, or KafkaStorageError where another process has it."""
        self.files = files
        self.path = path
        if not files.exists(path):
            _log.info("Log directory %s not found, creating it.", path)
            files.make_dirs(path)
        if not files.is_dir(path):
            raise NotADirectoryError(f"{path} is not a readable log directory.")
        try:
            self._lock = files.lock(f"{path}/{LOCK_FILE}")
        except BlockingIOError:
            raise KafkaStorageError(
                f"Failed to acquire lock on file .lock in {path}. A Kafka instance in another process or thread is using this directory."
            ) from None
        self.meta = MetaPropertiesFile(files, path)
        self.clean_shutdown = CleanShutdownFile(files, path)
        self.recovery_points = OffsetCheckpoint(files, f"{path}/{RECOVERY_POINT_CHECKPOINT}")
        self.log_start_offsets = OffsetCheckpoint(files, f"{path}/{LOG_START_OFFSET_CHECKPOINT}")
        self.high_watermarks = OffsetCheckpoint(files, f"{path}/{REPLICATION_OFFSET_CHECKPOINT}")
        self.cleaner_offsets = OffsetCheckpoint(files, f"{path}/{CLEANER_OFFSET_CHECKPOINT}")
        # As they were checkpointed before this start. A log takes its own when its partition becomes leader or follower.
        self.loaded_high_watermarks: dict[TopicPartition, int] = {}
        self.damaged: dict[TopicPartition, DamagedLog] = {}  # logs that could not be loaded: their checkpoints stay as they are
        self.is_recovered = False  # whether a clean shutdown may be claimed: not while a log in here is still to be recovered

    def require_owner(self, cluster_id: str, node_id: int) -> MetaProperties | None:
        """Raises InvalidMetaProperties unless the directory belongs to this node of this cluster, or to nobody; gives what it says.

        Opening the logs of another node would serve, and overwrite, somebody else's data.
        """
        found = self.meta.read()
        if found is not None:
            for name, ours, theirs in (("cluster.id", cluster_id, found.cluster_id), ("broker.id", node_id, found.node_id)):
                if theirs is not None and theirs != ours:
                    raise InvalidMetaProperties(
                        f"Configured {name} {ours} doesn't match stored {name} {theirs} in {self.meta.path}. If you moved your data, make "
                        f"sure your configured {name} matches. If you intend to create a new broker, you should remove all data in your "
                        "data directories (log.dirs)."
                    )
        return found

    def claim(self, cluster_id: str, node_id: int, directory_id: Uuid, now_ms: int) -> Uuid:
        """Marks a directory that belongs to nobody as this node's; gives its id. To be called once the node is registered: a node that
        was refused leaves its directory to whoever starts in it next, under whatever id."""
        found = self.require_owner(cluster_id, node_id)
        claimed = MetaProperties(
            found.version if found is not None else 0,
            cluster_id,
            node_id,
            found.directory_id if found is not None and found.directory_id is not None else directory_id,
        )
        if claimed != found:
            self.meta.write(claimed, now_ms)
        self._shut_out_others()
        assert claimed.directory_id is not None
        return claimed.directory_id

    def _shut_out_others(self) -> None:
        """A directory from before, or of Apache Kafka, is often open to everybody, with all that is in it. Its group keeps what it has."""
        try:
            if self.files.shut_out_others(self.path):
                _log.info("Others may not enter log directory %s any more; a program that reads it runs as its user or group", self.path)
        except OSError as e:
            _log.warning(
                "Other users of this machine may read log directory %s: %s. Its owner takes that away with: chmod o-rwx", self.path, e
            )

    def partition_dirs(self) -> list[str]:
        """The names of the partition directories. Raises KafkaStorageError for a directory with segments under another kind of name: a
        partition that somebody has renamed. One without segments is plainly something else, such as `lost+found`, and is left out."""
        return [name for name in self._directories() if names.parse_partition_dir(name) is not None]

    def other_dirs(self) -> list[str]:
        """The names of the directories that partition_dirs() leaves out because they are plainly something else."""
        return [name for name in self._directories() if names.parse_partition_dir(name) is None]

    def _directories(self) -> list[str]:
        found: list[str] = []
        for entry in self.files.list_dir(self.path):
            if not entry.is_dir or entry.name == CLUSTER_METADATA_DIR or self._is_of_conversion(entry.name):
                continue
            if names.NODE_DIR.fullmatch(entry.name) and self._is_of_broker(entry.name):
                continue
            if names.parse_partition_dir(entry.name) is None and self._has_segments(entry.name):
                raise KafkaStorageError(
                    f"Found directory {self.path}/{entry.name}, '{entry.name}' is not in the form of topic-partition or "
                    "topic-partition.uniqueId-delete (if marked for deletion).\n"
                    "Kafka's log directories (and children) should only contain Kafka topic data."
                )
            found.append(entry.name)
        return found

    def _has_segments(self, name: str) -> bool:
        try:
            entries = self.files.list_dir(f"{self.path}/{name}")
        except PermissionError:  # lost+found is for root alone
            return False
        return any(names.offset_of(entry.name) is not None and entry.name.endswith(names.LOG_SUFFIX) for entry in entries)

    def _is_of_conversion(self, name: str) -> bool:
        """Raises InvalidMetaProperties where a conversion was begun: some of the logs are elsewhere."""
        if name != CONVERSION_DIR:
            return False
        if self.files.exists(f"{self.path}/{name}/{CONVERSION_JOURNAL}"):
            raise InvalidMetaProperties(
                f"A conversion of {self.path} was interrupted. Finish it with: barnabas convert --data {self.path} --brokers N"
            )
        return True

    def _is_of_broker(self, name: str) -> bool:
        """Whether the directory is no log but a log directory, which a start that failed has left. Raises InvalidMetaProperties where a
        broker has used it: it would be taken for the log of a topic named `broker`."""
        if self.files.exists(f"{self.path}/{name}/{META_PROPERTIES}"):
            raise InvalidMetaProperties(
                f"The directory {self.path} was made for several brokers: {name} is the log directory of one of them. Name another "
                f"directory, or move the data with: barnabas convert --data {self.path} --brokers 1"
            )
        return is_unused_log_dir(self.files, f"{self.path}/{name}")

    def make_checkpoints(self) -> None:
        """Makes those of the four checkpoints that are not there yet, empty as Kafka does: tools and back-ups look for all of them."""
        for checkpoint in (self.recovery_points, self.log_start_offsets, self.high_watermarks, self.cleaner_offsets):
            if not self.files.exists(checkpoint.path):
                self.files.open(checkpoint.path, create=True).close()

    def read_checkpoint(self, checkpoint: OffsetCheckpoint, instead: str) -> dict[TopicPartition, int] | None:
        """A checkpoint that cannot be read costs time, not data: say what happens instead and go on with None."""
        try:
            return checkpoint.read()
        except CorruptCheckpoint as e:
            _log.warning("Error occurred while reading %s: %s. %s", checkpoint.path, e, instead)
            return None

    # What is to be written is taken down here and now, and written when the result is run, on whatever thread.

    def take_recovery_points(self, logs: Iterable[Log]) -> CheckpointWrite:
        kept = {damaged.partition: damaged.recovery_point for damaged in self.damaged.values()}
        return self.recovery_points.take_write(kept | {log.partition: log.durability.recovery_point for log in logs})

    def take_log_start_offsets(self, logs: Iterable[Log]) -> CheckpointWrite:
        """Only where it says more than the first segment's name does."""
        kept = {damaged.partition: damaged.log_start_offset for damaged in self.damaged.values() if damaged.log_start_offset}
        return self.log_start_offsets.take_write(
            kept | {log.partition: log.log_start_offset for log in logs if log.log_start_offset > log.segments.first.base_offset}
        )

    def take_high_watermarks(self, logs: Iterable[Log]) -> CheckpointWrite:
        """Of a log without a role the value that was loaded: its own is the log start offset as long as nobody has told it more."""
        loaded = self.loaded_high_watermarks
        kept = {partition: loaded[partition] for partition in self.damaged if partition in loaded}
        return self.high_watermarks.take_write(
            kept
            | {
                log.partition: log.high_watermark if log.has_role else loaded[log.partition]
                for log in logs
                if log.has_role or log.partition in loaded
            }
        )

    def checkpoint_recovery_points(self, logs: Iterable[Log]) -> None:
        self.take_recovery_points(logs).run()

    def checkpoint_log_start_offsets(self, logs: Iterable[Log]) -> None:
        self.take_log_start_offsets(logs).run()

    def checkpoint_high_watermarks(self, logs: Iterable[Log]) -> None:
        self.take_high_watermarks(logs).run()

    def release(self) -> None:
        self._lock.release()
