"""Moves one member towards its target assignment, one step per heartbeat.

A partition has one owner at any time: a member first revokes the partitions that its target no longer holds, and only then moves to the
target's epoch and takes the free ones; it waits for partitions that other members still own. Takes a member and returns the next one;
nothing else is changed.

    STABLE ──new target──▶ UNREVOKED_PARTITIONS ──all revoked──▶ UNRELEASED_PARTITIONS ──all released──▶ STABLE
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from barnabas.coordinator.group.consumer.consumer_group_member import NO_PARTITIONS, Assignment, ConsumerGroupMember, MemberState
from barnabas.errors import FencedMemberEpoch
from barnabas.uuid import Uuid

Owned = Mapping[Uuid, Collection[int]]
NO_EPOCH = -1
_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The target of a member, and the inputs for its next step."""

    target_epoch: int
    target: Assignment
    subscribed_topic_ids: Collection[Uuid]
    partition_epoch: Callable[[Uuid, int], int]  # the epoch of the partition's owner; NO_EPOCH without one
    owned: Owned | None = None  # the partitions that the member reports; None when it reports none
    subscription_changed: bool = False

    def next(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        """The member after this heartbeat; the same object when nothing changes. Raises FencedMemberEpoch."""
        if member.state is MemberState.STABLE:
            if member.member_epoch != self.target_epoch:
                return self._reconcile(member, member.member_epoch)
            return self._leave_unsubscribed(member) if self.subscription_changed else member
        if member.state is MemberState.UNREVOKED_PARTITIONS and self._owns_any(member.partitions_pending_revocation):
            return self._leave_unsubscribed(member) if self.subscription_changed else member
        if member.state is MemberState.UNKNOWN:
            if self.owned is None or self.owned:
                raise FencedMemberEpoch(
                    "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
                )
            return self._reconcile(member, self.target_epoch)
        return self._reconcile(member, member.member_epoch)

    def _owns_any(self, partitions: Assignment) -> bool:
        """Whether the member still owns one of these. A member that does not report its partitions may own them all."""
        if self.owned is None:
            return True
        return any(not partitions.get(topic_id, _NONE).isdisjoint(owned) for topic_id, owned in self.owned.items())

    def _leave_unsubscribed(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        """The target is unchanged, but the member unsubscribed from some of its topics: revoke their partitions at once."""
        unsubscribed = [topic_id for topic_id in member.assigned_partitions if topic_id not in self.subscribed_topic_ids]
        if not unsubscribed:
            return member
        pending = dict(member.partitions_pending_revocation)
        for topic_id in unsubscribed:
            pending[topic_id] = pending.get(topic_id, _NONE) | member.assigned_partitions[topic_id]
        assigned = {topic_id: held for topic_id, held in member.assigned_partitions.items() if topic_id not in unsubscribed}
        if self._owns_any(pending):
            return replace(
                member, state=MemberState.UNREVOKED_PARTITIONS, assigned_partitions=assigned, partitions_pending_revocation=pending
            )
        return replace(member, assigned_partitions=assigned)

    def _reconcile(self, member: ConsumerGroupMember, epoch: int) -> ConsumerGroupMember:
        assigned: dict[Uuid, frozenset[int]] = {}
        to_revoke: dict[Uuid, frozenset[int]] = {}
        to_assign: dict[Uuid, frozenset[int]] = {}
        waits = False
        for topic_id in self.target.keys() | member.assigned_partitions.keys():
            held = member.assigned_partitions.get(topic_id, _NONE)
            target = self.target.get(topic_id, _NONE) if topic_id in self.subscribed_topic_ids else _NONE
            missing = target - held
            free = frozenset(partition for partition in missing if self._is_free(member, topic_id, partition))
            waits = waits or len(free) < len(missing)
            _put(assigned, topic_id, held & target)
            _put(to_revoke, topic_id, held - target)
            _put(to_assign, topic_id, free)
        if to_revoke and self._owns_any(to_revoke):
            return replace(
                member,
                state=MemberState.UNREVOKED_PARTITIONS,
                member_epoch=epoch,
                previous_member_epoch=member.member_epoch,
                assigned_partitions=assigned,
                partitions_pending_revocation=to_revoke,
            )
        for topic_id, partitions in to_assign.items():
            assigned[topic_id] = assigned.get(topic_id, _NONE) | partitions
        return replace(
            member,
            state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
            member_epoch=self.target_epoch,
            previous_member_epoch=member.member_epoch,
            assigned_partitions=assigned,
            partitions_pending_revocation=NO_PARTITIONS,
        )

    def _is_free(self, member: ConsumerGroupMember, topic_id: Uuid, partition: int) -> bool:
        """Whether the partition has no owner, or is one that this member was about to revoke."""
        if self.partition_epoch(topic_id, partition) == NO_EPOCH:
            return True
        return partition in member.partitions_pending_revocation.get(topic_id, _NONE)


def _put(partitions: dict[Uuid, frozenset[int]], topic_id: Uuid, numbers: frozenset[int]) -> None:
    if numbers:
        partitions[topic_id] = numbers
