# Compiled by mypyc: src/compiled.toml lists this module.
"""OffsetCommit: commits offsets of a group through its coordinator.

Versions 0 to 10.
Behaviour
- partitions that do not exist are refused here. The coordinator commits the others, and responds when the offsets are replicated.
- the coordinator decides whether the member may commit. The decision holds for all partitions.
Authorization
- READ on the group, else every partition has the error GROUP_AUTHORIZATION_FAILED.
- READ on each topic. A denied topic has the error TOPIC_AUTHORIZATION_FAILED whether it exists or not.
Version notes
- 0: writes to the metadata store, without a coordinator. 1: generation, member, and (only in this version) a timestamp of the client.
- 2 to 4: a retention time of the client. 6: leader epochs. 7: static members. 9: the consumer protocol, whose members send their epoch.
- 10: topics by id.
Errors, of a partition
- UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE, and the coordinator's: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID,
  ILLEGAL_GENERATION, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (9), NOT_COORDINATOR,
  COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, INVALID_COMMIT_OFFSET_SIZE (the offsets do not fit into one batch of
  __consumer_offsets), GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups import zookeeper_offsets
from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.metadata_cache import MetadataCache

_TOPICS_BY_ID: Final = 10

PARTS: Final = Parts(("topics", "partitions"), ("topics", "partitions"))


def handle(broker: Broker, request: Request[OffsetCommitRequest]) -> Reply[OffsetCommitResponse]:
    message = request.message
    reply: Reply[OffsetCommitResponse] = Reply(request)
    allowed: set[str] | None = None  # the topics that the client may read; None if there is no authorizer
    if not broker.access.is_open:
        if not broker.access.allows(request, AclOperation.READ, ResourceType.GROUP, message.group_id):
            return Reply.now(request, _refusal_of_all(request, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        allowed = broker.access.allowed(request, AclOperation.READ, ResourceType.TOPIC, _names(broker, request))
    elif 0 < request.version < _TOPICS_BY_ID and _all_exist(message.topics, broker.metadata_cache):
        broker.groups.commit_offsets(request.version, message, reply.complete)
        return reply
    result = _CommitResult(by_id=request.version >= _TOPICS_BY_ID)
    message.topics = _existing(message.topics, broker.metadata_cache, result, allowed)
    if not message.topics:
        return Reply.now(request, result.response())
    if request.version == 0:
        return Reply.awaiting(request, _commit_to_tree(broker, message, result))

    def done(response: OffsetCommitResponse) -> None:
        reply.complete(result.merged(response))

    broker.groups.commit_offsets(request.version, message, done)
    return reply


def _refusal_of_all(request: Request[OffsetCommitRequest], code: ErrorCode) -> OffsetCommitResponse:
    result = _CommitResult(by_id=request.version >= _TOPICS_BY_ID)
    for topic in request.message.topics:
        result.refuse(topic, topic.partitions, code)
    return result.response()


def _names(broker: Broker, request: Request[OffsetCommitRequest]) -> list[str]:
    """The names of the topics, without those of unknown ids."""
    topics = request.message.topics
    if request.version < _TOPICS_BY_ID:
        return [topic.name for topic in topics]
    names = [broker.metadata_cache.topic_name(topic.topic_id) for topic in topics]
    return [name for name in names if name is not None]


class _CommitResult:
    """The response as it grows: each topic once, topics with an error of this handler first."""

    def __init__(self, *, by_id: bool) -> None:
        self.by_id = by_id
        self._topics: dict[str | Uuid, OffsetCommitResponseTopic] = {}

    def add(self, name: str, topic_id: Uuid, partitions: Iterable[OffsetCommitResponsePartition]) -> None:
        key = topic_id if self.by_id else name
        topic = self._topics.get(key)
        if topic is None:
            topic = self._topics[key] = OffsetCommitResponseTopic(name, topic_id)
        topic.partitions.extend(partitions)

    def refuse(self, topic: OffsetCommitRequestTopic, partitions: list[OffsetCommitRequestPartition], code: ErrorCode) -> None:
        refused = [OffsetCommitResponsePartition(partition.partition_index, int(code)) for partition in partitions]
        self.add(topic.name, topic.topic_id, refused)

    def merged(self, response: OffsetCommitResponse) -> OffsetCommitResponse:
        if not self._topics:
            return response
        for topic in response.topics:
            self.add(topic.name, topic.topic_id, topic.partitions)
        return self.response()

    def response(self) -> OffsetCommitResponse:
        return OffsetCommitResponse(topics=list(self._topics.values()))


def _all_exist(topics: list[OffsetCommitRequestTopic], cache: MetadataCache) -> bool:
    """Whether all partitions exist, as they nearly always do. Then the response of the coordinator is the response."""
    for topic in topics:
        if not topic.partitions:
            return False
        for partition in topic.partitions:
            if not cache.contains(topic.name, partition.partition_index):
                return False
    return bool(topics)


def _existing(
    topics: list[OffsetCommitRequestTopic], cache: MetadataCache, result: _CommitResult, allowed: set[str] | None
) -> list[OffsetCommitRequestTopic]:
    """The topics with their existing partitions. The other partitions, and topics that are not allowed, are refused in the result."""
    existing = []
    for topic in topics:
        if result.by_id:
            topic.name = cache.topic_name(topic.topic_id) or ""
        if allowed is not None and topic.name not in allowed and (topic.name or not result.by_id):
            result.refuse(topic, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            continue
        if not cache.contains(topic.name):
            by_id = result.by_id and not topic.name
            result.refuse(topic, topic.partitions, ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        missing = [partition for partition in topic.partitions if not cache.contains(topic.name, partition.partition_index)]
        if missing:
            result.refuse(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            topic.partitions = [partition for partition in topic.partitions if cache.contains(topic.name, partition.partition_index)]
        if topic.partitions:
            existing.append(topic)
    return existing


async def _commit_to_tree(broker: Broker, message: OffsetCommitRequest, result: _CommitResult) -> OffsetCommitResponse:
    metadata_max = broker.config.current.number("offset.metadata.max.bytes")
    offsets = []
    for topic in message.topics:
        for partition in topic.partitions:
            if len((partition.committed_metadata or "").encode("utf-16-le", "surrogatepass")) > 2 * metadata_max:  # Java's length
                result.refuse(topic, [partition], ErrorCode.OFFSET_METADATA_TOO_LARGE)
            else:
                offsets.append((TopicPartition(topic.name, partition.partition_index), partition.committed_offset))
    codes = await zookeeper_offsets.commit(broker.tree, message.group_id, offsets)
    for ((name, index), _), code in zip(offsets, codes, strict=True):
        result.add(name, Uuid.ZERO, [OffsetCommitResponsePartition(index, code)])
    return result.response()
