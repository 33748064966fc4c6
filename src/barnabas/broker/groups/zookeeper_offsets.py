"""Offsets that clients of Kafka 0.8 keep in the metadata tree, by group, topic and partition: OffsetCommit and OffsetFetch of version 0.

Nothing newer reads them, and no group has a say in them. What the tree refuses is answered with a code, each partition for itself.
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
    """The codes, in the order of the offsets. Of several for one partition only the last is written."""
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
    """Offset and code, in the order of the partitions; no offset for one that was never committed."""
    reads = [GetData(paths.consumer_offset(group_id, *partition)) for partition in partitions]
    found: list[tuple[int | None, int]] = []
    for read, response in zip(reads, await tree.handle(reads), strict=True):
        try:
            found.append((decode_offset(read.path, response.value.data), int(ErrorCode.NONE)))
        except NoNode:
            found.append((None, int(ErrorCode.NONE)))
        except (TreeError, CorruptZNode) as error:
            _log.info("A committed offset cannot be read: %s", error)
            found.append((None, int(ErrorCode.UNKNOWN_SERVER_ERROR)))
    return found
