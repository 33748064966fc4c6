# Compiled by mypyc: src/compiled.toml lists this module.
"""A group of the consumer protocol (KIP-848): its members, its epochs, and the owners of its partitions.

Holds the state of the group's records and what derives from it (counts, owners), and answers queries. `consumer_groups` decides, and only
`consumer_group_replay` changes the group. One piece of state is in no record: when to refresh the topic metadata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from barnabas.coordinator.group.consumer.consumer_group_member import NO_PARTITIONS, Assignment, ConsumerGroupMember, MemberState
from barnabas.coordinator.group.consumer.consumer_group_records import (
    current_assignment_tombstone,
    group_epoch_tombstone,
    member_tombstone,
    partition_metadata_tombstone,
    regex_tombstone,
    target_epoch_tombstone,
    target_member_tombstone,
)
from barnabas.coordinator.group.consumer.current_assignment import NO_EPOCH
from barnabas.coordinator.group.consumer.partition_epochs import PartitionEpochs
from barnabas.coordinator.group.consumer.subscription import NOTHING_RESOLVED, ResolvedRegex, SubscribedTopics, is_homogeneous
from barnabas.coordinator.group.group import CommitPartitionValidator, Group, GroupType, RetentionBase
from barnabas.coordinator.group.group_memory import REGEX_BYTES, REGEX_TOPIC_BYTES
from barnabas.coordinator.result import CoordinatorRecord
from barnabas.errors import IllegalGeneration, NonEmptyGroup, StaleMemberEpoch, UnknownMemberId
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.uuid import Uuid

PROTOCOL_TYPE: Final = "consumer"
MODERN_OFFSET_COMMIT_VERSION: Final = 9  # the first version with a member epoch
NO_ASSIGNMENT_EPOCH: Final = -1


class ConsumerGroup(Group):
    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.group_epoch = 0
        self.assignment_epoch = 0
        self.metadata_hash = 0
        self.members: dict[str, ConsumerGroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.target_assignment: dict[str, Assignment] = {}
        self.subscribed_topics = SubscribedTopics()
        self.subscribed_regexes: dict[str, int] = {}  # expression to number of members that use it
        self.resolved_regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata_record = False
        self.num_classic_members = 0
        self._classic_protocols: Counter[str] = Counter()
        self._server_assignors: Counter[str] = Counter()
        self._partition_epochs = PartitionEpochs()
        self._refresh_deadline_ms = 0
        self._refresh_epoch = 0

    # -- the interface of Group

    @property
    def type(self) -> GroupType:
        return GroupType.CONSUMER

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def num_members(self) -> int:
        return len(self.members)

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation_or_epoch: int, *, transactional: bool, version: int
    ) -> CommitPartitionValidator | None:
        if generation_or_epoch < 0 and not self.members:
            return None  # an admin client, or a consumer that assigns its partitions itself
        if transactional and generation_or_epoch == -1 and not member_id and group_instance_id is None:
            return None  # TxnOffsetCommit need not name a member
        member = self.member(member_id)
        if not transactional and not member.uses_classic_protocol and version < MODERN_OFFSET_COMMIT_VERSION:
            raise UnsupportedVersion("OffsetCommit version 9 or above must be used by members using the modern group protocol")
        _validate_epoch(member, generation_or_epoch)
        return None

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        _validate_epoch(self.member(member_id or ""), member_epoch)

    def validate_offset_delete(self) -> None:
        pass  # partitions of subscribed topics are rejected one by one, whatever the state

    def validate_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics

    def tombstones(self) -> list[CoordinatorRecord]:
        return self.tombstones_of(self.members)

    def tombstones_of(self, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
        """The records that remove the group, if `member_ids` are its members."""
        ids = list(member_ids)
        return [
            *(current_assignment_tombstone(self.group_id, member_id) for member_id in ids),
            *(target_member_tombstone(self.group_id, member_id) for member_id in ids),
            target_epoch_tombstone(self.group_id),
            *(member_tombstone(self.group_id, member_id) for member_id in ids),
            *(regex_tombstone(self.group_id, regex) for regex in self.resolved_regexes),
            partition_metadata_tombstone(self.group_id),
            group_epoch_tombstone(self.group_id),
        ]

    def retention_base(self) -> RetentionBase | None:
        return lambda offset: offset.commit_timestamp

    # -- members

    def member(self, member_id: str) -> ConsumerGroupMember:
        """Raises UnknownMemberId."""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member: ConsumerGroupMember) -> Assignment:
        """The target of a member; for a static one, the target of the member that currently has its instance id."""
        if member.instance_id is None:
            return self.target_assignment.get(member.member_id, NO_PARTITIONS)
        return self.target_assignment.get(self.static_members.get(member.instance_id, ""), NO_PARTITIONS)

    def partition_epoch(self, topic_id: Uuid, partition: int) -> int:
        """The epoch of the member that owns the partition; -1 when it has no owner."""
        return self._partition_epochs.get(topic_id, partition)

    def waits_for_partitions(self, member: ConsumerGroupMember) -> bool:
        """Whether another member still owns a partition of the member's target."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return any(
            partition not in member.assigned_partitions.get(topic_id, frozenset()) and self.partition_epoch(topic_id, partition) != NO_EPOCH
            for topic_id, partitions in self.target_assignment.get(member.member_id, NO_PARTITIONS).items()
            for partition in partitions
        )

    def update_member(self, member: ConsumerGroupMember) -> None:
        self._count(self.members.get(member.member_id), -1)
        self._count(member, 1)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self._count(member, -1)
        if member is not None and member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]

    def _count(self, member: ConsumerGroupMember | None, step: int) -> None:
        """Add a member to all counts over the members, or remove it from them."""
        if member is None:
            return
        self.change_held_bytes(step * member.size)
        change_names = self.subscribed_topics.add_names if step > 0 else self.subscribed_topics.remove_names
        change_epochs = self._partition_epochs.add if step > 0 else self._partition_epochs.remove
        change_names(member.subscribed_topic_names)
        change_epochs(member.assigned_partitions, member.member_epoch)
        change_epochs(member.partitions_pending_revocation, member.member_epoch)
        if member.subscribed_topic_regex:
            change_count(self.subscribed_regexes, member.subscribed_topic_regex, step)
        if member.server_assignor is not None:
            self._server_assignors[member.server_assignor] += step
        if member.classic is not None:
            self.num_classic_members += step
            for protocol in member.classic.supported_protocols:
                self._classic_protocols[protocol.name] += step

    # -- subscriptions

    def resolve_regex(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Set the topics that an expression matches; None removes them."""
        replaced = self.resolved_regexes.pop(regex, None)
        if replaced is not None:
            self.change_held_bytes(-_resolved_size(regex, replaced))
            self.subscribed_topics.remove_matches(replaced.topics)
        if resolved is not None:
            self.change_held_bytes(_resolved_size(regex, resolved))
            self.resolved_regexes[regex] = resolved
            self.subscribed_topics.add_matches(resolved.topics)

    def regexes_with(self, old: ConsumerGroupMember, new: ConsumerGroupMember) -> dict[str, int]:
        """The number of members that use each expression, once `old` has become `new`."""
        counts = dict(self.subscribed_regexes)
        if old.subscribed_topic_regex:
            change_count(counts, old.subscribed_topic_regex, -1)
        if new.subscribed_topic_regex:
            change_count(counts, new.subscribed_topic_regex, 1)
        return counts

    def subscribed_topics_with(self, old: ConsumerGroupMember, new: ConsumerGroupMember) -> SubscribedTopics:
        """The topics of the group, once `old` has become `new`."""
        topics = self.subscribed_topics.copy()
        topics.remove_names(old.subscribed_topic_names)
        topics.add_names(new.subscribed_topic_names)
        regex = old.subscribed_topic_regex
        if regex and regex != new.subscribed_topic_regex and self.subscribed_regexes.get(regex) == 1:
            topics.remove_matches(self.resolved_regexes.get(regex, NOTHING_RESOLVED).topics)
        return topics

    def subscribed_topics_without(self, members: Iterable[ConsumerGroupMember], regexes: Iterable[str]) -> SubscribedTopics:
        topics = self.subscribed_topics.copy()
        for member in members:
            topics.remove_names(member.subscribed_topic_names)
        for regex in regexes:
            topics.remove_matches(self.resolved_regexes.get(regex, NOTHING_RESOLVED).topics)
        return topics

    @property
    def is_homogeneous(self) -> bool:
        return is_homogeneous(self.subscribed_regexes, self.subscribed_topics, len(self.members))

    @property
    def last_regex_refresh(self) -> ResolvedRegex | None:
        """Any resolved expression: all expressions of a group are resolved together."""
        return next(iter(self.resolved_regexes.values()), None)

    # -- refresh of the topic metadata

    def set_metadata_refresh(self, deadline_ms: int, epoch: int) -> None:
        self._refresh_deadline_ms = deadline_ms
        self._refresh_epoch = epoch

    def request_metadata_refresh(self) -> None:
        self.set_metadata_refresh(0, 0)

    def has_metadata_expired(self, monotonic_ms: int) -> bool:
        """Also True when the epoch of the last refresh was never written."""
        return monotonic_ms >= self._refresh_deadline_ms or self.group_epoch < self._refresh_epoch

    # -- members that use the classic protocol

    def supports_classic_protocols(self, protocol_type: str, protocols: Collection[str]) -> bool:
        if protocol_type != PROTOCOL_TYPE:
            return False
        if not self.members:
            return bool(protocols)
        return any(self._classic_protocols[name] == self.num_classic_members for name in protocols)

    def all_use_classic_protocol_without(self, leaving: Mapping[str, ConsumerGroupMember]) -> bool:
        staying = self.num_classic_members - sum(1 for member in leaving.values() if member.uses_classic_protocol)
        return staying == len(self.members) - len(leaving)

    def preferred_assignor(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> str | None:
        """The assignor that most members prefer, once `old` has become `new`; None when no member names one."""
        counts = Counter(self._server_assignors)
        if old is not None and old.server_assignor is not None:
            counts[old.server_assignor] -= 1
        if new is not None and new.server_assignor is not None:
            counts[new.server_assignor] += 1
        preferred = [name for name, count in counts.items() if count > 0]
        return max(preferred, key=lambda name: (counts[name], name), default=None)


def _resolved_size(regex: str, resolved: ResolvedRegex) -> int:
    return REGEX_BYTES + len(regex) + REGEX_TOPIC_BYTES * len(resolved.topics)


def change_count(counts: dict[str, int], name: str, step: int) -> None:
    count = counts.get(name, 0) + step
    if count > 0:
        counts[name] = count
    else:
        counts.pop(name, None)


def _validate_epoch(member: ConsumerGroupMember, received: int) -> None:
    if received == member.member_epoch:
        return
    if member.uses_classic_protocol:
        raise IllegalGeneration(f"The received generation id {received} does not match the expected member epoch {member.member_epoch}.")
    raise StaleMemberEpoch(f"The received member epoch {received} does not match the expected member epoch {member.member_epoch}.")
