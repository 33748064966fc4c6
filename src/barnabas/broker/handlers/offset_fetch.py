# Compiled by mypyc: src/compiled.toml lists this module.
"""OffsetFetch: the offsets that groups have committed, for a consumer to go on from or a tool to show.

Versions 0 to 10.
Behaviour
- a partition without a committed offset has -1 and no error, and so has one that does not exist: the topics of a group may be gone.
- without topics all of a group's partitions are told. Each group has its own answer, in the order asked.
- require_stable (7): a partition that an open transaction has committed is UNSTABLE_OFFSET_COMMIT.
Version notes
- 0: reads the metadata tree and asks no coordinator; what is not there is UNKNOWN_TOPIC_OR_PARTITION.
- 1: an error of the group stands with every partition; 2 to 7: once; 8: with its group, of which there may be many.
- 2: all partitions. 5: leader epochs. 9: members of the consumer protocol give their epoch. 10: topics by id.
Errors
- of a group: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH (9), NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
- of a partition: UNSTABLE_OFFSET_COMMIT, UNKNOWN_TOPIC_ID (10), UNKNOWN_TOPIC_OR_PARTITION (0).
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups import zookeeper_offsets
from barnabas.broker.handlers.parts import OffsetFetchParts
from barnabas.broker.requests.reply import Answer
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


def handle(broker: Broker, request: Request[OffsetFetchRequest]) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse] | None:
    if request.version == 0:
        return _fetch_from_tree(broker, request.message)
    groups = request.message.groups if request.version >= _MANY_GROUPS else [_only_group(request.message)]
    answer: Answer[OffsetFetchResponse] = Answer(request)
    collected = _Groups(broker.metadata_cache, request.version, groups, answer)
    for index in range(len(groups)):
        collected.fetch(broker, index, request.message.require_stable)
    collected.close()
    return answer.now()


def _only_group(message: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if message.topics is not None:
        topics = [OffsetFetchRequestTopics(topic.name, partition_indexes=topic.partition_indexes) for topic in message.topics]
    return OffsetFetchRequestGroup(message.group_id, topics=topics)


class _Groups:
    """What was found of each group, answered when the last has come."""

    def __init__(
        self, cache: MetadataCache, version: int, asked: list[OffsetFetchRequestGroup], answer: Answer[OffsetFetchResponse]
    ) -> None:
        self._cache = cache
        self._version = version
        self._asked = asked
        self._answer = answer
        self._found = [OffsetFetchResponseGroup() for _ in asked]
        self._missing = len(asked) + 1  # one until all have been asked

    def fetch(self, broker: Broker, index: int, require_stable: bool) -> None:
        group = self._asked[index]
        unknown: list[OffsetFetchResponseTopics] = []
        if self._version >= _TOPICS_BY_ID and group.topics is not None:
            group.topics, unknown = _named(self._cache, group.topics)

        def done(found: OffsetFetchResponseGroup) -> None:
            if not found.error_code:
                found.topics.extend(unknown)
                if self._version >= _TOPICS_BY_ID:
                    found.topics = _with_ids(self._cache, found.topics)
            self._found[index] = found
            self.close()

        broker.groups.fetch_offsets(group, require_stable, done)

    def close(self) -> None:
        self._missing -= 1
        if self._missing:
            return
        if self._version >= _MANY_GROUPS:
            self._answer.give(OffsetFetchResponse(groups=self._found))
        else:
            self._answer.give(self._old_response())

    def _old_response(self) -> OffsetFetchResponse:
        (asked,), (found,) = self._asked, self._found
        if found.error_code and self._version < _ERROR_OF_THE_GROUP:
            topics = [_refused(topic, found.error_code) for topic in asked.topics or ()]
        else:
            topics = found.topics
        old = [OffsetFetchResponseTopic(topic.name, [_old_partition(each) for each in topic.partitions]) for topic in topics]
        return OffsetFetchResponse(topics=old, error_code=found.error_code if self._version >= _ERROR_OF_THE_GROUP else 0)


def _old_partition(found: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        found.partition_index, found.committed_offset, found.committed_leader_epoch, found.metadata, found.error_code
    )


def _refused(topic: OffsetFetchRequestTopics, code: int) -> OffsetFetchResponseTopics:
    partitions = [OffsetFetchResponsePartitions(index, _NO_OFFSET, error_code=code) for index in topic.partition_indexes]
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions)


def _named(
    cache: MetadataCache, topics: list[OffsetFetchRequestTopics]
) -> tuple[list[OffsetFetchRequestTopics], list[OffsetFetchResponseTopics]]:
    """The topics with the names of their ids, and the answers for ids that nobody knows."""
    for topic in topics:
        topic.name = cache.topic_name(topic.topic_id) or ""
    unknown = [_refused(topic, int(ErrorCode.UNKNOWN_TOPIC_ID)) for topic in topics if not topic.name]
    return [topic for topic in topics if topic.name], unknown


def _with_ids(cache: MetadataCache, topics: list[OffsetFetchResponseTopics]) -> list[OffsetFetchResponseTopics]:
    """Offsets that were committed by name have no id; without one there is no way to tell them, so those of deleted topics are left out."""
    for topic in topics:
        if topic.name and topic.topic_id == Uuid.ZERO:
            topic.topic_id = cache.topic_id(topic.name) or Uuid.ZERO
    return [topic for topic in topics if not topic.name or topic.topic_id != Uuid.ZERO]


async def _fetch_from_tree(broker: Broker, message: OffsetFetchRequest) -> OffsetFetchResponse:
    asked = [TopicPartition(topic.name, index) for topic in message.topics or () for index in topic.partition_indexes]
    existing = [partition for partition in asked if broker.metadata_cache.contains(*partition)]
    found = dict(zip(existing, await zookeeper_offsets.fetch(broker.tree, message.group_id, existing), strict=True))
    topics: dict[str, OffsetFetchResponseTopic] = {}
    for partition in dict.fromkeys(asked):
        offset, code = found.get(partition, (None, int(ErrorCode.NONE)))
        if offset is None:
            offset, code = _NO_OFFSET, code or int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topic = topics.setdefault(partition.topic, OffsetFetchResponseTopic(partition.topic))
        topic.partitions.append(OffsetFetchResponsePartition(partition.partition, offset, error_code=code))
    return OffsetFetchResponse(topics=list(topics.values()))
