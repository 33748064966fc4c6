"""The requests of a classic member to its coordinator: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Each call sends a request, lets `classic_member` interpret the response, and returns the result or raises the remaining error. Assignments
are applied elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from barnabas.client.clock import Clock
from barnabas.client.config.config import ClientConfig
from barnabas.client.consumer.assignors.assignor import ConsumerPartitionAssignor, Subscription
from barnabas.client.consumer.assignors.protocol import PROTOCOL_TYPE, serialize_subscription
from barnabas.client.consumer.membership.classic_leader import Leader
from barnabas.client.consumer.membership.classic_member import ClassicHeartbeatResult, ClassicMember, Generation
from barnabas.client.consumer.membership.coordinator import CoordinatorRequestManager, end, start, wait_until
from barnabas.client.consumer.membership.group_metrics import GroupMetrics
from barnabas.client.consumer.membership.membership import Subscriptions
from barnabas.client.errors import AuthenticationError, IllegalState, InconsistentGroupProtocol, KafkaError, error_for
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse

log = logging.getLogger(__name__)

JOIN_TIMEOUT_LAPSE_MS: Final = 5000  # time for the network: the coordinator responds to a join at the latest after the rebalance timeout
LEAVE_MEMBERS_VERSION: Final = 3  # LeaveGroup with several members in one request
REASON_MAX: Final = 255


class FirstJoin:
    """A JoinGroup without a member id. Its response has the id for which the coordinator then waits."""

    def __init__(self) -> None:
        self.sent = False
        self.response: asyncio.Task[JoinGroupResponse]


class ClassicExchange:
    def __init__(
        self,
        config: ClientConfig,
        coordinator: CoordinatorRequestManager,
        member: ClassicMember,
        leader: Leader,
        subscriptions: Subscriptions,
        assignors: Sequence[ConsumerPartitionAssignor],
        *,
        clock: Clock,
        metrics: GroupMetrics,
        on_joined: Callable[[], None],
    ) -> None:
        self.joined_subscription: frozenset[str] | None = None  # as last sent to the coordinator
        self._config = config
        self._group_id: str = config["group.id"]
        self._join_timeout_ms = max(config["request.timeout.ms"], config["max.poll.interval.ms"] + JOIN_TIMEOUT_LAPSE_MS)
        self._coordinator = coordinator
        self._member = member
        self._leader = leader
        self._subscriptions = subscriptions
        self._assignors = assignors
        self._clock = clock
        self._metrics = metrics
        self._on_joined = on_joined
        self._rebalance_began_ms: int | None = None
        self._first_join: FirstJoin | None = None  # until its response is read

    def assignor(self, name: str | None) -> ConsumerPartitionAssignor:
        for assignor in self._assignors:
            if assignor.name == name:
                return assignor
        raise IllegalState(f"Coordinator selected invalid assignment protocol: {name}")

    async def join(self) -> bytes:
        """Joins and syncs; returns the serialized assignment."""
        sent = self._member.generation
        began_ms = self._clock.monotonic_ms()
        if self._rebalance_began_ms is None:
            self._rebalance_began_ms = began_ms
        log.info("(Re-)joining group")
        response = await (self._send_join(self._join_request) if sent.member_id else self._send_first_join())
        if response.error_code:
            error = error_for(response.error_code)
            self._coordinator.note(error)
            raise self._member.join_refused(error, sent, response.member_id)
        _check_type(response.protocol_type)
        self._metrics.joined(self._clock.monotonic_ms() - began_ms)
        self._member.joined(Generation(response.generation_id, response.member_id, response.protocol_name))
        self._on_joined()
        assignments: dict[str, bytes] = {}
        if response.leader == response.member_id:
            assignor = self.assignor(response.protocol_name)
            assignments = await self._leader.assign(assignor, response.members, response.skip_assignment, response.generation_id)
        return await self._sync(assignments)

    async def _send_join(self, build: Callable[[], JoinGroupRequest]) -> JoinGroupResponse:
        return await self._coordinator.send(JoinGroupRequest, lambda version: build(), JoinGroupResponse, timeout_ms=self._join_timeout_ms)

    async def _send_first_join(self) -> JoinGroupResponse:
        """The request continues if the join is cancelled, because its response has the member id to leave with."""
        first = FirstJoin()

        def build() -> JoinGroupRequest:
            first.sent = True
            return self._join_request()

        first.response = start(self._send_join(build))
        self._first_join = first
        try:
            response = await asyncio.shield(first.response)
        except KafkaError:
            self._first_join = None
            raise
        self._first_join = None
        return response

    def _join_request(self) -> JoinGroupRequest:
        topics = self._subscriptions.subscription()
        self.joined_subscription = frozenset(topics)
        owned = tuple(sorted(self._subscriptions.assigned_partitions()))
        generation = self._member.generation
        rack = self._config["client.rack"] or None
        protocols = [
            JoinGroupRequestProtocol(
                assignor.name,
                serialize_subscription(Subscription(tuple(topics), assignor.subscription_user_data(topics), owned, generation.id, rack)),
            )
            for assignor in self._assignors
        ]
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._config["session.timeout.ms"],
            rebalance_timeout_ms=self._config["max.poll.interval.ms"],
            member_id=generation.member_id,
            group_instance_id=self._member.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=self._member.rejoin_reason[:REASON_MAX],
        )

    async def _sync(self, assignments: dict[str, bytes]) -> bytes:
        sent = self._member.generation
        began_ms = self._clock.monotonic_ms()
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=sent.id,
            member_id=sent.member_id,
            group_instance_id=self._member.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=sent.protocol,
            assignments=[SyncGroupRequestAssignment(member, data) for member, data in assignments.items()],
        )
        response = await self._coordinator.send(
            SyncGroupRequest, lambda version: request, SyncGroupResponse, timeout_ms=self._join_timeout_ms
        )
        if response.error_code:
            error = error_for(response.error_code)
            self._coordinator.note(error)
            raise self._member.sync_refused(error, sent)
        _check_type(response.protocol_type)
        now_ms = self._clock.monotonic_ms()
        self._metrics.synced(now_ms - began_ms)
        self._member.synced(response.protocol_name)
        if self._rebalance_began_ms is not None:
            self._metrics.rebalanced(now_ms - self._rebalance_began_ms, now_ms)
            self._rebalance_began_ms = None
        return response.assignment

    async def heartbeat(self) -> tuple[ClassicHeartbeatResult, KafkaError | None]:
        """The result of a heartbeat, and the error that caused it."""
        sent = self._member.generation
        request = HeartbeatRequest(
            group_id=self._group_id, generation_id=sent.id, member_id=sent.member_id, group_instance_id=self._member.instance_id
        )
        began_ms = self._clock.monotonic_ms()
        self._metrics.heartbeat_sent(began_ms)
        try:
            response = await self._coordinator.send(HeartbeatRequest, lambda version: request, HeartbeatResponse)
        except KafkaError as problem:
            log.debug("Heartbeat failed: %s", problem)
            return (ClassicHeartbeatResult.FATAL if isinstance(problem, AuthenticationError) else ClassicHeartbeatResult.FAILED), problem
        self._metrics.heartbeat_answered(self._clock.monotonic_ms() - began_ms)
        if not response.error_code:
            return ClassicHeartbeatResult.LIVES, None
        error = error_for(response.error_code)
        log.info("Attempt to heartbeat with generation %s failed: %s", sent, error)
        self._coordinator.note(error)
        return self._member.heartbeat_refused(error, sent), error

    def take_first_join(self) -> FirstJoin | None:
        """The first JoinGroup of this member, if its response has not been read. The caller cancels it, or leaves with its member id."""
        first, self._first_join = self._first_join, None
        return first

    async def leave_first_join(self, first: FirstJoin, reason: str, timeout_ms: int | None) -> None:
        """Leaves with the member id of the response.

        Otherwise the coordinator keeps that member until session.timeout.ms, and completes no rebalance before.
        """
        deadline_ms = self._clock.monotonic_ms() + (self._join_timeout_ms if timeout_ms is None else timeout_ms)
        answered = first.sent and await wait_until(first.response, deadline_ms, self._clock)
        if not answered:
            await end(first.response)
        elif first.response.exception() is None and first.response.result().member_id:
            left_ms = None if timeout_ms is None else max(1, deadline_ms - self._clock.monotonic_ms())
            await self.leave(first.response.result().member_id, reason, left_ms)

    async def leave(self, member_id: str, reason: str, timeout_ms: int | None) -> None:
        """Sends LeaveGroup once. If the coordinator does not receive it, the session times out."""
        log.info("Member %s sending LeaveGroup request to coordinator %s due to %s", member_id, self._coordinator.node, reason)
        try:
            response = await self._coordinator.send(
                LeaveGroupRequest,
                lambda version: self._leave_request(member_id, reason, version),
                LeaveGroupResponse,
                timeout_ms=timeout_ms,
            )
        except KafkaError as problem:
            log.info("LeaveGroup request of member %s failed: %s", member_id, problem)
            return
        code = response.error_code or next((member.error_code for member in response.members if member.error_code), 0)
        if code:
            log.error("LeaveGroup request of member %s failed with error: %s", member_id, error_for(code))

    def _leave_request(self, member_id: str, reason: str, version: int) -> LeaveGroupRequest:
        if version < LEAVE_MEMBERS_VERSION:
            return LeaveGroupRequest(group_id=self._group_id, member_id=member_id)
        member = MemberIdentity(member_id=member_id, group_instance_id=self._member.instance_id, reason=reason[:REASON_MAX])
        return LeaveGroupRequest(group_id=self._group_id, members=[member])


def _check_type(protocol_type: str | None) -> None:
    if protocol_type not in (None, PROTOCOL_TYPE):
        raise InconsistentGroupProtocol(f"The group is of type {protocol_type}, but {PROTOCOL_TYPE} was expected")
