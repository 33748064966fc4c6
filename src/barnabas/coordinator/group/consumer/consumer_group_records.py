"""Builds the records of a consumer group.

Topics and partitions are written in order, so that the same state always gives the same bytes. `consumer_group_replay` applies the records
to a group.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordinator.group.consumer.consumer_group_member import Assignment, ConsumerGroupMember
from barnabas.coordinator.group.consumer.subscription import ResolvedRegex
from barnabas.coordinator.result import CoordinatorRecord
from barnabas.protocol.coordinator_records.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from barnabas.protocol.coordinator_records.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from barnabas.protocol.coordinator_records.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from barnabas.protocol.coordinator_records.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from barnabas.protocol.coordinator_records.consumer_group_metadata_key import ConsumerGroupMetadataKey
from barnabas.protocol.coordinator_records.consumer_group_metadata_value import ConsumerGroupMetadataValue
from barnabas.protocol.coordinator_records.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from barnabas.protocol.coordinator_records.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from barnabas.protocol.coordinator_records.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from barnabas.protocol.coordinator_records.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from barnabas.protocol.coordinator_records.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from barnabas.protocol.coordinator_records.consumer_group_target_assignment_metadata_key import ConsumerGroupTargetAssignmentMetadataKey
from barnabas.protocol.coordinator_records.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from barnabas.uuid import Uuid

GROUP_EPOCH: Final = 3
PARTITION_METADATA: Final = 4  # written before Kafka 4.1; only its tombstone is written here
MEMBER: Final = 5
TARGET_EPOCH: Final = 6
TARGET_MEMBER: Final = 7
CURRENT_ASSIGNMENT: Final = 8
REGEX: Final = 16

CONSUMER_GROUP_RECORDS: Final = frozenset({GROUP_EPOCH, PARTITION_METADATA, MEMBER, TARGET_EPOCH, TARGET_MEMBER, CURRENT_ASSIGNMENT, REGEX})


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(GROUP_EPOCH, ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(epoch, metadata_hash))


def group_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(GROUP_EPOCH, ConsumerGroupMetadataKey(group_id))


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(PARTITION_METADATA, ConsumerGroupPartitionMetadataKey(group_id))


def member_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )
    return CoordinatorRecord(MEMBER, ConsumerGroupMemberMetadataKey(group_id, member.member_id), value)


def member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(MEMBER, ConsumerGroupMemberMetadataKey(group_id, member_id))


def target_epoch_record(group_id: str, epoch: int) -> CoordinatorRecord:
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id)
    return CoordinatorRecord(TARGET_EPOCH, key, ConsumerGroupTargetAssignmentMetadataValue(epoch))


def target_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(TARGET_EPOCH, ConsumerGroupTargetAssignmentMetadataKey(group_id))


def target_member_record(group_id: str, member_id: str, partitions: Assignment) -> CoordinatorRecord:
    topics = [TopicPartition(topic_id, sorted(partitions[topic_id])) for topic_id in in_order(partitions)]
    return CoordinatorRecord(
        TARGET_MEMBER, ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), ConsumerGroupTargetAssignmentMemberValue(topics)
    )


def target_member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(TARGET_MEMBER, ConsumerGroupTargetAssignmentMemberKey(group_id, member_id))


def current_assignment_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state.value,
        assigned_partitions=_topics(member.assigned_partitions),
        partitions_pending_revocation=_topics(member.partitions_pending_revocation),
    )
    return CoordinatorRecord(CURRENT_ASSIGNMENT, ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def current_assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(CURRENT_ASSIGNMENT, ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id))


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    value = ConsumerGroupRegularExpressionValue(sorted(resolved.topics), resolved.version, resolved.timestamp_ms)
    return CoordinatorRecord(REGEX, ConsumerGroupRegularExpressionKey(group_id, regex), value)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    return CoordinatorRecord(REGEX, ConsumerGroupRegularExpressionKey(group_id, regex))


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The tombstones of all records of a member, in Kafka's order."""
    return [
        current_assignment_tombstone(group_id, member_id),
        target_member_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]


def in_order(partitions: Assignment) -> list[Uuid]:
    return sorted(partitions, key=lambda topic_id: topic_id.value)


def _topics(partitions: Assignment) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id, sorted(partitions[topic_id])) for topic_id in in_order(partitions)]
