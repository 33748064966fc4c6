"""One of the directories in `log.dirs`: its lock, its meta.properties, its checkpoints.

A directory does not depend on the others, so that a disk can fail, or be moved to another machine, without them.
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
# The metadata log of KRaft, which is not a topic.
CLUSTER_METADATA_DIR: Final = "__cluster_metadata-0"
# The working directory of `barnabas convert`. Without a journal its content may be ignored.
CONVERSION_DIR: Final = "barnabas-conversion"
SECURE_DIR: Final = "secure"  # certificates and passwords of `barnabas up --secure`
CONVERSION_JOURNAL: Final = "journal.json"
RESTORE_MARK: Final = "barnabas-restore"  # `barnabas restore` puts this file into a directory first, and removes it last


def is_unused_log_dir(files: AnyFiles, path: str) -> bool:
    """Whether a failed start has created the directory: it has a lock file, but no directories, and no segments of a topic of that name."""
    if not files.exists(f"{path}/{LOCK_FILE}"):
        return False
    return not any(entry.is_dir or entry.name.endswith(names.LOG_SUFFIX) for entry in files.list_dir(path))


class LogDir:
    def __init__(self, files: AnyFiles, path: str) -> None:
        """Creates the directory if it is missing and locks it; raises OSError, or KafkaStorageError if another process has locked it."""
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
        # The checkpoint as it was before this start. A log takes its entry when its partition becomes leader or follower.
        self.loaded_high_watermarks: dict[TopicPartition, int] = {}
        self.damaged: dict[TopicPartition, DamagedLog] = {}  # logs that could not be loaded: their checkpoint entries are kept
        self.is_recovered = False  # whether a clean shutdown file may be written: not while a log still has to be recovered

    def require_owner(self, cluster_id: str, node_id: int) -> MetaProperties | None:
        """Raises InvalidMetaProperties if the directory belongs to another node or cluster; returns its properties, None if it has none.

        Opening the logs of another node would serve, and overwrite, the data of that node.
        """
        properties = self.meta.read()
        if properties is not None:
            for name, configured, stored in (
                ("cluster.id", cluster_id, properties.cluster_id),
                ("broker.id", node_id, properties.node_id),
            ):
                if stored is not None and stored != configured:
                    raise InvalidMetaProperties(
                        f"Configured {name} {configured} doesn't match stored {name} {stored} in {self.meta.path}. If you moved your "
                        f"data, make sure your configured {name} matches. If you intend to create a new broker, you should remove all "
                        "data in your data directories (log.dirs)."
                    )
        return properties

    def claim(self, cluster_id: str, node_id: int, directory_id: Uuid, now_ms: int) -> Uuid:
        """Writes the ids of this node into a directory that has none; returns the directory id. Called after the node has registered: a
        node whose registration was rejected leaves the directory usable by a node with another id."""
        stored = self.require_owner(cluster_id, node_id)
        claimed = MetaProperties(
            stored.version if stored is not None else 0,
            cluster_id,
            node_id,
            stored.directory_id if stored is not None and stored.directory_id is not None else directory_id,
        )
        if claimed != stored:
            self.meta.write(claimed, now_ms)
        self._shut_out_others()
        assert claimed.directory_id is not None
        return claimed.directory_id

    def _shut_out_others(self) -> None:
        """Removes the permissions of others: an older directory, or one of Apache Kafka, is often readable by everybody. Those of the group
        stay."""
        try:
            if self.files.shut_out_others(self.path):
                _log.info("Others may not enter log directory %s any more; a program that reads it runs as its user or group", self.path)
        except OSError as e:
            _log.warning(
                "Other users of this machine may read log directory %s: %s. Its owner takes that away with: chmod o-rwx", self.path, e
            )

    def partition_dirs(self) -> list[str]:
        """The names of the partition directories. Raises KafkaStorageError for a directory with segments and another kind of name: a
        renamed partition. A directory without segments, such as `lost+found`, is left out."""
        return [name for name in self._directories() if names.parse_partition_dir(name) is not None]

    def other_dirs(self) -> list[str]:
        """The names of the directories that `partition_dirs` leaves out because they have no segments."""
        return [name for name in self._directories() if names.parse_partition_dir(name) is None]

    def _directories(self) -> list[str]:
        if self.files.exists(f"{self.path}/{RESTORE_MARK}"):
            raise InvalidMetaProperties(
                f"`barnabas restore` is writing into {self.path}, or was interrupted: wait for it, or remove what is in the directory and "
                "restore again"
            )
        directories: list[str] = []
        for entry in self.files.list_dir(self.path):
            if not entry.is_dir or entry.name in (CLUSTER_METADATA_DIR, SECURE_DIR) or self._is_of_conversion(entry.name):
                continue
            if names.NODE_DIR.fullmatch(entry.name) and self._is_of_broker(entry.name):
                continue
            if names.parse_partition_dir(entry.name) is None and self._has_segments(entry.name):
                raise KafkaStorageError(
                    f"Found directory {self.path}/{entry.name}, '{entry.name}' is not in the form of topic-partition or "
                    "topic-partition.uniqueId-delete (if marked for deletion).\n"
                    "Kafka's log directories (and children) should only contain Kafka topic data."
                )
            directories.append(entry.name)
        return directories

    def _has_segments(self, name: str) -> bool:
        try:
            entries = self.files.list_dir(f"{self.path}/{name}")
        except PermissionError:  # only root may read lost+found
            return False
        return any(names.offset_of(entry.name) is not None and entry.name.endswith(names.LOG_SUFFIX) for entry in entries)

    def _is_of_conversion(self, name: str) -> bool:
        """Raises InvalidMetaProperties if a conversion was interrupted: some of the logs are elsewhere."""
        if name != CONVERSION_DIR:
            return False
        if self.files.exists(f"{self.path}/{name}/{CONVERSION_JOURNAL}"):
            raise InvalidMetaProperties(
                f"A conversion of {self.path} was interrupted. Finish it with: barnabas convert --data {self.path} --brokers N"
            )
        return True

    def _is_of_broker(self, name: str) -> bool:
        """Whether the directory is an unused log directory, left by a failed start, and not the log of a topic named `broker`. Raises
        InvalidMetaProperties if a broker has used it."""
        if self.files.exists(f"{self.path}/{name}/{META_PROPERTIES}"):
            raise InvalidMetaProperties(
                f"The directory {self.path} was made for several brokers: {name} is the log directory of one of them. Name another "
                f"directory, or move the data with: barnabas convert --data {self.path} --brokers 1"
            )
        return is_unused_log_dir(self.files, f"{self.path}/{name}")

    def make_checkpoints(self) -> None:
        """Creates the missing ones of the four checkpoints, empty as Kafka does: tools and back-ups expect all of them."""
        for checkpoint in (self.recovery_points, self.log_start_offsets, self.high_watermarks, self.cleaner_offsets):
            if not self.files.exists(checkpoint.path):
                self.files.open(checkpoint.path, create=True).close()

    def read_checkpoint(self, checkpoint: OffsetCheckpoint, instead: str) -> dict[TopicPartition, int] | None:
        """The content of a checkpoint. One that cannot be read costs time, not data: logs what happens `instead` and returns None."""
        try:
            return checkpoint.read()
        except CorruptCheckpoint as e:
            _log.warning("Error occurred while reading %s: %s. %s", checkpoint.path, e, instead)
            return None

    # These methods take the offsets now; the result writes them when it is run, on any thread.

    def take_recovery_points(self, logs: Iterable[Log]) -> CheckpointWrite:
        kept = {damaged.partition: damaged.recovery_point for damaged in self.damaged.values()}
        return self.recovery_points.take_write(kept | {log.partition: log.durability.recovery_point for log in logs})

    def take_log_start_offsets(self, logs: Iterable[Log]) -> CheckpointWrite:
        """Only of logs whose start offset differs from the base offset of the first segment."""
        kept = {damaged.partition: damaged.log_start_offset for damaged in self.damaged.values() if damaged.log_start_offset}
        return self.log_start_offsets.take_write(
            kept | {log.partition: log.log_start_offset for log in logs if log.log_start_offset > log.segments.first.base_offset}
        )

    def take_high_watermarks(self, logs: Iterable[Log]) -> CheckpointWrite:
        """For a log without a role, the loaded value: its own high watermark is only the log start offset until the leader is known."""
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
