"""The consumer protocol (KIP-848): ConsumerGroupHeartbeat and ConsumerGroupDescribe.

A member sends nothing but heartbeats: their fields make it join, subscribe, report its partitions, revoke and take over partitions, and
leave. The shard calls this class; every result is a `CoordinatorResult` whose records change the groups when they are replayed. Nothing
here waits: a member that has to wait for a partition receives it in the response to a later heartbeat.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from barnabas.coordinator.faults import truncated
from barnabas.coordinator.group.assignors import PartitionAssignor
from barnabas.coordinator.group.assignors.range import RangeAssignor
from barnabas.coordinator.group.assignors.uniform import UniformAssignor
from barnabas.coordinator.group.classic.classic_group import ClassicGroup, RespondJoin, RespondSync
from barnabas.coordinator.group.classic.classic_groups import Caller, ClassicGroups, normalized_members
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.group.consumer.consumer_group_classic_members import ConsumerGroupClassicMembers
from barnabas.coordinator.group.consumer.consumer_group_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupMember,
    MemberState,
)
from barnabas.coordinator.group.consumer.consumer_group_records import CONSUMER_GROUP_RECORDS, current_assignment_record, in_order
from barnabas.coordinator.group.consumer.consumer_group_replay import replay_consumer_group
from barnabas.coordinator.group.consumer.consumer_group_steps import ConsumerGroupSteps, Update, check_not_fenced, known_static_member
from barnabas.coordinator.group.consumer.consumer_group_timers import ConsumerGroupTimers
from barnabas.coordinator.group.consumer.describe_consumer_group import describe_consumer_group
from barnabas.coordinator.group.consumer.heartbeat_epochs import check_member_epoch, owned_of
from barnabas.coordinator.group.consumer.metadata_hash import MetadataHashes
from barnabas.coordinator.group.group import Group
from barnabas.coordinator.group.migration import upgrade_records, upgraded, validate_upgrade
from barnabas.coordinator.group.regex_queue import RegexQueue
from barnabas.coordinator.group.regex_refresh import RegexChange, RegexRefresh
from barnabas.coordinator.group.topics_image import TopicsImage
from barnabas.coordinator.metrics import CoordinatorMetrics
from barnabas.coordinator.result import Clock, CoordinatorRecord, CoordinatorResult, CoordinatorTimer
from barnabas.errors import GroupIdNotFound, GroupMaxSizeReached, KafkaError, UnreleasedInstanceId
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe_response import DescribedGroup
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.consumer_group_heartbeat_response import Assignment as AssignmentResponse
from barnabas.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse, TopicPartitions
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.join_group_request import JoinGroupRequest
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse

ASSIGNORS: Final[dict[str, PartitionAssignor]] = {assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())}

log = logging.getLogger(__name__)


class GroupConfigs(Protocol):
    """The configs of GROUP resources; None where a group does not override a setting."""

    def consumer_session_timeout_ms(self, group_id: str) -> int | None: ...

    def consumer_heartbeat_interval_ms(self, group_id: str) -> int | None: ...


class ConsumerGroups:
    """All consumer groups of a shard. `groups` is the shard's table and holds groups of every kind."""

    def __init__(
        self,
        groups: dict[str, Group],
        config: GroupCoordinatorConfig,
        clock: Clock,
        timer: CoordinatorTimer,
        metrics: CoordinatorMetrics,
        new_id: Callable[[], str],
        image: TopicsImage,
        classic_groups: ClassicGroups,
        regex_queue: RegexQueue,
        group_configs: GroupConfigs | None = None,
    ) -> None:
        self._groups = groups
        self._config = config
        self._clock = clock
        self._new_id = new_id
        self._image = image
        self._classic_groups = classic_groups
        self._group_configs = group_configs
        self._hashes = MetadataHashes(image)
        self._timers = ConsumerGroupTimers(timer, self._fence)
        self._regexes = RegexRefresh(groups, config, clock, timer, regex_queue, self._hashes, metrics)
        self._steps = ConsumerGroupSteps(
            groups,
            config,
            clock,
            image,
            self._hashes,
            self._timers,
            self._regexes,
            classic_groups,
            configured_assignors(config),
            metrics,
            classic_groups.memory,
        )
        self._classic_members = ConsumerGroupClassicMembers(self._steps, new_id)

    def find(self, group_id: str) -> ConsumerGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def group(self, group_id: str) -> ConsumerGroup:
        """Raises GroupIdNotFound."""
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a consumer group.")
        return group

    # -- ConsumerGroupHeartbeat

    def consumer_heartbeat(
        self, caller: Caller, request: ConsumerGroupHeartbeatRequest
    ) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
        """The request must have passed `validate_heartbeat`. Raises the KafkaError that the member receives."""
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request)
        records: list[CoordinatorRecord] = []
        group, on_appended = self._group_to_join(request.group_id, records, create=request.member_epoch == JOIN_EPOCH)
        if group.num_members >= self._config.group_consumer_max_size and not group.has_member(request.member_id):
            raise GroupMaxSizeReached(
                f"The consumer group has reached its maximum capacity of {self._config.group_consumer_max_size} members."
            )
        member = self._member_of(group, request, records)
        update = self._update(caller, group, member, request, records)
        epoch, homogeneous = self._steps.update_group(group, update, records)
        target_epoch, target = self._steps.update_target(group, epoch, update, records, homogeneous=homogeneous)
        reconciled = self._steps.reconcile(group, update, target_epoch, target, owned_of(request), records)
        self._timers.schedule_session(group.group_id, reconciled.member_id, self._session_timeout_ms(group.group_id))
        response = ConsumerGroupHeartbeatResponse(
            member_id=reconciled.member_id,
            member_epoch=reconciled.member_epoch,
            heartbeat_interval_ms=self._heartbeat_interval_ms(group.group_id),
            assignment=_assignment(reconciled) if _carries_assignment(request, member, reconciled) else None,
        )
        return CoordinatorResult(records, response, on_appended)

    def _group_to_join(
        self, group_id: str, records: list[CoordinatorRecord], *, create: bool
    ) -> tuple[ConsumerGroup, Callable[[Exception | None], None] | None]:
        """The group, or the one that `records` will create or convert from a classic group; and the callback for when they are
        committed."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group, None
        if not create:
            raise GroupIdNotFound(
                f"Consumer group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
            )
        if group is None:
            return ConsumerGroup(group_id), None
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a consumer group.")
        if group.is_empty:
            records += group.tombstones()
            return ConsumerGroup(group_id), self._after_upgrade(group, None)
        validate_upgrade(group, self._config)
        consumer_group = upgraded(group, self._image, self._hashes)
        records += group.tombstones()
        records += upgrade_records(consumer_group)
        return consumer_group, self._after_upgrade(group, consumer_group)

    def _after_upgrade(self, classic: ClassicGroup, group: ConsumerGroup | None) -> Callable[[Exception | None], None]:
        members = {} if group is None else dict(group.members)

        def on_appended(error: Exception | None) -> None:
            if error is not None:
                return
            log.info("Converted the classic group %s to a consumer group", classic.group_id)
            self._classic_groups.cancel_timers(classic)
            # Members that wait for the classic rebalance rejoin in the new one.
            code = int(ErrorCode.REBALANCE_IN_PROGRESS)
            for member in list(classic.members.values()):
                classic.complete_join(member, JoinGroupResponse(member_id=member.member_id, protocol_name=None, error_code=code))
                classic.complete_sync(member, SyncGroupResponse(error_code=code))
            for member_id, upgraded_member in members.items():
                self._timers.schedule_session(classic.group_id, member_id, upgraded_member.classic_session_timeout_ms)

        return on_appended

    def _member_of(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, records: list[CoordinatorRecord]
    ) -> ConsumerGroupMember:
        member_id = request.member_id or self._new_id()
        joins = request.member_epoch == JOIN_EPOCH
        instance_id = request.instance_id
        if instance_id is None:
            member = group.members.get(member_id) or (ConsumerGroupMember(member_id) if joins else group.member(member_id))
            check_member_epoch(member, request)
            return member
        if not joins:
            member = known_static_member(group, instance_id)
            check_not_fenced(member, member_id, instance_id)
            check_member_epoch(member, request)
            return member
        existing = group.static_member(instance_id)
        if existing is None:
            return group.members.get(member_id) or ConsumerGroupMember(member_id)
        if not existing.uses_classic_protocol and existing.member_epoch != STATIC_LEAVE_EPOCH:
            raise UnreleasedInstanceId(
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is owned by "
                f"{existing.member_id} member."
            )
        return self._steps.replace_static_member(group, existing, member_id, records)

    def _update(
        self,
        caller: Caller,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        request: ConsumerGroupHeartbeatRequest,
        records: list[CoordinatorRecord],
    ) -> Update:
        """The member after the heartbeat. A field that the heartbeat omits keeps its value."""
        names = request.subscribed_topic_names
        regex = request.subscribed_topic_regex
        updated = replace(
            member,
            instance_id=member.instance_id if request.instance_id is None else request.instance_id,
            rack_id=member.rack_id if request.rack_id is None else request.rack_id,
            rebalance_timeout_ms=member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
            server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
            subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
            subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
            client_id=caller.client_id,
            client_host=caller.client_host,
            classic=None,
        )
        self._steps.check_room(group, updated)
        names_changed = self._steps.record_member(group.group_id, member, updated, records)
        regex_change = self._regexes.update(group, member, updated, records, caller.describable)
        # An expression that is not resolved yet bumps the epoch once it is resolved, not before.
        bumps_epoch = group.group_epoch == 0 or names_changed or regex_change is RegexChange.RESOLVED
        return Update(member, updated, names_changed or regex_change is not RegexChange.NONE, bumps_epoch)

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
        group = self.group(request.group_id)
        response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        if request.instance_id is None:
            return self._steps.fence_members(group, [group.member(request.member_id)], response)
        member = known_static_member(group, request.instance_id)
        check_not_fenced(member, request.member_id, request.instance_id)
        if request.member_epoch == LEAVE_EPOCH:
            return self._steps.fence_members(group, [member], response)
        # The static member will rejoin: it keeps its partitions until its session expires.
        away = replace(member, member_epoch=STATIC_LEAVE_EPOCH, partitions_pending_revocation={})
        return CoordinatorResult([current_assignment_record(group.group_id, away)], response)

    def _fence(self, group_id: str, member_id: str, epoch: int | None = None, /) -> CoordinatorResult[None] | None:
        group = self.find(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or (epoch is not None and member.member_epoch != epoch):
            return None
        log.info("Member %s fenced from the group %s because a timeout passed", member_id, group_id)
        return self._steps.fence_members(group, [member], None)

    def _session_timeout_ms(self, group_id: str) -> int:
        own = None if self._group_configs is None else self._group_configs.consumer_session_timeout_ms(group_id)
        return self._config.group_consumer_session_timeout_ms if own is None else own

    def _heartbeat_interval_ms(self, group_id: str) -> int:
        own = None if self._group_configs is None else self._group_configs.consumer_heartbeat_interval_ms(group_id)
        return self._config.group_consumer_heartbeat_interval_ms if own is None else own

    # -- ConsumerGroupDescribe

    def describe(self, group_ids: Iterable[str]) -> list[DescribedGroup]:
        default_assignor = next(iter(self._steps.assignors))
        described = []
        for group_id in group_ids:
            try:
                described.append(describe_consumer_group(self.group(group_id), default_assignor, self._image))
            except KafkaError as error:
                described.append(DescribedGroup(group_id=group_id, error_code=error.code, error_message=truncated(str(error))))
        return described

    # -- the classic protocol, while a group migrates

    def join(self, group: Group, caller: Caller, request: JoinGroupRequest, respond: RespondJoin, /) -> CoordinatorResult[None]:
        return self._classic_members.join(_consumer_group(group), caller, request, respond)

    def sync(self, group: Group, request: SyncGroupRequest, respond: RespondSync, /) -> CoordinatorResult[None]:
        return self._classic_members.sync(_consumer_group(group), request, respond)

    def heartbeat(self, group: Group, request: HeartbeatRequest, /) -> CoordinatorResult[HeartbeatResponse]:
        return self._classic_members.heartbeat(_consumer_group(group), request)

    def leave(self, group: Group, request: LeaveGroupRequest, version: int, /) -> CoordinatorResult[LeaveGroupResponse]:
        return self._classic_members.leave(_consumer_group(group), normalized_members(request, version))

    # -- the log and the cluster

    def replay(self, record: CoordinatorRecord, /) -> None:
        """Apply a record of a consumer group; records of other kinds (share, streams) are ignored."""
        if record.type in CONSUMER_GROUP_RECORDS:
            replay_consumer_group(self._groups, record)

    def on_loaded(self, group: Group, /) -> None:
        """Every member gets a full session, because it could not send heartbeats while the partition was loading."""
        for member_id, member in _consumer_group(group).members.items():
            self._timers.schedule_session(group.group_id, member_id, self._session_timeout_ms(group.group_id))
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._timers.schedule_rebalance(group.group_id, member)

    def on_unloaded(self, group: Group, /) -> None:
        """No request waits in a consumer group; only its timers have to be cancelled."""
        for member_id in _consumer_group(group).members:
            self._timers.cancel_all(group.group_id, member_id)
        self._regexes.cancel(group.group_id)

    def on_topics_changed(self, changed: Iterable[str], *, created: bool) -> None:
        """Topics were created (`created`), deleted, extended or moved. Subscribed groups refresh their metadata at the next heartbeat."""
        topics = list(changed)
        if created:
            self._regexes.on_topics_created()
        for topic in topics:
            self._hashes.forget(topic)
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup) and any(group.is_subscribed_to(topic) for topic in topics):
                group.request_metadata_refresh()


def configured_assignors(config: GroupCoordinatorConfig) -> Mapping[str, PartitionAssignor]:
    """The assignors of group.consumer.assignors, in its order; the first one is the default."""
    return {name: ASSIGNORS[name] for name in config.group_consumer_assignors if name in ASSIGNORS} or ASSIGNORS


def _consumer_group(group: Group) -> ConsumerGroup:
    assert isinstance(group, ConsumerGroup)
    return group


def _assignment(member: ConsumerGroupMember) -> AssignmentResponse:
    partitions = member.assigned_partitions
    return AssignmentResponse([TopicPartitions(topic_id, sorted(partitions[topic_id])) for topic_id in in_order(partitions)])


def _carries_assignment(request: ConsumerGroupHeartbeatRequest, before: ConsumerGroupMember, after: ConsumerGroupMember) -> bool:
    """The response carries the assignment when the member joins, sends a full request (as after an error), or has a new assignment."""
    is_full = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
    return request.member_epoch == JOIN_EPOCH or is_full or before.assigned_partitions != after.assigned_partitions
