"""Offsets that clients of Kafka 0.8 store as znodes, by group, topic and partition: version 0 of OffsetCommit and OffsetFetch.

Later versions do not read these znodes, and the group coordinator does not check them. An error of the metadata store becomes the error
code of its partition.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import NoNode, TreeError
from barnabas.metadata.tree import GetData, SetData
from barnabas.metadata.znodes.consumers import decode_offset, encode_offset
from barnabas.metadata.znodes.json_text import CorruptZNode
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


async def commit(tree: TreeClient, group_id: str, offsets: Sequence[tuple[TopicPartition, int]]) -> list[int]:
    """The error codes, in the order of `offsets`. If a partition occurs several times, only its last offset is written."""
    latest = dict(offsets)
    writes = [SetData(paths.consumer_offset(group_id, *partition), encode_offset(offset)) for partition, offset in latest.items()]
    codes = {}
    for partition, write, response in zip(latest, writes, await tree.handle(writes), strict=True):
        try:
            if isinstance(response.error, NoNode):  # the first offset of this partition
                await tree.set_or_create(write.path, write.data)
            elif response.error is not None:
                raise response.error
            codes[partition] = int(ErrorCode.NONE)
        except TreeError as error:
            _log.info("An offset was not committed: %s", error)
            codes[partition] = int(ErrorCode.UNKNOWN_SERVER_ERROR)
    return [codes[partition] for partition, _ in offsets]


async def fetch(tree: TreeClient, group_id: str, partitions: Sequence[TopicPartition]) -> list[tuple[int | None, int]]:
    """Offset and error code, in the order of `partitions`. The offset is None for a partition without a commit."""
    reads = [GetData(paths.consumer_offset(group_id, *partition)) for partition in partitions]
    results: list[tuple[int | None, int]] = []
    for read, response in zip(reads, await tree.handle(reads), strict=True):
        try:
            results.append((decode_offset(read.path, response.value.data), int(ErrorCode.NONE)))
        except NoNode:
            results.append((None, int(ErrorCode.NONE)))
        except (TreeError, CorruptZNode) as error:
            _log.info("A committed offset cannot be read: %s", error)
            results.append((None, int(ErrorCode.UNKNOWN_SERVER_ERROR)))
    return results
