"""The state machine of a member of the consumer protocol (KIP-848): its state, its epoch, its target assignment and its current assignment.

The broker assigns the partitions. Heartbeat responses bring the member's target assignment; the member reconciles at its own pace and
reports its progress in heartbeats. This module sends nothing and reads no clock; `consumer_membership` acts on it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from barnabas.client.consumer.membership.membership import Subscriptions
from barnabas.client.consumer.offsets.offset_messages import NO_MEMBER, Identity
from barnabas.client.errors import (
    CommitFailed,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedMemberEpoch,
    GroupAuthorization,
    IllegalState,
    KafkaError,
    NotCoordinator,
    StaleMemberEpoch,
    Timeout,
    UnknownMemberId,
)
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from barnabas.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from barnabas.uuid import Uuid

log = logging.getLogger(__name__)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2  # the member will return with the same instance id and find its assignment kept

Partitions = dict[Uuid, frozenset[int]]


class ConsumerMemberState(Enum):
    UNSUBSCRIBED = "UNSUBSCRIBED"  # not in the group
    JOINING = "JOINING"
    RECONCILING = "RECONCILING"  # moving to the target assignment
    ACKNOWLEDGING = "ACKNOWLEDGING"  # has reached the target and must report it
    STABLE = "STABLE"
    FENCED = "FENCED"  # removed from the group; releases its partitions, then joins again
    PREPARE_LEAVING = "PREPARE_LEAVING"  # releases its partitions
    LEAVING = "LEAVING"  # must send the leave heartbeat
    FATAL = "FATAL"
    STALE = "STALE"  # left because the application did not poll; joins again at the next poll


_IN_GROUP: Final = frozenset(
    {ConsumerMemberState.JOINING, ConsumerMemberState.RECONCILING, ConsumerMemberState.ACKNOWLEDGING, ConsumerMemberState.STABLE}
)

# Every state with its allowed previous states.
STATES_BEFORE: Final[dict[ConsumerMemberState, frozenset[ConsumerMemberState]]] = {
    ConsumerMemberState.UNSUBSCRIBED: frozenset(
        {ConsumerMemberState.PREPARE_LEAVING, ConsumerMemberState.LEAVING, ConsumerMemberState.FENCED, ConsumerMemberState.STALE}
    ),
    ConsumerMemberState.JOINING: frozenset({ConsumerMemberState.FENCED, ConsumerMemberState.UNSUBSCRIBED, ConsumerMemberState.STALE}),
    ConsumerMemberState.RECONCILING: frozenset(
        {ConsumerMemberState.STABLE, ConsumerMemberState.JOINING, ConsumerMemberState.ACKNOWLEDGING, ConsumerMemberState.RECONCILING}
    ),
    ConsumerMemberState.ACKNOWLEDGING: frozenset({ConsumerMemberState.RECONCILING}),
    ConsumerMemberState.STABLE: frozenset(
        {ConsumerMemberState.JOINING, ConsumerMemberState.ACKNOWLEDGING, ConsumerMemberState.RECONCILING}
    ),
    ConsumerMemberState.FENCED: _IN_GROUP | {ConsumerMemberState.PREPARE_LEAVING, ConsumerMemberState.LEAVING},
    ConsumerMemberState.PREPARE_LEAVING: _IN_GROUP | {ConsumerMemberState.UNSUBSCRIBED},
    ConsumerMemberState.LEAVING: frozenset({ConsumerMemberState.PREPARE_LEAVING}),
    ConsumerMemberState.FATAL: _IN_GROUP
    | {ConsumerMemberState.PREPARE_LEAVING, ConsumerMemberState.LEAVING, ConsumerMemberState.UNSUBSCRIBED},
    ConsumerMemberState.STALE: frozenset({ConsumerMemberState.LEAVING}),
}


@dataclass(frozen=True, slots=True)
class LocalAssignment:
    """`epoch` counts targets, so that a target that equals an older one still counts as new; None means no assignment."""

    epoch: int | None = None
    partitions: Partitions = field(default_factory=dict)

    def next(self, partitions: Partitions) -> LocalAssignment:
        if self.epoch is None:
            return LocalAssignment(0, partitions)
        return self if self.partitions == partitions else LocalAssignment(self.epoch + 1, partitions)


NO_ASSIGNMENT: Final = LocalAssignment()


class ConsumerHeartbeatResult(Enum):
    """The result of a heartbeat."""

    LIVES = "the coordinator knows this member"
    FAILED = "to be tried again soon"
    ELSEWHERE = "another broker is the coordinator"
    FENCED = "the coordinator does not know this member, or not in this epoch"
    FATAL = "only the application can do something about it"


class _Sent:
    """The values last sent to the coordinator. A value that has not changed is not sent again."""

    def __init__(self) -> None:
        self.rebalance_timeout_ms = -1
        self.topics: frozenset[str] | None = None
        self.regex: str | None = None
        self.assignor: str | None = None
        self.rack: str | None = None
        self.assignment: LocalAssignment | None = None


class ConsumerMember:
    def __init__(
        self,
        group_id: str,
        member_id: str,
        subscriptions: Subscriptions,
        *,
        instance_id: str | None,
        rebalance_timeout_ms: int,
        assignor: str | None,
        rack: str | None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.instance_id = instance_id
        self.state = ConsumerMemberState.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        self.current = NO_ASSIGNMENT
        self.target = NO_ASSIGNMENT
        self._subscriptions = subscriptions
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._assignor = assignor
        self._rack = rack
        self._sent = _Sent()

    @property
    def is_in_group(self) -> bool:
        return self.state in _IN_GROUP

    @property
    def is_reconciled(self) -> bool:
        return self.current == self.target

    @property
    def skips_heartbeats(self) -> bool:
        return self.state in (
            ConsumerMemberState.UNSUBSCRIBED,
            ConsumerMemberState.FATAL,
            ConsumerMemberState.STALE,
            ConsumerMemberState.FENCED,
            ConsumerMemberState.PREPARE_LEAVING,
        )

    @property
    def has_news(self) -> bool:
        """Whether there is a change that should be sent before the next regular heartbeat."""
        if self.state in (ConsumerMemberState.JOINING, ConsumerMemberState.ACKNOWLEDGING):
            return True
        topics_changed = self._sent.topics is not None and self._sent.topics != frozenset(self._subscriptions.subscription())
        return self.is_in_group and (topics_changed or self._sent.regex != self._subscriptions.subscribed_regex())

    # The way in, and out

    def join(self) -> None:
        """Joins from the beginning: epoch 0, without partitions."""
        self.epoch = JOIN_EPOCH
        self.current = self.target = NO_ASSIGNMENT
        self._enter(ConsumerMemberState.JOINING)

    def acknowledge(self, reached: LocalAssignment) -> None:
        self.current = reached
        self._enter(ConsumerMemberState.ACKNOWLEDGING)

    def prepare_leaving(self) -> None:
        self._enter(ConsumerMemberState.PREPARE_LEAVING)

    def begin_leaving(self, epoch: int) -> None:
        self.epoch = epoch
        self.current = self.target = NO_ASSIGNMENT
        self._enter(ConsumerMemberState.LEAVING)

    def left(self, *, will_return: bool = False) -> None:
        self._enter(ConsumerMemberState.STALE if will_return else ConsumerMemberState.UNSUBSCRIBED)
        self._sent = _Sent()

    def released(self) -> None:
        """Called when a removed member has released all its partitions."""
        self.current = self.target = NO_ASSIGNMENT

    # Heartbeats

    def request(self) -> ConsumerGroupHeartbeatRequest:
        """The next heartbeat request. Its content counts as sent."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch, instance_id=self.instance_id
        )
        if self.state in _IN_GROUP:
            self._add_changes(request, everything=self.state is ConsumerMemberState.JOINING)
        if self.state is ConsumerMemberState.ACKNOWLEDGING:
            self._enter(ConsumerMemberState.STABLE if self.is_reconciled else ConsumerMemberState.RECONCILING)
        return request

    def _add_changes(self, request: ConsumerGroupHeartbeatRequest, everything: bool) -> None:
        sent = self._sent
        if everything or sent.rebalance_timeout_ms != self._rebalance_timeout_ms:
            request.rebalance_timeout_ms = sent.rebalance_timeout_ms = self._rebalance_timeout_ms
        topics = frozenset(self._subscriptions.subscription())
        if everything or topics != sent.topics:
            sent.topics = topics
            request.subscribed_topic_names = sorted(topics)
        regex = self._subscriptions.subscribed_regex()
        if regex != sent.regex or (everything and regex is not None):
            sent.regex = regex
            request.subscribed_topic_regex = regex or ""
        if self._assignor is not None and (everything or self._assignor != sent.assignor):
            request.server_assignor = sent.assignor = self._assignor
        if self._rack is not None and (everything or self._rack != sent.rack):
            request.rack_id = sent.rack = self._rack
        if everything or self.current != sent.assignment:
            sent.assignment = self.current
            owned = sorted(self.current.partitions.items(), key=lambda entry: entry[0].value)
            request.topic_partitions = [TopicPartitions(topic_id, sorted(numbers)) for topic_id, numbers in owned]

    def answered(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Handles a successful heartbeat response."""
        if not self.is_in_group:
            return  # the member has left or was removed since
        if response.member_id:
            self.member_id = response.member_id
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self._take_target(
                {assigned_topic.topic_id: frozenset(assigned_topic.partitions) for assigned_topic in response.assignment.topic_partitions}
            )
        elif self.state is ConsumerMemberState.JOINING and self.target is NO_ASSIGNMENT:
            log.debug("Joined in epoch %d, and waits for an assignment", self.epoch)

    def _take_target(self, partitions: Mapping[Uuid, frozenset[int]]) -> None:
        self.target = self.target.next(dict(partitions))
        if not self.is_reconciled:
            self._enter(ConsumerMemberState.RECONCILING)
        elif self.state in (ConsumerMemberState.RECONCILING, ConsumerMemberState.JOINING):
            self._enter(ConsumerMemberState.STABLE)

    def failed(self) -> None:
        """Handles a failed heartbeat: it is unknown what arrived, so everything is sent again."""
        self._sent = _Sent()

    def refused(self, error: KafkaError) -> tuple[ConsumerHeartbeatResult, KafkaError]:
        """The meaning of an error, and the error for the application."""
        self._sent = _Sent()
        if isinstance(error, (NotCoordinator, CoordinatorNotAvailable)):
            return ConsumerHeartbeatResult.ELSEWHERE, error
        if isinstance(error, CoordinatorLoadInProgress):
            return ConsumerHeartbeatResult.FAILED, error
        if isinstance(error, (FencedMemberEpoch, UnknownMemberId)):
            self._fence()
            return ConsumerHeartbeatResult.FENCED, error
        if isinstance(error, GroupAuthorization):
            error = GroupAuthorization(group_id=self.group_id)
        elif isinstance(error, UnsupportedVersion):
            error = UnsupportedVersion(
                "The cluster doesn't yet support the new consumer group protocol. Set group.protocol=classic to revert to the classic "
                f"protocol until the cluster is upgraded. ({error})"
            )
        self.fail()
        return ConsumerHeartbeatResult.FATAL, error

    def fail(self) -> None:
        if self.state not in (ConsumerMemberState.FATAL, ConsumerMemberState.STALE, ConsumerMemberState.FENCED):
            self._enter(ConsumerMemberState.FATAL)

    def _fence(self) -> None:
        if self.is_in_group:
            self._enter(ConsumerMemberState.FENCED)
            self.epoch = JOIN_EPOCH
        elif self.state in (ConsumerMemberState.PREPARE_LEAVING, ConsumerMemberState.LEAVING):
            self._enter(ConsumerMemberState.UNSUBSCRIBED)

    # Commits

    def commit_identity(self) -> Identity:
        if self.epoch > 0:
            return Identity(self.epoch, self.member_id, self.instance_id)
        raise CommitFailed(
            "Offset commit cannot be completed since the consumer is not part of an active group for auto partition assignment; "
            "it is likely that the consumer was kicked out of the group."
        )

    def fetch_identity(self) -> Identity:
        return Identity(self.epoch, self.member_id) if self.epoch > 0 else NO_MEMBER

    def commit_refused(self, error: KafkaError) -> KafkaError:
        if isinstance(error, UnknownMemberId):
            return CommitFailed(f"OffsetCommit failed with unknown member ID. {error}")
        if isinstance(error, (StaleMemberEpoch, CoordinatorNotAvailable, NotCoordinator, Timeout)):
            return error
        return KafkaError(f"Unexpected error in commit: {error}")

    def _enter(self, state: ConsumerMemberState) -> None:
        if self.state is not state and self.state not in STATES_BEFORE[state]:
            raise IllegalState(f"Invalid state transition from {self.state.value} to {state.value}")
        log.debug("Member %s with epoch %d transitioned from %s to %s", self.member_id, self.epoch, self.state.value, state.value)
        self.state = state
