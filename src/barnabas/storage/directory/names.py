"""The names of files and directories in a log directory, exactly as in Kafka.

Other programs find files by these names, and loading decides only by its name what a file is.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.topic_partition import TopicPartition

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"

DELETED_SUFFIX: Final = ".deleted"  # to be removed after file.delete.delay.ms
CLEANED_SUFFIX: Final = ".cleaned"  # being written by the cleaner or by a split
SWAP_SUFFIX: Final = ".swap"  # complete, about to replace its source segments

INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, *INDEX_SUFFIXES)

DELETE_DIR_SUFFIX: Final = "-delete"
FUTURE_DIR_SUFFIX: Final = "-future"
STRAY_DIR_SUFFIX: Final = "-stray"
_MARKED_DIR: Final = re.compile(r"^(\S+)-(\S+)\.(\S+)(-delete|-future|-stray)$")

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

NODE_DIR_PREFIX: Final = "broker-"
NODE_DIR: Final = re.compile(
    r"broker-([1-9][0-9]{0,3})"
)  # the log directory of one of several brokers in a process; a topic may have this name too

FILE_NAME_MAX: Final = 255
PARTITION_MAX: Final = 2**31 - 1


def offset_prefix(offset: int) -> str:
    return f"{offset:020d}"


def segment_file(directory: str, base_offset: int, kind: str, suffix: str = "") -> str:
    return f"{directory}/{base_offset:020d}{kind}{suffix}"


def offset_of(file_name: str) -> int | None:
    """The offset in the name of a segment or snapshot file; None for any other file."""
    prefix = file_name.partition(".")[0]
    return int(prefix) if len(prefix) == 20 and prefix.isascii() and prefix.isdigit() else None


def partition_dir_name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def marked_dir_name(partition: TopicPartition, unique: str, suffix: str) -> str:
    """`topic-partition.unique-delete`, or with another suffix. A topic name that is too long for the file system is shortened."""
    tail = f"-{partition.partition}.{unique}{suffix}"
    return partition.topic[: FILE_NAME_MAX - len(tail)] + tail


def parse_partition_dir(name: str) -> TopicPartition | None:
    """The partition of a directory, with or without a suffix such as `-delete`; None if it is not the directory of a partition."""
    if name.endswith((DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)):
        if not _MARKED_DIR.match(name):
            return None
        name = name[: name.rindex(".")]
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not (partition.isascii() and partition.isdigit()) or int(partition) > PARTITION_MAX:
        return None
    return TopicPartition(topic, int(partition))
