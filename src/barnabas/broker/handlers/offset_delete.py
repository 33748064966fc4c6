"""OffsetDelete: deletes committed offsets of a group, for topics that it no longer reads.

Version 0.
Behaviour: partitions that do not exist are refused here; the coordinator handles the others. A missing offset is no error.
Authorization
- DELETE on the group, else GROUP_AUTHORIZATION_FAILED for the whole.
- READ on each topic. A denied topic has the error TOPIC_AUTHORIZATION_FAILED whether it exists or not.
Errors
- of the whole: GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP if the protocol of the members does not
  reveal their topics, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS. The response has no topics then.
- of a partition: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC.
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
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.metadata_cache import MetadataCache

PARTS: Final = Parts(("topics", "partitions"), ("topics", "partitions"))


def handle(broker: Broker, request: Request[OffsetDeleteRequest]) -> Reply[OffsetDeleteResponse]:
    message, access = request.message, broker.access
    if not access.allows(request, AclOperation.DELETE, ResourceType.GROUP, message.group_id):
        return Reply.now(request, OffsetDeleteResponse(int(ErrorCode.GROUP_AUTHORIZATION_FAILED)))
    denied: list[OffsetDeleteResponseTopic] = []
    if not access.is_open:
        allowed = access.allowed(request, AclOperation.READ, ResourceType.TOPIC, [topic.name for topic in message.topics])
        denied = [_denied(topic) for topic in message.topics if topic.name not in allowed]
        message.topics = [topic for topic in message.topics if topic.name in allowed]
    message.topics, refused = _split(message.topics, broker.metadata_cache)
    reply: Reply[OffsetDeleteResponse] = Reply(request)

    def done(response: OffsetDeleteResponse) -> None:
        if not response.error_code:
            response.topics = _merged([*denied, *refused, *response.topics])
        reply.complete(response)

    broker.groups.delete_offsets(message, done)
    return reply


def _denied(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return OffsetDeleteResponseTopic(topic.name, [OffsetDeleteResponsePartition(part.partition_index, code) for part in topic.partitions])


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
