# Compiled by mypyc: src/compiled.toml lists this module.
"""OffsetFetch: the committed offsets of groups.

Versions 0 to 10.
Behaviour
- a partition without a committed offset has offset -1 and no error. So has one that does not exist: topics of a group may be deleted.
- without topics, the response has all partitions of a group. Each group has its own result, in the order of the request.
- require_stable (7): a partition with offsets of an open transaction gets UNSTABLE_OFFSET_COMMIT.
Authorization
- DESCRIBE on each group, else the group has the error GROUP_AUTHORIZATION_FAILED.
- DESCRIBE on each topic. A denied topic comes last, with the error TOPIC_AUTHORIZATION_FAILED whether it exists or not; it is left out if
  all partitions of a group are requested.
Version notes
- 0: reads the metadata store, without a coordinator; a missing offset is UNKNOWN_TOPIC_OR_PARTITION.
- 1: an error of the group is repeated for every partition; 2 to 7: one error for the response; 8: many groups, each with its error.
- 2: all partitions. 5: leader epochs. 9: members of the consumer protocol send their epoch. 10: topics by id.
Errors
- of a group: GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH (9), NOT_COORDINATOR,
  COORDINATOR_LOAD_IN_PROGRESS.
- of a partition: TOPIC_AUTHORIZATION_FAILED, UNSTABLE_OFFSET_COMMIT, UNKNOWN_TOPIC_ID (10), UNKNOWN_TOPIC_OR_PARTITION (0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.groups import zookeeper_offsets
from barnabas.broker.handlers.parts import OffsetFetchParts
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.metadata_cache import MetadataCache

_ERROR_OF_THE_GROUP: Final = 2
_MANY_GROUPS: Final = 8
_TOPICS_BY_ID: Final = 10
_NO_OFFSET: Final = -1


PARTS: Final = OffsetFetchParts()


def handle(broker: Broker, request: Request[OffsetFetchRequest]) -> Reply[OffsetFetchResponse]:
    if request.version == 0:
        return Reply.awaiting(request, _fetch_from_tree(broker, request))
    groups = request.message.groups if request.version >= _MANY_GROUPS else [_only_group(request.message)]
    reply: Reply[OffsetFetchResponse] = Reply(request)
    collected = _Groups(broker, request, groups, reply)
    for index in range(len(groups)):
        collected.fetch(index)
    collected.close()
    return reply


def _only_group(message: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if message.topics is not None:
        topics = [OffsetFetchRequestTopics(topic.name, partition_indexes=topic.partition_indexes) for topic in message.topics]
    return OffsetFetchRequestGroup(message.group_id, topics=topics)


class _Groups:
    """The results of the groups. The last one completes the reply."""

    def __init__(
        self,
        broker: Broker,
        request: Request[OffsetFetchRequest],
        requested: list[OffsetFetchRequestGroup],
        reply: Reply[OffsetFetchResponse],
    ) -> None:
        self._broker = broker
        self._cache = broker.metadata_cache
        self._request = request
        self._version = request.version
        self._requested = requested
        self._reply = reply
        self._results = [OffsetFetchResponseGroup() for _ in requested]
        self._missing = len(requested) + 1  # one for the call of `close` by the handler, after the last `fetch`

    def fetch(self, index: int) -> None:
        group, access = self._requested[index], self._broker.access
        if not access.allows(self._request, AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id):
            self._results[index] = OffsetFetchResponseGroup(group.group_id, error_code=int(ErrorCode.GROUP_AUTHORIZATION_FAILED))
            self.close()
            return
        is_all = group.topics is None
        refused: list[OffsetFetchResponseTopics] = []
        if self._version >= _TOPICS_BY_ID and group.topics is not None:
            group.topics, refused = _named(self._cache, group.topics)
        if not access.is_open and group.topics is not None:
            group.topics, denied = self._authorized(group.topics)
            refused += denied

        def done(result: OffsetFetchResponseGroup) -> None:
            if not result.error_code:
                if is_all and not access.is_open:
                    result.topics = self._describable(result.topics)
                result.topics.extend(refused)
                if self._version >= _TOPICS_BY_ID:
                    result.topics = _with_ids(self._cache, result.topics)
            self._results[index] = result
            self.close()

        self._broker.groups.fetch_offsets(group, self._request.message.require_stable, done)

    def _authorized(self, topics: list[OffsetFetchRequestTopics]) -> tuple[list[OffsetFetchRequestTopics], list[OffsetFetchResponseTopics]]:
        """The topics that the client may describe, and the results of the others."""
        allowed = self._allowed([topic.name for topic in topics])
        denied = [_refused(topic, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)) for topic in topics if topic.name not in allowed]
        return [topic for topic in topics if topic.name in allowed], denied

    def _describable(self, topics: list[OffsetFetchResponseTopics]) -> list[OffsetFetchResponseTopics]:
        allowed = self._allowed([topic.name for topic in topics])
        return [topic for topic in topics if topic.name in allowed]

    def _allowed(self, names: list[str]) -> set[str]:
        return self._broker.access.allowed(self._request, AclOperation.DESCRIBE, ResourceType.TOPIC, names)

    def close(self) -> None:
        self._missing -= 1
        if self._missing:
            return
        if self._version >= _MANY_GROUPS:
            self._reply.complete(OffsetFetchResponse(groups=self._results))
        else:
            self._reply.complete(self._old_response())

    def _old_response(self) -> OffsetFetchResponse:
        (requested,), (result,) = self._requested, self._results
        if result.error_code and self._version < _ERROR_OF_THE_GROUP:
            topics = [_refused(topic, result.error_code) for topic in requested.topics or ()]
        else:
            topics = result.topics
        old = [OffsetFetchResponseTopic(topic.name, [_old_partition(partition) for partition in topic.partitions]) for topic in topics]
        return OffsetFetchResponse(topics=old, error_code=result.error_code if self._version >= _ERROR_OF_THE_GROUP else 0)


def _old_partition(result: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        result.partition_index, result.committed_offset, result.committed_leader_epoch, result.metadata, result.error_code
    )


def _refused(topic: OffsetFetchRequestTopics, code: int) -> OffsetFetchResponseTopics:
    partitions = [OffsetFetchResponsePartitions(index, _NO_OFFSET, error_code=code) for index in topic.partition_indexes]
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions)


def _named(
    cache: MetadataCache, topics: list[OffsetFetchRequestTopics]
) -> tuple[list[OffsetFetchRequestTopics], list[OffsetFetchResponseTopics]]:
    """The topics with the names of their ids, and the results of unknown ids."""
    for topic in topics:
        topic.name = cache.topic_name(topic.topic_id) or ""
    unknown = [_refused(topic, int(ErrorCode.UNKNOWN_TOPIC_ID)) for topic in topics if not topic.name]
    return [topic for topic in topics if topic.name], unknown


def _with_ids(cache: MetadataCache, topics: list[OffsetFetchResponseTopics]) -> list[OffsetFetchResponseTopics]:
    """The topics with ids. Offsets that were committed by name have none; those of deleted topics, whose id is unknown, are left out."""
    for topic in topics:
        if topic.name and topic.topic_id == Uuid.ZERO:
            topic.topic_id = cache.topic_id(topic.name) or Uuid.ZERO
    return [topic for topic in topics if not topic.name or topic.topic_id != Uuid.ZERO]


async def _fetch_from_tree(broker: Broker, request: Request[OffsetFetchRequest]) -> OffsetFetchResponse:
    message, access = request.message, broker.access
    requested = [TopicPartition(topic.name, index) for topic in message.topics or () for index in topic.partition_indexes]
    denied = ErrorCode.NONE
    if not access.allows(request, AclOperation.DESCRIBE, ResourceType.GROUP, message.group_id):
        denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
    names = [] if denied is not ErrorCode.NONE else [topic.name for topic in message.topics or ()]
    allowed = access.allowed(request, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    existing = [partition for partition in requested if partition.topic in allowed and broker.metadata_cache.contains(*partition)]
    offsets = dict(zip(existing, await zookeeper_offsets.fetch(broker.tree, message.group_id, existing), strict=True))
    topics: dict[str, OffsetFetchResponseTopic] = {}
    for partition in dict.fromkeys(requested):
        offset, code = offsets.get(partition, (None, int(denied)))
        if partition.topic not in allowed:
            code = code or int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if offset is None:
            offset, code = _NO_OFFSET, code or int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topic = topics.setdefault(partition.topic, OffsetFetchResponseTopic(partition.topic))
        topic.partitions.append(OffsetFetchResponsePartition(partition.partition, offset, error_code=code))
    return OffsetFetchResponse(topics=list(topics.values()))
