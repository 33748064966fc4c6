"""OffsetCommit and OffsetFetch messages, for all versions of the coordinator.

Topics are named by id if the ids of all are given (KIP-848 with KIP-516), so that nothing is committed for another topic with the same
name. Otherwise they are named by name, in a version that supports names: a commit may be for a topic whose id this client does not know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.client.consumer.group_metadata import UNKNOWN_GENERATION, UNKNOWN_MEMBER
from barnabas.client.consumer.membership.membership import Offsets
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.errors import (
    GroupAuthorization,
    KafkaError,
    StaleMemberEpoch,
    TopicAuthorization,
    UnknownMemberId,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
    error_for,
)
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_commit_response import OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

NO_IDS: Final[Mapping[str, Uuid]] = {}
BY_NAME_VERSION_MAX: Final = 9  # for both APIs
GROUPS_VERSION: Final = 8  # OffsetFetch with several groups in one request
MEMBER_VERSION: Final = 9  # OffsetFetch with the member's epoch
STABLE_VERSION: Final = 7  # OffsetFetch with require_stable
INSTANCE_VERSION: Final = 7  # OffsetCommit with the group instance id


@dataclass(frozen=True, slots=True)
class Identity:
    """The member identity of a request. The default is no member, for partitions that no group assigned."""

    generation: int = UNKNOWN_GENERATION
    member_id: str = UNKNOWN_MEMBER
    instance_id: str | None = None


NO_MEMBER: Final = Identity()


def commit_request(
    group_id: str, identity: Identity, offsets: Offsets, version: int, topic_ids: Mapping[str, Uuid] = NO_IDS
) -> OffsetCommitRequest:
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (topic, partition), offset in offsets.items():
        row = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset.offset,
            committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
            committed_metadata=offset.metadata,
        )
        topics.setdefault(topic, OffsetCommitRequestTopic(*_name_and_id(topic, version, topic_ids))).partitions.append(row)
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id if version >= INSTANCE_VERSION else None,
        topics=list(topics.values()),
    )


def commit_errors(response: OffsetCommitResponse, topic_ids: Mapping[str, Uuid] = NO_IDS) -> dict[TopicPartition, KafkaError]:
    names = {topic_id: name for name, topic_id in topic_ids.items()}
    return {
        TopicPartition(names.get(topic.topic_id, topic.name), row.partition_index): error_for(row.error_code)
        for topic in response.topics
        for row in topic.partitions
        if row.error_code
    }


def fetch_request(
    group_id: str, identity: Identity, partitions: Collection[TopicPartition], version: int, topic_ids: Mapping[str, Uuid] = NO_IDS
) -> OffsetFetchRequest:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    stable = version >= STABLE_VERSION
    if version < GROUPS_VERSION:
        old = [OffsetFetchRequestTopic(name=topic, partition_indexes=numbers) for topic, numbers in by_topic.items()]
        return OffsetFetchRequest(group_id=group_id, topics=old, require_stable=stable)
    topics = [OffsetFetchRequestTopics(*_name_and_id(topic, version, topic_ids), numbers) for topic, numbers in by_topic.items()]
    group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
    if version >= MEMBER_VERSION and identity.member_id:
        group.member_id, group.member_epoch = identity.member_id, identity.generation
    return OffsetFetchRequest(groups=[group], require_stable=stable)


def _name_and_id(topic: str, version: int, topic_ids: Mapping[str, Uuid]) -> tuple[str, Uuid]:
    """A topic as the version names it: by name, or by id."""
    return (topic, Uuid.ZERO) if version <= BY_NAME_VERSION_MAX else ("", topic_ids[topic])


def committed_offsets(
    response: OffsetFetchResponse, group_id: str, topic_ids: Mapping[str, Uuid] = NO_IDS
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Raises an error of the group or of one of the partitions."""
    names = {topic_id: name for name, topic_id in topic_ids.items()}
    if response.groups:
        group = response.groups[0]
        _check_group(group.error_code, group_id)
        return _offsets(
            (TopicPartition(names.get(topic.topic_id, topic.name), row.partition_index), row)
            for topic in group.topics
            for row in topic.partitions
        )
    _check_group(response.error_code, group_id)
    return _offsets((TopicPartition(topic.name, row.partition_index), row) for topic in response.topics for row in topic.partitions)


def _check_group(code: int, group_id: str) -> None:
    if not code:
        return
    error = error_for(code)
    if isinstance(error, GroupAuthorization):
        raise GroupAuthorization(group_id=group_id)
    if error.retriable or isinstance(error, (StaleMemberEpoch, UnknownMemberId)):
        raise error
    raise KafkaError(f"Unexpected error in fetch offset response: {error}")


def _offsets(
    rows: Iterable[tuple[TopicPartition, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]],
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
    unauthorized: set[str] = set()
    unstable: list[str] = []
    for partition, row in rows:
        error = error_for(row.error_code) if row.error_code else None
        if error is None:
            offsets[partition] = _offset(row) if row.committed_offset >= 0 else None
        elif isinstance(error, TopicAuthorization):
            unauthorized.add(partition.topic)
        elif isinstance(error, UnstableOffsetCommit):
            unstable.append(str(partition))
        elif isinstance(error, (UnknownTopicOrPartition, UnknownTopicId)):
            raise KafkaError(f"Topic or Partition {partition} does not exist") from error
        else:
            raise KafkaError(f"Unexpected error in fetch offset response for partition {partition}: {error}")
    if unauthorized:
        raise TopicAuthorization(unauthorized_topics=unauthorized)
    if unstable:
        raise UnstableOffsetCommit(f"There are unstable offsets for the requested topic partitions {', '.join(sorted(unstable))}")
    return offsets


def _offset(row: OffsetFetchResponsePartition | OffsetFetchResponsePartitions) -> OffsetAndMetadata:
    epoch = row.committed_leader_epoch
    return OffsetAndMetadata(row.committed_offset, row.metadata or "", epoch if epoch >= 0 else None)
