"""Computes the target assignment of a group: calls the assignor and records what changed.

Each member moves to the target at its own pace (`current_assignment`). The assignor receives a static member that rejoined under a new id
with the assignment of its predecessor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.coordinator.group.assignors import MemberSpec, PartitionAssignor
from barnabas.coordinator.group.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.group.consumer.consumer_group_member import NO_PARTITIONS, Assignment, ConsumerGroupMember
from barnabas.coordinator.group.consumer.consumer_group_records import target_epoch_record, target_member_record
from barnabas.coordinator.group.consumer.subscription import ResolvedRegex, subscribed_topics
from barnabas.coordinator.group.topics_image import TopicsImage
from barnabas.coordinator.result import CoordinatorRecord
from barnabas.uuid import Uuid


class TargetAssignment(NamedTuple):
    records: list[CoordinatorRecord]
    assignments: Mapping[str, Assignment]


def compute_target_assignment(
    group: ConsumerGroup, epoch: int, updated: ConsumerGroupMember, assignor: PartitionAssignor, image: TopicsImage, *, homogeneous: bool
) -> TargetAssignment:
    """The target for `epoch`, with `updated` in place of the group's version of that member; raises PartitionAssignorError."""
    members = dict(group.members)
    replaced = group.static_members.get(updated.instance_id) if updated.instance_id is not None else None
    if replaced is not None and replaced != updated.member_id:
        members.pop(replaced, None)
    members[updated.member_id] = updated
    topic_ids = _topic_ids(group.resolved_regexes, image)
    specs = {
        member_id: MemberSpec(topic_ids(member), group.target_assignment.get(member_id, NO_PARTITIONS), member.instance_id, member.rack_id)
        for member_id, member in members.items()
    }
    if replaced is not None and replaced != updated.member_id:
        inherited = group.target_assignment.get(replaced, NO_PARTITIONS)
        specs[updated.member_id] = MemberSpec(topic_ids(updated), inherited, updated.instance_id, updated.rack_id)
    assignments = assignor.assign(specs, homogeneous=homogeneous, partition_count=lambda topic_id: _partition_count(topic_id, image))
    records = []
    for member_id in sorted(specs):
        assignment = assignments.get(member_id, NO_PARTITIONS)
        if group.target_assignment.get(member_id) != assignment:
            records.append(target_member_record(group.group_id, member_id, assignment))
    records.append(target_epoch_record(group.group_id, epoch))
    return TargetAssignment(records, assignments)


def _topic_ids(resolved: Mapping[str, ResolvedRegex], image: TopicsImage) -> Callable[[ConsumerGroupMember], frozenset[Uuid]]:
    """The ids of the topics a member is subscribed to. Members with the same subscription share one set."""
    cache: dict[tuple[frozenset[str], str | None], frozenset[Uuid]] = {}

    def topic_ids(member: ConsumerGroupMember) -> frozenset[Uuid]:
        key = (member.subscribed_topic_names, member.subscribed_topic_regex)
        cached = cache.get(key)
        if cached is None:
            cached = cache[key] = subscribed_topic_ids(member, resolved, image)
        return cached

    return topic_ids


def subscribed_topic_ids(member: ConsumerGroupMember, resolved: Mapping[str, ResolvedRegex], image: TopicsImage) -> frozenset[Uuid]:
    """The ids of the member's subscribed topics that exist."""
    return frozenset(topic_id for name in subscribed_topics(member, resolved) if (topic_id := image.topic_id(name)) is not None)


def _partition_count(topic_id: Uuid, image: TopicsImage) -> int | None:
    name = image.topic_name(topic_id)
    return None if name is None else image.partition_count(name)
