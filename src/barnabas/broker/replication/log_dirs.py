"""What is in the log directories: sizes and lags of the replicas there."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable

from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log.log import Log
from barnabas.storage.log_manager import LogManager
from barnabas.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

DiskSpace = Callable[[str], tuple[int, int]]


class ReplicaInfo:
    """`offset_lag` is how far a copy on its way to this directory is behind, or how far a replica is behind its high watermark."""

    def __init__(self, partition: TopicPartition, size: int, offset_lag: int, is_future: bool) -> None:
        self.partition = partition
        self.size = size
        self.offset_lag = offset_lag
        self.is_future = is_future


class LogDirInfo:
    """One log directory; nothing but the error is known of one whose disk failed."""

    def __init__(self, path: str, error: int = 0, total_bytes: int = -1, usable_bytes: int = -1) -> None:
        self.path = path
        self.error = error
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.replicas: list[ReplicaInfo] = []


def disk_space(path: str) -> tuple[int, int]:
    """All bytes of the file system that a directory is on, and those that are left."""
    usage = os.statvfs(path)
    return usage.f_blocks * usage.f_frsize, usage.f_bavail * usage.f_frsize


def describe(
    log_manager: LogManager, paths: Iterable[str], partitions: set[TopicPartition] | None, space_of: DiskSpace
) -> list[LogDirInfo]:
    described = {path: LogDirInfo(path) for path in paths}
    for path, info in described.items():
        if path not in log_manager.dirs:
            info.error = int(ErrorCode.KAFKA_STORAGE_ERROR)
            continue
        try:
            info.total_bytes, info.usable_bytes = space_of(path)
        except OSError as error:
            _log.error("Error while describing replica in dir %s: %s", path, error)
            info.error = int(ErrorCode.KAFKA_STORAGE_ERROR)
    for log in log_manager.logs:
        found = described.get(log.log_dir)
        if found is not None and found.error == ErrorCode.NONE and (partitions is None or log.partition in partitions):
            found.replicas.append(ReplicaInfo(log.partition, log.size, _offset_lag(log_manager, log), log.is_future))
    return list(described.values())


def _offset_lag(log_manager: LogManager, log: Log) -> int:
    current = log_manager.get(log.partition)
    if current is None:
        return -1
    return current.log_end_offset - log.log_end_offset if log.is_future else max(current.high_watermark - log.log_end_offset, 0)
