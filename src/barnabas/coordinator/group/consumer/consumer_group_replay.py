"""Applies the records of consumer groups to the groups. No other code changes them.

Runs for every record that this broker wrote, right after the append, and for every record of the log when a coordinator is loaded. So it
accepts every order that compaction can produce: it ignores a tombstone for a key never seen, and an assignment may precede its member.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from barnabas.coordinator.group.classic.classic_group import ClassicGroup
from barnabas.coordinator.group.consumer.consumer_group import NO_ASSIGNMENT_EPOCH, ConsumerGroup
from barnabas.coordinator.group.consumer.consumer_group_member import ConsumerGroupMember
from barnabas.coordinator.group.consumer.consumer_group_records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    PARTITION_METADATA,
    REGEX,
    TARGET_EPOCH,
    TARGET_MEMBER,
)
from barnabas.coordinator.group.consumer.subscription import ResolvedRegex
from barnabas.coordinator.group.group import Group
from barnabas.coordinator.result import CoordinatorRecord


class NotAConsumerGroup(Exception):
    """A record of a consumer group names a group of another kind: the log contradicts itself, and loading skips the record."""


def replay_consumer_group(groups: dict[str, Group], record: CoordinatorRecord) -> None:
    """Apply one record of the types in CONSUMER_GROUP_RECORDS."""
    key: Any = record.key
    group = _persisted(groups, key.group_id, create=record.value is not None)
    if group is None:
        return
    if record.type == GROUP_EPOCH and record.value is None:
        del groups[key.group_id]
    else:
        _APPLY[record.type](group, key, record.value)


def _persisted(groups: dict[str, Group], group_id: str, *, create: bool) -> ConsumerGroup | None:
    group = groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if group is None or (isinstance(group, ClassicGroup) and group.is_simple):
        # A simple group holds only offsets and has no record of its own: an earlier OffsetCommit in the log created it.
        if not create:
            return None
        created = groups[group_id] = ConsumerGroup(group_id)
        return created
    raise NotAConsumerGroup(f"Group {group_id} is not a consumer group")


def _group_epoch(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _partition_metadata(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.has_partition_metadata_record = value is not None


def _member(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    member = group.members.get(key.member_id) or ConsumerGroupMember(key.member_id)
    group.update_member(member.with_metadata(value))


def _target_epoch(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch


def _target_member(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.target_assignment.pop(key.member_id, None)
        return
    group.target_assignment[key.member_id] = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def _current_assignment(group: ConsumerGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.update_member((member or ConsumerGroupMember(key.member_id)).with_current_assignment(value))
    elif member is not None:
        group.update_member(member.without_assignment())


def _regex(group: ConsumerGroup, key: Any, value: Any) -> None:
    resolved = None if value is None else ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    group.resolve_regex(key.regular_expression, resolved)


_APPLY: Final[dict[int, Callable[[ConsumerGroup, Any, Any], None]]] = {
    GROUP_EPOCH: _group_epoch,
    PARTITION_METADATA: _partition_metadata,
    MEMBER: _member,
    TARGET_EPOCH: _target_epoch,
    TARGET_MEMBER: _target_member,
    CURRENT_ASSIGNMENT: _current_assignment,
    REGEX: _regex,
}
