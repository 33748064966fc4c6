"""The log directories of this broker, with the sizes and lags of their replicas."""

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
    """`offset_lag` is the lag of a future log behind its replica, or of a replica behind its high watermark, in offsets."""

    def __init__(self, partition: TopicPartition, size: int, offset_lag: int, is_future: bool) -> None:
        self.partition = partition
        self.size = size
        self.offset_lag = offset_lag
        self.is_future = is_future


class LogDirInfo:
    """One log directory. If its disk failed, only the error is set."""

    def __init__(self, path: str, error: int = 0, total_bytes: int = -1, usable_bytes: int = -1) -> None:
        self.path = path
        self.error = error
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.replicas: list[ReplicaInfo] = []


def disk_space(path: str) -> tuple[int, int]:
    """The total and the available bytes of the file system of a directory."""
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
        log_dir = described.get(log.log_dir)
        if log_dir is not None and log_dir.error == ErrorCode.NONE and (partitions is None or log.partition in partitions):
            log_dir.replicas.append(ReplicaInfo(log.partition, log.size, _offset_lag(log_manager, log), log.is_future))
    return list(described.values())


def _offset_lag(log_manager: LogManager, log: Log) -> int:
    current = log_manager.get(log.partition)
    if current is None:
        return -1
    return current.log_end_offset - log.log_end_offset if log.is_future else max(current.high_watermark - log.log_end_offset, 0)
