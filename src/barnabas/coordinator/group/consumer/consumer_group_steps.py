"""The steps of a heartbeat or a join to a consumer group: member, subscription, target, reconciliation; and the removal of members.

Members of the consumer protocol (`consumer_groups`) and of the classic one (`consumer_group_classic_members`) share them. Each step appends
its records to the list it is given and returns the input of the next step. It only reads the group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from barnabas.coordinator.group.assignors import PartitionAssignor, PartitionAssignorError
from barnabas.coordinator.group.classic.classic_group import ClassicGroup
from barnabas.coordinator.group.classic.classic_groups import ClassicGroups
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.consumer.consumer_group import ConsumerGroup, change_count
from barnabas.coordinator.group.consumer.consumer_group_member import Assignment, ConsumerGroupMember, MemberState
from barnabas.coordinator.group.consumer.consumer_group_records import (
    current_assignment_record,
    group_epoch_record,
    member_record,
    member_tombstones,
    partition_metadata_tombstone,
    regex_tombstone,
    target_member_record,
)
from barnabas.coordinator.group.consumer.consumer_group_timers import ConsumerGroupTimers
from barnabas.coordinator.group.consumer.current_assignment import Owned, Reconciliation
from barnabas.coordinator.group.consumer.metadata_hash import MetadataHashes
from barnabas.coordinator.group.consumer.subscription import is_homogeneous
from barnabas.coordinator.group.consumer.target_assignment import compute_target_assignment, subscribed_topic_ids
from barnabas.coordinator.group.group import Group
from barnabas.coordinator.group.group_memory import GroupMemory
from barnabas.coordinator.group.migration import allows_downgrade, downgraded
from barnabas.coordinator.group.regex_refresh import METADATA_REFRESH_INTERVAL_MS, RegexRefresh
from barnabas.coordinator.group.topics_image import TopicsImage
from barnabas.coordinator.metrics import CONSUMER_GROUP_REBALANCES, CoordinatorMetrics
from barnabas.coordinator.result import Clock, CoordinatorRecord, CoordinatorResult
from barnabas.errors import FencedInstanceId, KafkaError, UnknownMemberId

R = TypeVar("R")

log = logging.getLogger(__name__)


class AssignmentFailed(KafkaError):
    """UNKNOWN_SERVER_ERROR: the assignor failed."""

    code = -1


class Update(NamedTuple):
    """A member before and after its request, and what that changes for the group."""

    old: ConsumerGroupMember
    new: ConsumerGroupMember
    subscription_changed: bool
    bumps_epoch: bool


@dataclass(slots=True)
class ConsumerGroupSteps:
    groups: dict[str, Group]
    config: GroupCoordinatorConfig
    clock: Clock
    image: TopicsImage
    hashes: MetadataHashes
    timers: ConsumerGroupTimers
    regexes: RegexRefresh
    classic_groups: ClassicGroups
    assignors: Mapping[str, PartitionAssignor]
    metrics: CoordinatorMetrics
    memory: GroupMemory

    def check_room(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        """Raises if the group may not grow by the difference between the member's new and old size."""
        existing = group.members.get(member.member_id) or group.static_member(member.instance_id)
        more = member.size - (0 if existing is None else existing.size)
        if more > 0:
            is_new = group.group_id not in self.groups
            self.memory.check_growth(group.held_bytes, more + (group.held_bytes if is_new else 0))

    def record_member(self, group_id: str, old: ConsumerGroupMember, new: ConsumerGroupMember, records: list[CoordinatorRecord]) -> bool:
        """Record a member that changed. Returns whether its subscribed topic names changed."""
        if new == old:
            return False
        records.append(member_record(group_id, new))
        return new.subscribed_topic_names != old.subscribed_topic_names

    def replace_static_member(
        self, group: ConsumerGroup, existing: ConsumerGroupMember, member_id: str, records: list[CoordinatorRecord]
    ) -> ConsumerGroupMember:
        """The static member under its new id, with the state of the old one; at epoch 0, so that it is reconciled from there."""
        member = replace(existing, member_id=member_id, member_epoch=0, previous_member_epoch=0)
        records += member_tombstones(group.group_id, existing.member_id)
        records.append(member_record(group.group_id, member))
        records.append(target_member_record(group.group_id, member_id, group.target_assignment.get(existing.member_id, {})))
        records.append(current_assignment_record(group.group_id, member))
        return member

    def update_group(self, group: ConsumerGroup, update: Update, records: list[CoordinatorRecord]) -> tuple[int, bool]:
        """The group epoch after the update, and whether all members then subscribe to the same topics."""
        monotonic_ms = self.clock.monotonic_ms()
        if not update.bumps_epoch and not group.has_metadata_expired(monotonic_ms):
            return group.group_epoch, group.is_homogeneous
        topics = group.subscribed_topics_with(update.old, update.new)
        is_member = group.has_member(update.new.member_id) or group.static_member(update.new.instance_id) is not None
        homogeneous = is_homogeneous(group.regexes_with(update.old, update.new), topics, group.num_members + (not is_member))
        metadata_hash = self.hashes.group_hash(topics)
        epoch = group.group_epoch
        if update.bumps_epoch or metadata_hash != group.metadata_hash:
            epoch += 1
            records.append(group_epoch_record(group.group_id, epoch, metadata_hash))
            self.metrics.record(CONSUMER_GROUP_REBALANCES, 1)
        group.set_metadata_refresh(monotonic_ms + METADATA_REFRESH_INTERVAL_MS, epoch)
        if group.has_partition_metadata_record:
            records.append(partition_metadata_tombstone(group.group_id))
        return epoch, homogeneous

    def update_target(
        self, group: ConsumerGroup, epoch: int, update: Update, records: list[CoordinatorRecord], *, homogeneous: bool
    ) -> tuple[int, Assignment]:
        """The target's epoch and the member's part of it; computes a new target when the group epoch has advanced."""
        if epoch <= group.assignment_epoch:
            return group.assignment_epoch, group.target_of(update.new)
        name = group.preferred_assignor(update.old, update.new)
        assignor = self.assignors.get(name) if name is not None else None
        if assignor is None:
            assignor = next(iter(self.assignors.values()))
        try:
            target = compute_target_assignment(group, epoch, update.new, assignor, self.image, homogeneous=homogeneous)
        except PartitionAssignorError as error:
            raise AssignmentFailed(f"Failed to compute a new target assignment for epoch {epoch}: {error}") from error
        records += target.records
        return epoch, target.assignments.get(update.new.member_id, {})

    def reconcile(
        self,
        group: ConsumerGroup,
        update: Update,
        target_epoch: int,
        target: Assignment,
        owned: Owned | None,
        records: list[CoordinatorRecord],
    ) -> ConsumerGroupMember:
        member = update.new
        if not update.subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        reconciled = Reconciliation(
            target_epoch,
            target,
            subscribed_topic_ids(member, group.resolved_regexes, self.image),
            group.partition_epoch,
            owned,
            update.subscription_changed,
        ).next(member)
        if reconciled != member:
            records.append(current_assignment_record(group.group_id, reconciled))
            if not reconciled.uses_classic_protocol:
                if reconciled.state is MemberState.UNREVOKED_PARTITIONS:
                    self.timers.schedule_rebalance(group.group_id, reconciled)
                else:
                    self.timers.cancel_rebalance(group.group_id, reconciled.member_id)
        return reconciled

    def fence_members(self, group: ConsumerGroup, members: Iterable[ConsumerGroupMember], response: R | None) -> CoordinatorResult[R]:
        """Remove these members: writes a new group epoch or, when only classic members remain, converts the group to a classic one."""
        leaving = {member.member_id: member for member in members}
        if not leaving:
            return CoordinatorResult(response=response)
        if allows_downgrade(group, self.config, leaving, group.num_members - len(leaving)):
            records, on_appended = self.downgrade(group, leaving, None, rebalance=True)
            return CoordinatorResult(records, response, on_appended)
        records = [record for member_id in leaving for record in member_tombstones(group.group_id, member_id)]
        regexes = _abandoned_regexes(group, leaving.values())
        records += [regex_tombstone(group.group_id, regex) for regex in regexes]
        metadata_hash = self.hashes.group_hash(group.subscribed_topics_without(leaving.values(), regexes))
        records.append(group_epoch_record(group.group_id, group.group_epoch + 1, metadata_hash))

        def cancel_timers(error: Exception | None) -> None:
            """A member whose records could not be written is still in the group: its session must end some time."""
            written = self.groups.get(group.group_id)
            for member_id in leaving:
                if not isinstance(written, ConsumerGroup) or not written.has_member(member_id):
                    self.timers.cancel_all(group.group_id, member_id)

        return CoordinatorResult(records, response, cancel_timers)

    def downgrade(
        self, group: ConsumerGroup, leaving: Mapping[str, ConsumerGroupMember], joining: ConsumerGroupMember | None, *, rebalance: bool
    ) -> tuple[list[CoordinatorRecord], Callable[[Exception | None], None]]:
        """The records that make the group a classic one, and the callback for when they are committed."""
        classic = downgraded(group, leaving, joining, self.image, self.clock.now_ms())
        replaced = group.static_member(joining.instance_id) if joining is not None else None
        member_ids = [
            joining.member_id if joining is not None and replaced is not None and member_id == replaced.member_id else member_id
            for member_id in group.members
        ]
        records = [*group.tombstones_of(member_ids), classic.record(classic.assignments())]
        former = list(group.members)

        def on_appended(error: Exception | None) -> None:
            written = self.groups.get(group.group_id)
            if error is not None or not isinstance(written, ClassicGroup):
                return
            log.info("Converted the consumer group %s to a classic group", group.group_id)
            for member_id in former:
                self.timers.cancel_all(group.group_id, member_id)
            self._start_classic(written, classic, rebalance=rebalance)

        return records, on_appended

    def _start_classic(self, written: ClassicGroup, intended: ClassicGroup, *, rebalance: bool) -> None:
        """Restore what the record lacks: sessions, the protocols of a member besides the chosen one, the rebalance."""
        for member_id, member in written.members.items():
            if member_id in intended.members:
                intended_member = intended.members[member_id]
                written.update_member(
                    member,
                    intended_member.protocols,
                    intended_member.rebalance_timeout_ms,
                    intended_member.session_timeout_ms,
                    member.respond_join,
                )
            self.classic_groups.keep_session(written, member_id)
        if rebalance and written.can_rebalance:
            self.classic_groups.prepare_rebalance(written, "downgrade from a consumer group")


def check_not_fenced(member: ConsumerGroupMember, member_id: str, instance_id: str) -> None:
    if member.member_id != member_id:
        raise FencedInstanceId(f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.")


def known_static_member(group: ConsumerGroup, instance_id: str) -> ConsumerGroupMember:
    member = group.static_member(instance_id)
    if member is None:
        raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
    return member


def _abandoned_regexes(group: ConsumerGroup, leaving: Iterable[ConsumerGroupMember]) -> list[str]:
    """The expressions that no member uses once `leaving` have left."""
    counts: dict[str, int] = {}
    for member in leaving:
        if member.subscribed_topic_regex:
            change_count(counts, member.subscribed_topic_regex, 1)
    return [regex for regex, count in counts.items() if group.subscribed_regexes.get(regex, 0) == count]
