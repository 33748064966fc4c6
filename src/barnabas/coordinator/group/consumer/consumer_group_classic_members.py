"""Members of a consumer group that still use the classic protocol, during a migration from one protocol to the other.

Their JoinGroup works like a heartbeat and waits for no other member. Its response carries the member's epoch as the generation, SyncGroup
carries the assignment computed by the broker, and Heartbeat fails with REBALANCE_IN_PROGRESS when the member has to rejoin. Such members
never lead the group and never compute an assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from barnabas.coordinator.faults import client_error_code
from barnabas.coordinator.group.classic.classic_group import RespondJoin, RespondSync
from barnabas.coordinator.group.classic.classic_groups import REQUIRES_KNOWN_MEMBER_ID, Caller, protocols_of
from barnabas.coordinator.group.classic.consumer_protocol import read_subscription, version_of, write_assignment
from barnabas.coordinator.group.consumer.consumer_group import PROTOCOL_TYPE, ConsumerGroup
from barnabas.coordinator.group.consumer.consumer_group_member import ConsumerGroupMember, MemberState
from barnabas.coordinator.group.consumer.consumer_group_steps import ConsumerGroupSteps, Update, check_not_fenced, known_static_member
from barnabas.coordinator.group.consumer.current_assignment import Owned
from barnabas.coordinator.group.group import NO_MEMBER_ID
from barnabas.coordinator.group.migration import allows_downgrade, classic_metadata
from barnabas.coordinator.group.regex_refresh import RegexChange
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.errors import (
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.protocol.errors import ErrorCode, MalformedMessage
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.join_group_request import JoinGroupRequest
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leave_group_request import MemberIdentity
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse

NO_OLD_MEMBERS: dict[str, ConsumerGroupMember] = {}


class ConsumerGroupClassicMembers:
    def __init__(self, steps: ConsumerGroupSteps, new_id: Callable[[], str]) -> None:
        self._steps = steps
        self._new_id = new_id

    # -- JoinGroup

    def join(self, group: ConsumerGroup, caller: Caller, request: JoinGroupRequest, respond: RespondJoin) -> CoordinatorResult[None]:
        """A JoinGroup to a consumer group that has members. Raises KafkaError; the response then carries the member's own id."""
        is_new = request.member_id == NO_MEMBER_ID
        member_id = self._new_id() if is_new else request.member_id
        self._check_room_and_protocol(group, member_id, request)
        if is_new and request.group_instance_id is None and caller.version >= REQUIRES_KNOWN_MEMBER_ID:
            respond(JoinGroupResponse(member_id=member_id, error_code=int(ErrorCode.MEMBER_ID_REQUIRED)))
            return CoordinatorResult()
        subscription = _subscription(request)
        records: list[CoordinatorRecord] = []
        member = self._member_of(group, member_id, request.group_instance_id, records, is_new=is_new)
        existing = group.static_member(request.group_instance_id)
        downgrades = existing is not None and self._allows_downgrade(group, existing)
        update = self._update(caller, group, member, request, subscription, records)
        epoch, homogeneous = self._steps.update_group(group, update, records)
        owned = self._owned(subscription)
        if downgrades:
            return self._downgrade(group, update, owned, records, respond)
        target_epoch, target = self._steps.update_target(group, epoch, update, records, homogeneous=homogeneous)
        joined = self._steps.reconcile(group, update, target_epoch, target, owned, records)
        response = _join_response(joined)

        def on_appended(error: Exception | None) -> None:
            if error is None:
                timers = self._steps.timers
                timers.cancel_join(group.group_id, joined.member_id)
                timers.schedule_session(group.group_id, joined.member_id, request.session_timeout_ms)
                timers.schedule_sync(group.group_id, joined.member_id, joined.rebalance_timeout_ms)
                respond(response)
            else:
                respond(_failed_join(member_id, error))

        return CoordinatorResult(records, on_appended=on_appended)

    def _check_room_and_protocol(self, group: ConsumerGroup, member_id: str, request: JoinGroupRequest) -> None:
        size_max = self._steps.config.group_consumer_max_size
        if group.num_members >= size_max and not group.has_member(member_id):
            raise GroupMaxSizeReached(f"The consumer group has reached its maximum capacity of {size_max} members.")
        if not group.supports_classic_protocols(request.protocol_type, [protocol.name for protocol in request.protocols]):
            raise InconsistentGroupProtocol(f"Member {member_id}'s protocols are not supported.")

    def _member_of(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, records: list[CoordinatorRecord], *, is_new: bool
    ) -> ConsumerGroupMember:
        if instance_id is None:
            return group.members.get(member_id) or ConsumerGroupMember(member_id)
        if not is_new:
            member = known_static_member(group, instance_id)
            check_not_fenced(member, member_id, instance_id)
            return member
        existing = group.static_member(instance_id)
        if existing is None:
            return ConsumerGroupMember(member_id)
        return self._steps.replace_static_member(group, existing, member_id, records)

    def _update(
        self,
        caller: Caller,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        request: JoinGroupRequest,
        subscription: ConsumerProtocolSubscription,
        records: list[CoordinatorRecord],
    ) -> Update:
        updated = replace(
            member,
            instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            rebalance_timeout_ms=member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
            subscribed_topic_names=frozenset(subscription.topics),
            subscribed_topic_regex="",  # the classic protocol has no expressions
            client_id=caller.client_id,
            client_host=caller.client_host,
            classic=classic_metadata(request.session_timeout_ms, protocols_of(request)),
        )
        self._steps.check_room(group, updated)
        names_changed = self._steps.record_member(group.group_id, member, updated, records)
        regex_changed = self._steps.regexes.update(group, member, updated, records, caller.describable) is not RegexChange.NONE
        return Update(member, updated, names_changed or regex_changed, names_changed or regex_changed)

    def _owned(self, subscription: ConsumerProtocolSubscription) -> Owned:
        return {
            topic_id: topic.partitions
            for topic in subscription.owned_partitions
            if (topic_id := self._steps.image.topic_id(topic.topic)) is not None
        }

    def _allows_downgrade(self, group: ConsumerGroup, existing: ConsumerGroupMember) -> bool:
        """Whether a static member rejoins with the classic protocol and was the last one with the consumer protocol."""
        if existing.uses_classic_protocol:
            return False
        return allows_downgrade(group, self._steps.config, {existing.member_id: existing}, group.num_members)

    def _downgrade(
        self, group: ConsumerGroup, update: Update, owned: Owned, records: list[CoordinatorRecord], respond: RespondJoin
    ) -> CoordinatorResult[None]:
        joined = update.new
        if not update.bumps_epoch:
            joined = self._steps.reconcile(group, update, group.assignment_epoch, group.target_of(joined), owned, records)
        more, on_downgraded = self._steps.downgrade(group, NO_OLD_MEMBERS, joined, rebalance=update.bumps_epoch)
        response = _join_response(joined)

        def on_appended(error: Exception | None) -> None:
            on_downgraded(error)
            respond(response if error is None else _failed_join(joined.member_id, error))

        return CoordinatorResult([*records, *more], on_appended=on_appended)

    # -- SyncGroup, Heartbeat, LeaveGroup

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, respond: RespondSync) -> CoordinatorResult[None]:
        """Raises KafkaError."""
        member = self._classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        _check_protocol(member, request.protocol_type, request.protocol_name)
        if group.group_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            # A member with partitions to revoke does that first; it has already joined this rebalance.
            self._steps.timers.schedule_join(group.group_id, member)
            raise RebalanceInProgress(
                f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} should rejoin to catch up."
            )
        assert member.classic is not None
        version = version_of(member.classic.supported_protocols[0].metadata)
        assignment = write_assignment(member.assigned_partitions, self._steps.image, version)
        self._steps.timers.cancel_sync(group.group_id, member.member_id)
        self._steps.timers.schedule_session(group.group_id, member.member_id, member.classic_session_timeout_ms)
        respond(SyncGroupResponse(protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment))
        return CoordinatorResult()

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        """Raises KafkaError."""
        member = self._classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        self._steps.timers.schedule_session(group.group_id, member.member_id, member.classic_session_timeout_ms)
        code = ErrorCode.NONE
        if (
            member.member_epoch < group.group_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_partitions(member))
        ):
            code = ErrorCode.REBALANCE_IN_PROGRESS
            self._steps.timers.schedule_join(group.group_id, member)
        return CoordinatorResult(response=HeartbeatResponse(error_code=int(code)))

    def leave(self, group: ConsumerGroup, members: Iterable[MemberIdentity]) -> CoordinatorResult[LeaveGroupResponse]:
        responses = []
        leaving: dict[str, ConsumerGroupMember] = {}
        for identity in members:
            code = 0
            try:
                member = self._leaving_member(group, identity)
                leaving[member.member_id] = member
            except KafkaError as error:
                code = error.code
            responses.append(MemberResponse(identity.member_id, identity.group_instance_id, code))
        return self._steps.fence_members(group, leaving.values(), LeaveGroupResponse(members=responses))

    def _leaving_member(self, group: ConsumerGroup, identity: MemberIdentity) -> ConsumerGroupMember:
        if identity.group_instance_id is None:
            return group.member(identity.member_id)
        member = known_static_member(group, identity.group_instance_id)
        if identity.member_id != NO_MEMBER_ID:  # an administrator sends only the instance id
            check_not_fenced(member, identity.member_id, identity.group_instance_id)
        return member

    def _classic_member(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerGroupMember:
        if instance_id is None:
            member = group.member(member_id)
        else:
            static_member = group.static_member(instance_id)
            if static_member is None:
                raise UnknownMemberId(f"Member with instance id {instance_id} is not a member of group {group.group_id}.")
            check_not_fenced(static_member, member_id, instance_id)
            member = static_member
        if not member.uses_classic_protocol:
            raise UnknownMemberId(f"Member {member.member_id} does not use the classic protocol.")
        return member


def _join_response(member: ConsumerGroupMember) -> JoinGroupResponse:
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.member_epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=member.classic_protocol_name,
    )


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    """The subscription of the member's preferred protocol. As in Kafka, a malformed one is UNKNOWN_SERVER_ERROR."""
    try:
        return read_subscription(request.protocols[0].metadata)
    except MalformedMessage as error:
        raise KafkaError("Malformed embedded consumer protocol in subscription deserialization.") from error


def _failed_join(member_id: str, error: Exception) -> JoinGroupResponse:
    return JoinGroupResponse(member_id=member_id, error_code=client_error_code(error))


def _check_generation(member: ConsumerGroupMember, generation_id: int) -> None:
    if member.member_epoch != generation_id:
        raise IllegalGeneration(
            f"The request generation id {generation_id} is not equal to the member epoch {member.member_epoch} of member "
            f"{member.member_id}."
        )


def _check_protocol(member: ConsumerGroupMember, protocol_type: str | None, protocol_name: str | None) -> None:
    if protocol_type is not None and protocol_type != PROTOCOL_TYPE:
        raise InconsistentGroupProtocol(
            f"The protocol type {protocol_type} from member {member.member_id} request is not equal to the group protocol type "
            f"{PROTOCOL_TYPE}."
        )
    if protocol_name is not None and protocol_name != member.classic_protocol_name:
        raise InconsistentGroupProtocol(
            f"The protocol name {protocol_name} from member {member.member_id} request is not equal to the protocol name "
            f"{member.classic_protocol_name} returned in the join response."
        )
