"""A member of the consumer protocol (KIP-848), as one who decides: its state, its epoch, what it was told to own and what it owns.

The broker divides the partitions. This member is told its target in answers to heartbeats, moves towards it at its own pace, and tells in
heartbeats how far it has come. Nothing is sent here and no clock is read; `consumer_membership` acts on it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from barnabas.client.consumer.membership.membership import Subscriptions
from barnabas.client.consumer.offsets.offset_messages import NOBODY, Identity
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
STATIC_LEAVE_EPOCH: Final = -2  # comes back under the same instance id, and finds its assignment kept

Partitions = dict[Uuid, frozenset[int]]


class MemberState(Enum):
    UNSUBSCRIBED = "UNSUBSCRIBED"  # not in the group
    JOINING = "JOINING"
    RECONCILING = "RECONCILING"  # on the way to the target
    ACKNOWLEDGING = "ACKNOWLEDGING"  # is there, and has to tell
    STABLE = "STABLE"
    FENCED = "FENCED"  # put out; lets go of its partitions, then joins again
    PREPARE_LEAVING = "PREPARE_LEAVING"  # lets go of its partitions
    LEAVING = "LEAVING"  # has to tell that it leaves
    FATAL = "FATAL"
    STALE = "STALE"  # left because the application did not poll; joins again when it does


_IN_GROUP: Final = frozenset({MemberState.JOINING, MemberState.RECONCILING, MemberState.ACKNOWLEDGING, MemberState.STABLE})

# Every state, and those it may follow.
STATES_BEFORE: Final[dict[MemberState, frozenset[MemberState]]] = {
    MemberState.UNSUBSCRIBED: frozenset({MemberState.PREPARE_LEAVING, MemberState.LEAVING, MemberState.FENCED, MemberState.STALE}),
    MemberState.JOINING: frozenset({MemberState.FENCED, MemberState.UNSUBSCRIBED, MemberState.STALE}),
    MemberState.RECONCILING: frozenset({MemberState.STABLE, MemberState.JOINING, MemberState.ACKNOWLEDGING, MemberState.RECONCILING}),
    MemberState.ACKNOWLEDGING: frozenset({MemberState.RECONCILING}),
    MemberState.STABLE: frozenset({MemberState.JOINING, MemberState.ACKNOWLEDGING, MemberState.RECONCILING}),
    MemberState.FENCED: _IN_GROUP | {MemberState.PREPARE_LEAVING, MemberState.LEAVING},
    MemberState.PREPARE_LEAVING: _IN_GROUP | {MemberState.UNSUBSCRIBED},
    MemberState.LEAVING: frozenset({MemberState.PREPARE_LEAVING}),
    MemberState.FATAL: _IN_GROUP | {MemberState.PREPARE_LEAVING, MemberState.LEAVING, MemberState.UNSUBSCRIBED},
    MemberState.STALE: frozenset({MemberState.LEAVING}),
}


@dataclass(frozen=True, slots=True)
class LocalAssignment:
    """`epoch` counts targets, so that one that is told again after another is known to be a new one; None for none at all."""

    epoch: int | None = None
    partitions: Partitions = field(default_factory=dict)

    def next(self, partitions: Partitions) -> LocalAssignment:
        if self.epoch is None:
            return LocalAssignment(0, partitions)
        return self if self.partitions == partitions else LocalAssignment(self.epoch + 1, partitions)


NO_ASSIGNMENT: Final = LocalAssignment()


class Heard(Enum):
    """What a heartbeat came to."""

    LIVES = "the coordinator knows this member"
    FAILED = "to be tried again soon"
    ELSEWHERE = "another broker is the coordinator"
    FENCED = "the coordinator does not know this member, or not in this epoch"
    FATAL = "only the application can do something about it"


class _Sent:
    """What the coordinator has been told; what has not changed is not told again."""

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
        self.state = MemberState.UNSUBSCRIBED
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
            MemberState.UNSUBSCRIBED,
            MemberState.FATAL,
            MemberState.STALE,
            MemberState.FENCED,
            MemberState.PREPARE_LEAVING,
        )

    @property
    def has_news(self) -> bool:
        """Something that a heartbeat should not wait for its time to tell."""
        if self.state in (MemberState.JOINING, MemberState.ACKNOWLEDGING):
            return True
        topics_changed = self._sent.topics is not None and self._sent.topics != frozenset(self._subscriptions.subscription())
        return self.is_in_group and (topics_changed or self._sent.regex != self._subscriptions.subscribed_regex())

    # The way in, and out

    def join(self) -> None:
        """From the beginning: epoch 0, and owning nothing."""
        self.epoch = JOIN_EPOCH
        self.current = self.target = NO_ASSIGNMENT
        self._enter(MemberState.JOINING)

    def acknowledge(self, reached: LocalAssignment) -> None:
        self.current = reached
        self._enter(MemberState.ACKNOWLEDGING)

    def prepare_leaving(self) -> None:
        self._enter(MemberState.PREPARE_LEAVING)

    def begin_leaving(self, epoch: int) -> None:
        self.epoch = epoch
        self.current = self.target = NO_ASSIGNMENT
        self._enter(MemberState.LEAVING)

    def left(self, *, will_return: bool = False) -> None:
        self._enter(MemberState.STALE if will_return else MemberState.UNSUBSCRIBED)
        self._sent = _Sent()

    def released(self) -> None:
        """A member that was put out has let go of everything."""
        self.current = self.target = NO_ASSIGNMENT

    # Heartbeats

    def request(self) -> ConsumerGroupHeartbeatRequest:
        """The next heartbeat; what it tells counts as told."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch, instance_id=self.instance_id
        )
        if self.state in _IN_GROUP:
            self._tell_changes(request, everything=self.state is MemberState.JOINING)
        if self.state is MemberState.ACKNOWLEDGING:
            self._enter(MemberState.STABLE if self.is_reconciled else MemberState.RECONCILING)
        return request

    def _tell_changes(self, request: ConsumerGroupHeartbeatRequest, everything: bool) -> None:
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
        """A heartbeat that went well."""
        if not self.is_in_group:
            return  # it has left, or was put out, since
        if response.member_id:
            self.member_id = response.member_id
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self._take_target({one.topic_id: frozenset(one.partitions) for one in response.assignment.topic_partitions})
        elif self.state is MemberState.JOINING and self.target is NO_ASSIGNMENT:
            log.debug("Joined in epoch %d, and waits for an assignment", self.epoch)

    def _take_target(self, partitions: Mapping[Uuid, frozenset[int]]) -> None:
        self.target = self.target.next(dict(partitions))
        if not self.is_reconciled:
            self._enter(MemberState.RECONCILING)
        elif self.state in (MemberState.RECONCILING, MemberState.JOINING):
            self._enter(MemberState.STABLE)

    def failed(self) -> None:
        """Nobody knows what of the last heartbeat arrived: everything is told again."""
        self._sent = _Sent()

    def refused(self, error: KafkaError) -> tuple[Heard, KafkaError]:
        """What an error means, and as what the application hears of it."""
        self._sent = _Sent()
        if isinstance(error, (NotCoordinator, CoordinatorNotAvailable)):
            return Heard.ELSEWHERE, error
        if isinstance(error, CoordinatorLoadInProgress):
            return Heard.FAILED, error
        if isinstance(error, (FencedMemberEpoch, UnknownMemberId)):
            self._fence()
            return Heard.FENCED, error
        if isinstance(error, GroupAuthorization):
            error = GroupAuthorization(group_id=self.group_id)
        elif isinstance(error, UnsupportedVersion):
            error = UnsupportedVersion(
                "The cluster doesn't yet support the new consumer group protocol. Set group.protocol=classic to revert to the classic "
                f"protocol until the cluster is upgraded. ({error})"
            )
        self.fail()
        return Heard.FATAL, error

    def fail(self) -> None:
        if self.state not in (MemberState.FATAL, MemberState.STALE, MemberState.FENCED):
            self._enter(MemberState.FATAL)

    def _fence(self) -> None:
        if self.is_in_group:
            self._enter(MemberState.FENCED)
            self.epoch = JOIN_EPOCH
        elif self.state in (MemberState.PREPARE_LEAVING, MemberState.LEAVING):
            self._enter(MemberState.UNSUBSCRIBED)

    # Commits

    def commit_identity(self) -> Identity:
        if self.epoch > 0:
            return Identity(self.epoch, self.member_id, self.instance_id)
        raise CommitFailed(
            "Offset commit cannot be completed since the consumer is not part of an active group for auto partition assignment; "
            "it is likely that the consumer was kicked out of the group."
        )

    def fetch_identity(self) -> Identity:
        return Identity(self.epoch, self.member_id) if self.epoch > 0 else NOBODY

    def commit_refused(self, error: KafkaError) -> KafkaError:
        if isinstance(error, UnknownMemberId):
            return CommitFailed(f"OffsetCommit failed with unknown member ID. {error}")
        if isinstance(error, (StaleMemberEpoch, CoordinatorNotAvailable, NotCoordinator, Timeout)):
            return error
        return KafkaError(f"Unexpected error in commit: {error}")

    def _enter(self, state: MemberState) -> None:
        if self.state is not state and self.state not in STATES_BEFORE[state]:
            raise IllegalState(f"Invalid state transition from {self.state.value} to {state.value}")
        log.debug("Member %s with epoch %d transitioned from %s to %s", self.member_id, self.epoch, self.state.value, state.value)
        self.state = state
