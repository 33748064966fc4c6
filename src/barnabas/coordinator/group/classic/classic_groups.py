# Compiled by mypyc: src/compiled.toml lists this module.
"""The classic protocol: when a member may join, when a rebalance starts and ends, which members are removed.

The shard passes JoinGroup, SyncGroup, Heartbeat and LeaveGroup to this class, and the timers of members and rebalances fire here. A group
in a rebalance is changed directly, because no record describes that state. When a generation ends, its record is written first, and
`on_appended` announces or reverts the generation. Nothing here blocks: a request that waits leaves its `respond` with the member.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from barnabas.coordinator.faults import client_error_code, error_code
from barnabas.coordinator.group.classic.classic_group import (
    COMPLETING,
    DEAD,
    EMPTY,
    PREPARING,
    STABLE,
    ClassicGroup,
    ClassicGroupMember,
    Protocols,
    RespondJoin,
    RespondSync,
    protocols_size,
)
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.group import NO_MEMBER_ID, Group
from barnabas.coordinator.group.group_memory import GROUP_BYTES, MEMBER_BYTES, PENDING_MEMBER_BYTES, GroupMemory
from barnabas.coordinator.metrics import COMPLETED_REBALANCES, CoordinatorMetrics
from barnabas.coordinator.result import Clock, CoordinatorRecord, CoordinatorResult, CoordinatorTimer
from barnabas.errors import CoordinatorNotAvailable, FencedInstanceId, IllegalGeneration, KafkaError, RecordTooLarge, UnknownMemberId
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.join_group_request import JoinGroupRequest
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse

REQUIRES_KNOWN_MEMBER_ID: Final = 4  # from this version of JoinGroup on, a member joins again with the id it received
SKIPS_ASSIGNMENT: Final = 9  # from this version on, the response can make a static leader keep the assignment
CLIENT_ID_SHOWN_MAX: Final = 8000  # characters of the client or instance id in a member id, which must fit in a protocol string

log = logging.getLogger(__name__)


class Caller(NamedTuple):
    """The sender of a request: the client id of its header, its address in Java's notation, the version of the request, and a function
    that returns those of the topics which it may describe, None if all."""

    client_id: str
    client_host: str
    version: int
    describable: Callable[[Iterable[str]], set[str]] | None = None


class ClassicGroups:
    """All classic groups of a shard. `groups` is the shard's table and holds groups of every kind."""

    def __init__(
        self,
        groups: dict[str, Group],
        config: GroupCoordinatorConfig,
        clock: Clock,
        timer: CoordinatorTimer,
        metrics: CoordinatorMetrics,
        new_id: Callable[[], str],
        memory: GroupMemory,
    ) -> None:
        self._groups = groups
        self._config = config
        self._clock = clock
        self._timer = timer
        self._metrics = metrics
        self._new_id = new_id
        self.memory = memory

    def find(self, group_id: str) -> ClassicGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    # -- JoinGroup

    def join(self, caller: Caller, request: JoinGroupRequest, respond: RespondJoin) -> CoordinatorResult[None]:
        """A JoinGroup for a classic group, for a new group, or for an empty group of another kind, which it replaces."""
        group_id, member_id = request.group_id, request.member_id
        replaced = self._groups.get(group_id)
        if isinstance(replaced, ClassicGroup):
            self.memory.check_growth(replaced.held_bytes, _growth(replaced, caller, request))
            return self._join(caller, request, replaced, respond)
        if member_id != NO_MEMBER_ID:
            respond(_join_error(member_id, ErrorCode.UNKNOWN_MEMBER_ID))
            return CoordinatorResult()
        self.memory.check_growth(0, GROUP_BYTES + len(group_id) + _growth(None, caller, request))
        group = ClassicGroup(group_id, state_timestamp=self._clock.now_ms())
        self._groups[group_id] = group
        result = self._join(caller, request, group, respond)
        tombstones = [] if replaced is None else replaced.tombstones()
        return self._with_first_record(group, replaced, tombstones, result, respond)

    def _with_first_record(
        self,
        group: ClassicGroup,
        replaced: Group | None,
        tombstones: list[CoordinatorRecord],
        result: CoordinatorResult[None],
        respond: RespondJoin,
    ) -> CoordinatorResult[None]:
        assert not result.records, "the first rebalance of a group always waits"

        def on_appended(error: Exception | None) -> None:
            if error is None:
                return
            log.warning("Failed to write the first record of group %s: %s", group.group_id, error)
            if self._groups.get(group.group_id) is group:
                self._forget(group, replaced)
            respond(JoinGroupResponse(error_code=client_error_code(error)))

        return CoordinatorResult([*tombstones, group.empty_record()], on_appended=on_appended, replay=False)

    def _forget(self, group: ClassicGroup, replaced: Group | None) -> None:
        self.cancel_timers(group)
        del self._groups[group.group_id]
        if replaced is not None:
            self._groups[group.group_id] = replaced

    def _join(self, caller: Caller, request: JoinGroupRequest, group: ClassicGroup, respond: RespondJoin) -> CoordinatorResult[None]:
        if not self._accepts(group, request.member_id):
            group.remove(request.member_id)
            respond(_join_error(NO_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED))
            return CoordinatorResult()
        if group.state is DEAD:
            respond(_join_error(request.member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return CoordinatorResult()
        if not group.supports_protocols(request.protocol_type, [protocol.name for protocol in request.protocols]):
            respond(_join_error(request.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return CoordinatorResult()
        if request.member_id == NO_MEMBER_ID:
            return self._join_new_member(caller, request, group, respond)
        return self._join_known_member(caller, request, group, respond)

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether the group has room. During a rebalance only the members that have rejoined count, so the last ones are rejected."""
        member = group.members.get(member_id)
        if group.state is EMPTY or group.state is DEAD:
            return True
        if group.state is PREPARING:
            return (member is not None and member.is_awaiting_join) or group.num_awaiting_join < self._config.group_max_size
        return member is not None or group.num_members < self._config.group_max_size

    def _join_new_member(
        self, caller: Caller, request: JoinGroupRequest, group: ClassicGroup, respond: RespondJoin
    ) -> CoordinatorResult[None]:
        instance_id = request.group_instance_id
        if instance_id is not None:
            new_member_id = f"{instance_id[:CLIENT_ID_SHOWN_MAX]}-{self._new_id()}"
            existing = group.static_members.get(instance_id)
            if existing is not None:
                return self._replace_static_member(caller, request, group, existing, new_member_id, respond)
            return self._add_member(caller, request, group, new_member_id, respond)
        new_member_id = f"{caller.client_id[:CLIENT_ID_SHOWN_MAX]}-{self._new_id()}"
        if caller.version < REQUIRES_KNOWN_MEMBER_ID:
            return self._add_member(caller, request, group, new_member_id, respond)
        group.add_pending(new_member_id)
        self._expect_heartbeat(group, new_member_id, request.session_timeout_ms)
        respond(_join_error(new_member_id, ErrorCode.MEMBER_ID_REQUIRED))
        return CoordinatorResult()

    def _join_known_member(
        self, caller: Caller, request: JoinGroupRequest, group: ClassicGroup, respond: RespondJoin
    ) -> CoordinatorResult[None]:
        member_id = request.member_id
        if member_id in group.pending_join_members and request.group_instance_id is None:
            return self._add_member(caller, request, group, member_id, respond)
        try:
            group.validate_member(member_id, request.group_instance_id)
        except (UnknownMemberId, FencedInstanceId) as error:
            respond(JoinGroupResponse(member_id=member_id, protocol_name=None, error_code=error.code))
            return CoordinatorResult()
        member = group.members[member_id]
        protocols = protocols_of(request)
        if group.state is PREPARING:
            return self._update_member(request, group, member, respond)
        if group.state is COMPLETING and member.matches(protocols):
            # Most likely the member did not receive the response.
            respond(group.join_response(member_id, with_members=group.is_leader(member_id)))
            return CoordinatorResult()
        if group.state is STABLE and not group.is_leader(member_id) and member.matches(protocols):
            respond(group.join_response(member_id, with_members=False))
            return CoordinatorResult()
        if group.state in (STABLE, COMPLETING):
            # The member's protocols changed, or the leader noticed a change, such as new partitions of a topic.
            return self._update_member(request, group, member, respond)
        respond(_join_error(member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        return CoordinatorResult()

    def _add_member(
        self, caller: Caller, request: JoinGroupRequest, group: ClassicGroup, member_id: str, respond: RespondJoin
    ) -> CoordinatorResult[None]:
        member = ClassicGroupMember(
            member_id,
            request.group_instance_id,
            caller.client_id,
            caller.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            protocols_of(request),
        )
        member.is_new = True
        if group.state is PREPARING and group.previous_state is EMPTY:
            group.new_member_added = True
        group.add(member, respond)
        # The new member cannot send heartbeats yet. The timer removes it if its client gave up.
        self._expect_heartbeat(group, member_id, self._config.group_new_member_join_timeout_ms)
        return self._rebalance_or_complete_join(group, f"adding new member {member_id}")

    def _update_member(
        self, request: JoinGroupRequest, group: ClassicGroup, member: ClassicGroupMember, respond: RespondJoin
    ) -> CoordinatorResult[None]:
        group.update_member(member, protocols_of(request), request.rebalance_timeout_ms, request.session_timeout_ms, respond)
        return self._rebalance_or_complete_join(group, f"member {member.member_id} joins again")

    def _replace_static_member(
        self,
        caller: Caller,
        request: JoinGroupRequest,
        group: ClassicGroup,
        old_member_id: str,
        new_member_id: str,
        respond: RespondJoin,
    ) -> CoordinatorResult[None]:
        """A static member rejoins under a new id. A stable group whose protocol does not change is not rebalanced."""
        leader_before = group.leader_id
        assert request.group_instance_id is not None
        member = group.replace_static_member(request.group_instance_id, old_member_id, new_member_id)
        self._timer.cancel(heartbeat_key(group.group_id, old_member_id))
        self._expect_heartbeat(group, new_member_id, member.session_timeout_ms)
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        group.update_member(member, protocols_of(request), request.rebalance_timeout_ms, request.session_timeout_ms, respond)
        if group.state is COMPLETING:
            # The leader may be computing an assignment with the old id right now.
            return self.prepare_rebalance(group, f"static member {new_member_id} replaces {old_member_id}")
        if group.state is not STABLE:
            return self._maybe_complete_join(group)
        if group.select_protocol() != group.protocol_name:
            return self._rebalance_or_complete_join(group, f"static member {new_member_id} changes the protocol")

        def on_appended(error: Exception | None) -> None:
            if error is not None:
                self._take_back_static_member(group, member, old_member_id, before, leader_before, error)
                return
            skips = caller.version >= SKIPS_ASSIGNMENT
            leads = skips and group.is_leader(new_member_id)
            response = group.join_response(new_member_id, with_members=leads)
            response.skip_assignment = leads
            if not skips:
                response.leader = leader_before or ""  # so that an old leader does not compute the assignment again
            group.complete_join(member, response)

        return CoordinatorResult([group.record(group.assignments())], on_appended=on_appended, replay=False)

    def _take_back_static_member(
        self,
        group: ClassicGroup,
        member: ClassicGroupMember,
        old_member_id: str,
        before: tuple[Protocols, int, int],
        leader_before: str | None,
        error: Exception,
    ) -> None:
        respond = member.respond_join
        if group.members.get(member.member_id) is member:
            group.update_member(member, *before, None)
            assert member.group_instance_id is not None
            old = group.replace_static_member(member.group_instance_id, member.member_id, old_member_id)
            self._timer.cancel(heartbeat_key(group.group_id, member.member_id))
            self._expect_heartbeat(group, old_member_id, old.session_timeout_ms)
        if respond is not None:
            response = group.join_response(NO_MEMBER_ID, with_members=False)
            response.leader = leader_before or ""
            response.error_code = client_error_code(error)
            respond(response)

    # -- rebalances

    def prepare_rebalance(self, group: ClassicGroup, reason: str) -> CoordinatorResult[None]:
        if group.state is COMPLETING:
            self._reset_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync_members.clear()
        self._timer.cancel(sync_key(group.group_id))
        is_first = group.state is EMPTY
        if is_first:
            delay_ms = self._config.group_initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._schedule_first_rebalance(group.group_id, delay_ms, remaining_ms)
        group.transition_to(PREPARING, self._clock.now_ms())
        log.info("Preparing to rebalance group %s with old generation %d (reason: %s)", group.group_id, group.generation_id, reason)
        if is_first:
            return CoordinatorResult()
        if group.has_all_members_joined:
            return self._complete_join(group)
        self._schedule_join(group)
        return CoordinatorResult()

    def _rebalance_or_complete_join(self, group: ClassicGroup, reason: str) -> CoordinatorResult[None]:
        return self.prepare_rebalance(group, reason) if group.can_rebalance else self._maybe_complete_join(group)

    def _maybe_complete_join(self, group: ClassicGroup) -> CoordinatorResult[None]:
        if group.state is PREPARING and group.previous_state is not EMPTY and group.has_all_members_joined:
            return self._complete_join(group)
        return CoordinatorResult()

    def _schedule_join(self, group: ClassicGroup) -> None:
        group_id = group.group_id
        self._timer.schedule(join_key(group_id), group.rebalance_timeout_ms, lambda: self._expire_join(group_id))

    def _expire_join(self, group_id: str) -> CoordinatorResult[None] | None:
        group = self.find(group_id)
        return None if group is None or group.state is not PREPARING else self._complete_join(group)

    def _schedule_first_rebalance(self, group_id: str, delay_ms: int, remaining_ms: int) -> None:
        self._timer.schedule(join_key(group_id), delay_ms, lambda: self._expire_first_rebalance(group_id, delay_ms, remaining_ms))

    def _expire_first_rebalance(self, group_id: str, delay_ms: int, remaining_ms: int) -> CoordinatorResult[None] | None:
        """If members joined during the delay, wait again for more, but never longer than the rebalance timeout."""
        group = self.find(group_id)
        if group is None or group.state is not PREPARING:
            return None
        if group.new_member_added and remaining_ms != 0:
            group.new_member_added = False
            next_delay_ms = min(self._config.group_initial_rebalance_delay_ms, remaining_ms)
            self._schedule_first_rebalance(group_id, next_delay_ms, max(remaining_ms - delay_ms, 0))
            return None
        return self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> CoordinatorResult[None]:
        """The end of the join phase: removes dynamic members that have not rejoined; all others receive the new generation."""
        self._timer.cancel(join_key(group.group_id))
        for absent in group.not_yet_rejoined():
            if not absent.is_static:
                group.remove(absent.member_id)
                self._timer.cancel(heartbeat_key(group.group_id, absent.member_id))
        if not group.elect_joined_leader() and group.members:
            # Only static members are left, and none has rejoined: their sessions will expire.
            self._schedule_join(group)
            return CoordinatorResult()
        group.init_next_generation(self._clock.now_ms())
        if group.state is EMPTY:
            log.info("Group %s with generation %d is now empty", group.group_id, group.generation_id)
            return CoordinatorResult([group.record({})], on_appended=self._warn_of_unwritten(group), replay=False)
        log.info("Stabilized group %s generation %d with %d members", group.group_id, group.generation_id, group.num_members)
        for member in list(group.members.values()):
            group.complete_join(member, group.join_response(member.member_id, with_members=group.is_leader(member.member_id)))
            self._expect_heartbeat(group, member.member_id, member.session_timeout_ms)
            member.is_new = False
            group.pending_sync_members.add(member.member_id)
        group_id, generation_id = group.group_id, group.generation_id
        self._timer.schedule(sync_key(group_id), group.rebalance_timeout_ms, lambda: self._expire_sync(group_id, generation_id))
        return CoordinatorResult()

    def _warn_of_unwritten(self, group: ClassicGroup) -> Callable[[Exception | None], None]:
        def on_appended(error: Exception | None) -> None:
            if error is not None:
                # After a crash the old generation would be loaded again, and its members, which have left, would time out.
                log.warning("Failed to write the empty group %s: %s", group.group_id, error)

        return on_appended

    def _expire_sync(self, group_id: str, generation_id: int) -> CoordinatorResult[None] | None:
        group = self.find(group_id)
        if group is None or group.generation_id != generation_id or group.state not in (COMPLETING, STABLE):
            return None
        if not group.pending_sync_members:
            return None
        late = list(group.pending_sync_members)
        for member_id in late:
            group.remove(member_id)
            self._timer.cancel(heartbeat_key(group_id, member_id))
        return self.prepare_rebalance(group, f"removing {late} on pending sync request expiration")

    # -- SyncGroup

    def sync(self, group: ClassicGroup, request: SyncGroupRequest, respond: RespondSync) -> CoordinatorResult[None]:
        error = self._sync_fault(group, request)
        if error is not None:
            respond(SyncGroupResponse(error_code=int(error)))
            return CoordinatorResult()
        member = group.members[request.member_id]
        group.pending_sync_members.discard(request.member_id)
        if not group.pending_sync_members:
            self._timer.cancel(sync_key(group.group_id))
        if group.state is STABLE:
            respond(SyncGroupResponse(0, 0, group.protocol_type_or_none, group.protocol_name, member.assignment))
            return CoordinatorResult()
        member.respond_sync = respond
        if not group.is_leader(request.member_id):
            return CoordinatorResult()
        by_member = {assignment.member_id: bytes(assignment.assignment) for assignment in request.assignments}
        assignments = {member_id: by_member.get(member_id, b"") for member_id in group.members}
        if len(by_member) < len(assignments) or not all(member_id in by_member for member_id in assignments):
            missing = ", ".join(member_id for member_id in assignments if member_id not in by_member)
            log.warning(
                "Setting empty assignments for members Set(%s) of %s for generation %d", missing, group.group_id, group.generation_id
            )
        try:
            self.memory.check_growth(group.held_bytes, sum(map(len, assignments.values())))
        except KafkaError as refusal:
            log.warning("The assignment of group %s is too large: %s", group.group_id, refusal)
            self._stabilize(group, assignments)(RecordTooLarge(str(refusal)))  # handled like a record that the log rejects
            return CoordinatorResult()
        return CoordinatorResult([group.record(assignments)], on_appended=self._stabilize(group, assignments), replay=False)

    def _sync_fault(self, group: ClassicGroup, request: SyncGroupRequest) -> int | None:
        if group.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if group.state is EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        try:
            group.validate_member(request.member_id, request.group_instance_id)
        except KafkaError as error:
            return error.code
        if request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        if _differs(request.protocol_type, group.protocol_type_or_none) or _differs(request.protocol_name, group.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING else None

    def _stabilize(self, group: ClassicGroup, assignments: dict[str, bytes]) -> Callable[[Exception | None], None]:
        generation_id = group.generation_id

        def on_appended(error: Exception | None) -> None:
            if group.state is not COMPLETING or group.generation_id != generation_id:
                return  # a member joined or left while the record was being written
            if error is not None:
                self._reset_assignments(group, client_error_code(error))
                self._rebalance_or_complete_join(group, f"error {error_code(error)} when storing the assignment")
                return
            for member in group.members.values():
                group.assign(member, assignments.get(member.member_id, b""))
            self._propagate_assignments(group, ErrorCode.NONE)
            group.transition_to(STABLE, self._clock.now_ms())
            self._metrics.record(COMPLETED_REBALANCES, 1)

        return on_appended

    def _reset_assignments(self, group: ClassicGroup, error: int) -> None:
        for member in group.members.values():
            group.assign(member, b"")
        self._propagate_assignments(group, error)

    def _propagate_assignments(self, group: ClassicGroup, error: int) -> None:
        ok = error == 0
        for member in list(group.members.values()):
            response = SyncGroupResponse(
                0, int(error), group.protocol_type_or_none if ok else None, group.protocol_name if ok else None, member.assignment
            )
            if group.complete_sync(member, response):
                # The session of a waiting member does not expire; restart it now.
                self._expect_heartbeat(group, member.member_id, member.session_timeout_ms)

    # -- Heartbeat, LeaveGroup, sessions

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        if group.state is DEAD:
            raise CoordinatorNotAvailable
        group.validate_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise IllegalGeneration
        self.keep_session(group, request.member_id)
        code = ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING else ErrorCode.NONE
        return CoordinatorResult(response=HeartbeatResponse(error_code=int(code)))

    def keep_session(self, group: ClassicGroup, member_id: str) -> None:
        """Restart the session timer of the member."""
        self._expect_heartbeat(group, member_id, group.members[member_id].session_timeout_ms)

    def leave(self, group: ClassicGroup, members: Iterable[MemberIdentity]) -> CoordinatorResult[LeaveGroupResponse]:
        if group.state is DEAD:
            return CoordinatorResult(response=LeaveGroupResponse(error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
        responses = [
            MemberResponse(identity.member_id, identity.group_instance_id, self._leave_one(group, identity)) for identity in members
        ]
        result = CoordinatorResult[None]()
        if any(response.error_code == 0 for response in responses):
            if group.state in (STABLE, COMPLETING):
                result = self._rebalance_or_complete_join(group, "explicit LeaveGroup request")
            elif group.state is PREPARING:
                result = self._maybe_complete_join(group)
        return CoordinatorResult(result.records, LeaveGroupResponse(members=responses), result.on_appended, result.replay)

    def _leave_one(self, group: ClassicGroup, identity: MemberIdentity) -> int:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if member_id == NO_MEMBER_ID:
            # An administrator removes a static member by its instance id.
            static_member_id = None if instance_id is None else group.static_members.get(instance_id)
            if static_member_id is None:
                return int(ErrorCode.UNKNOWN_MEMBER_ID)
            member_id = static_member_id
        elif member_id not in group.pending_join_members:
            try:
                group.validate_member(member_id, instance_id)
            except KafkaError as error:
                return error.code
        self._remove_member(group, member_id)
        return 0

    def _remove_member(self, group: ClassicGroup, member_id: str) -> None:
        self._timer.cancel(heartbeat_key(group.group_id, member_id))
        member = group.members.get(member_id)
        if member is not None:
            # If the client still waits, this response makes it join again.
            group.complete_join(member, _join_error(NO_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID))
            group.complete_sync(member, SyncGroupResponse(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID)))
        group.remove(member_id)

    def _expect_heartbeat(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        group_id = group.group_id
        self._timer.schedule(heartbeat_key(group_id, member_id), timeout_ms, lambda: self._expire_session(group_id, member_id))

    def _expire_session(self, group_id: str, member_id: str) -> CoordinatorResult[None] | None:
        group = self.find(group_id)
        if group is None or group.state is DEAD:
            return None
        member = group.members.get(member_id)
        if member is None and member_id not in group.pending_join_members:
            return None
        if member is not None and member.has_satisfied_heartbeat:
            return None
        log.info("Member %s in group %s has failed, removing it from the group", member_id, group_id)
        self._remove_member(group, member_id)
        if member is not None and group.state in (STABLE, COMPLETING):
            return self._rebalance_or_complete_join(group, f"removing member {member_id} on heartbeat expiration")
        if group.state is PREPARING and group.has_all_members_joined:
            return self._complete_join(group)
        return None

    # -- loading and unloading

    def on_loaded(self, group: ClassicGroup) -> None:
        for member in group.members.values():
            self._expect_heartbeat(group, member.member_id, member.session_timeout_ms)
        if group.num_members > self._config.group_max_size:
            self.prepare_rebalance(group, f"freshly loaded group is over capacity {self._config.group_max_size}")

    def on_unloaded(self, group: ClassicGroup) -> None:
        group.transition_to(DEAD, self._clock.now_ms())
        code = int(ErrorCode.NOT_COORDINATOR)
        for member in list(group.members.values()):
            group.complete_join(member, JoinGroupResponse(member_id=member.member_id, error_code=code))
            group.complete_sync(member, SyncGroupResponse(error_code=code))

    def cancel_timers(self, group: ClassicGroup) -> None:
        """To be called before a group leaves the shard or is converted to another kind."""
        for member_id in (*group.members, *group.pending_join_members):
            self._timer.cancel(heartbeat_key(group.group_id, member_id))
        self._timer.cancel(join_key(group.group_id))
        self._timer.cancel(sync_key(group.group_id))


def _growth(group: ClassicGroup | None, caller: Caller, request: JoinGroupRequest) -> int:
    """The bytes by which the group would grow: a new member, an id to hand out, or changed protocols of a member."""
    instance_id = request.group_instance_id
    member_id = request.member_id
    if group is not None and instance_id is not None and member_id == NO_MEMBER_ID:
        member_id = group.static_members.get(instance_id, NO_MEMBER_ID)
    member = None if group is None else group.members.get(member_id)
    if member is not None:
        return protocols_size(protocols_of(request)) - protocols_size(member.protocols)
    if request.member_id == NO_MEMBER_ID and instance_id is None and caller.version >= REQUIRES_KNOWN_MEMBER_ID:
        return PENDING_MEMBER_BYTES + min(len(caller.client_id), CLIENT_ID_SHOWN_MAX)
    texts = 2 * len(caller.client_id) + 2 * len(instance_id or "") + len(request.protocol_type)
    return MEMBER_BYTES + texts + protocols_size(protocols_of(request))


def protocols_of(request: JoinGroupRequest) -> Protocols:
    return {protocol.name: bytes(protocol.metadata) for protocol in request.protocols}


def normalized_members(request: LeaveGroupRequest, version: int) -> list[MemberIdentity]:
    """The members to remove; before version 3 a LeaveGroup names one member."""
    return [MemberIdentity(request.member_id)] if version <= 2 else request.members


def heartbeat_key(group_id: str, member_id: str) -> str:
    return f"heartbeat-{group_id}-{member_id}"


def join_key(group_id: str) -> str:
    return f"join-{group_id}"


def sync_key(group_id: str) -> str:
    return f"sync-{group_id}"


def _join_error(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(member_id=member_id, error_code=int(error))


def _differs(requested: str | None, actual: str | None) -> bool:
    return requested is not None and actual is not None and requested != actual
