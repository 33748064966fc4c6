"""A log that cannot be loaded because a file of it is damaged. Its partition is not served; the others of the directory are."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.errors import CorruptCheckpoint, KafkaError, KafkaStorageError, StorageFault
from barnabas.storage.directory import names
from barnabas.storage.log.loader import LoadRequest, load_log
from barnabas.storage.log.log import Log
from barnabas.topic_partition import TopicPartition


class DamagedLog(NamedTuple):
    """A log that is not loaded. Its entries in the checkpoints are kept until it has been repaired."""

    directory: str
    partition: TopicPartition
    recovery_point: int
    log_start_offset: int
    reason: str

    @property
    def log_dir(self) -> str:
        return self.directory.rpartition("/")[0]

    @property
    def is_marked_for_deletion(self) -> bool:
        return self.directory.endswith(names.DELETE_DIR_SUFFIX)

    @property
    def was_served(self) -> bool:
        """False if the log is stray, marked for deletion, or an incomplete copy for another log directory (a future log)."""
        return not self.directory.endswith((names.DELETE_DIR_SUFFIX, names.STRAY_DIR_SUFFIX, names.FUTURE_DIR_SUFFIX))


def load_or_describe(request: LoadRequest) -> Log | DamagedLog:
    """The log, or a DamagedLog with the reason. An error of the disk is raised, because it concerns the whole directory."""
    try:
        return load_log(request)
    except KafkaStorageError:
        raise
    except (StorageFault, KafkaError) as error:
        reason = f"{error}. {_advice(request, error)}"
        return DamagedLog(request.directory, request.partition, request.recovery_point, request.log_start_offset, reason)


def _advice(request: LoadRequest, error: Exception) -> str:
    copy = f"where other brokers have replicas of {request.partition}, delete {request.directory}: it is copied from them"
    if isinstance(error, CorruptCheckpoint) and names.PARTITION_METADATA in str(error):
        lines = "'version: 0' and 'topic_id: ID' with the ID that 'barnabas topics --describe' shows"
        return f"Stop the broker and write the two lines {lines} into the file; or, {copy}"
    return f"Stop the broker and restore {request.directory} from a copy; or, {copy}"
