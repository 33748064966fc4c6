"""OffsetDelete: deletes committed offsets of a group, for topics that it no longer reads.

Version 0.
Behaviour: partitions that do not exist are refused here; the coordinator handles the others. A missing offset is no error.
Errors
- of the whole: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP if the protocol of the members does not reveal their topics,
  NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS. The response has no topics then.
- of a partition: UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from barnabas.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.metadata_cache import MetadataCache

PARTS: Final = Parts(("topics", "partitions"), ("topics", "partitions"))


def handle(broker: Broker, request: Request[OffsetDeleteRequest]) -> Reply[OffsetDeleteResponse]:
    message = request.message
    message.topics, refused = _split(message.topics, broker.metadata_cache)
    reply: Reply[OffsetDeleteResponse] = Reply(request)

    def done(response: OffsetDeleteResponse) -> None:
        if not response.error_code:
            response.topics = _merged([*refused, *response.topics])
        reply.complete(response)

    broker.groups.delete_offsets(message, done)
    return reply


def _split(
    topics: list[OffsetDeleteRequestTopic], cache: MetadataCache
) -> tuple[list[OffsetDeleteRequestTopic], list[OffsetDeleteResponseTopic]]:
    """The topics with their existing partitions, and the results of the other partitions."""
    existing, refused = [], []
    code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for topic in topics:
        missing = [partition.partition_index for partition in topic.partitions if not cache.contains(topic.name, partition.partition_index)]
        if missing or not cache.contains(topic.name):
            refused.append(OffsetDeleteResponseTopic(topic.name, [OffsetDeleteResponsePartition(index, code) for index in missing]))
            topic.partitions = [partition for partition in topic.partitions if cache.contains(topic.name, partition.partition_index)]
        if topic.partitions:
            existing.append(topic)
    return existing, refused


def _merged(topics: list[OffsetDeleteResponseTopic]) -> list[OffsetDeleteResponseTopic]:
    """Each topic once."""
    merged: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in topics:
        first = merged.setdefault(topic.name, topic)
        if first is not topic:
            first.partitions.extend(topic.partitions)
    return list(merged.values())
