"""The state machine of a classic group member: its state, and what a response of the coordinator means.

It sends nothing and reads no clock; `classic_membership` acts on it. For every error it decides whether the member must join again, whether
it may keep its member id, and which error the application receives.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from typing import Final

from barnabas.client.consumer.group_metadata import UNKNOWN_GENERATION, UNKNOWN_MEMBER
from barnabas.client.consumer.offsets.offset_messages import NO_MEMBER, Identity
from barnabas.client.errors import (
    CommitFailed,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupAuthorization,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    KafkaError,
    MemberIdRequired,
    NotCoordinator,
    RebalanceInProgress,
    Timeout,
    UnknownMemberId,
)
from barnabas.protocol.errors import UnsupportedVersion

log = logging.getLogger(__name__)


class ClassicMemberState(Enum):
    UNJOINED = "UNJOINED"  # not in the group
    PREPARING_REBALANCE = "PREPARING_REBALANCE"  # JoinGroup is in flight
    COMPLETING_REBALANCE = "COMPLETING_REBALANCE"  # joined, SyncGroup is in flight
    STABLE = "STABLE"  # has its assignment


# Every state with its allowed previous states.
STATES_BEFORE: Final[dict[ClassicMemberState, frozenset[ClassicMemberState]]] = {
    ClassicMemberState.UNJOINED: frozenset(ClassicMemberState),
    ClassicMemberState.PREPARING_REBALANCE: frozenset(ClassicMemberState),
    ClassicMemberState.COMPLETING_REBALANCE: frozenset({ClassicMemberState.PREPARING_REBALANCE}),
    ClassicMemberState.STABLE: frozenset({ClassicMemberState.COMPLETING_REBALANCE}),
}

# After these errors the member joins again at once.
REJOIN_AT_ONCE: Final = (UnknownMemberId, IllegalGeneration, RebalanceInProgress, MemberIdRequired)

COMMIT_FAILED: Final = (
    "Commit cannot be completed since the group has already rebalanced and assigned the partitions to another member. This means that the "
    "time between subsequent calls to poll() was longer than the configured max.poll.interval.ms, which typically implies that the poll "
    "loop is spending too much time message processing. You can address this either by increasing max.poll.interval.ms or by reducing the "
    "maximum size of batches returned in poll() with max.poll.records."
)


class Unjoined(KafkaError):
    """The member left while it was joining."""

    retriable = True


@dataclass(frozen=True, slots=True)
class Generation:
    id: int = UNKNOWN_GENERATION
    member_id: str = UNKNOWN_MEMBER
    protocol: str | None = None

    @property
    def was_reset(self) -> bool:
        return self.id == UNKNOWN_GENERATION and self.protocol is None


NO_GENERATION: Final = Generation()


class ClassicHeartbeatResult(Enum):
    """The result of a heartbeat."""

    LIVES = "the coordinator knows this member"
    FAILED = "to be tried again soon"
    FATAL = "only the application can do something about it"


class ClassicMember:
    def __init__(self, group_id: str, instance_id: str | None) -> None:
        self.instance_id = instance_id
        self.state = ClassicMemberState.UNJOINED
        self.generation = NO_GENERATION
        self.rejoin_needed = True
        self.rejoin_reason = ""
        self.needs_prepare = True  # partitions are revoked before the next join
        self._group_id = group_id

    @property
    def is_dynamic(self) -> bool:
        return self.instance_id is None

    @property
    def has_joined(self) -> bool:
        return self.state in (ClassicMemberState.COMPLETING_REBALANCE, ClassicMemberState.STABLE)

    @property
    def is_rebalancing(self) -> bool:
        return self.state in (ClassicMemberState.PREPARING_REBALANCE, ClassicMemberState.COMPLETING_REBALANCE)

    @property
    def owns_nothing(self) -> bool:
        """Whether other members may own the partitions of this member by now."""
        return self.generation.id == UNKNOWN_GENERATION or self.generation.member_id == UNKNOWN_MEMBER

    # The way to an assignment

    def request_rejoin(self, reason: str, detail: str | None = None) -> None:
        log.info("Request joining group due to: %s", detail or reason)
        self.rejoin_reason = reason
        self.rejoin_needed = True

    def request_rejoin_if_needed(self, reason: str, detail: str | None = None) -> None:
        if not self.rejoin_needed:
            self.request_rejoin(reason, detail)

    def begin_join(self) -> None:
        self._enter(ClassicMemberState.PREPARING_REBALANCE)

    def joined(self, generation: Generation) -> None:
        """Raises Unjoined if the member left in the meantime."""
        if self.state is not ClassicMemberState.PREPARING_REBALANCE:
            raise Unjoined("The member left the group while it was joining it.")
        self._enter(ClassicMemberState.COMPLETING_REBALANCE)
        self.generation = generation
        log.info("Successfully joined group with generation %s", generation)

    def synced(self, protocol: str | None) -> None:
        """Raises an error if this rebalance has failed."""
        if self.generation.was_reset or self.state is not ClassicMemberState.COMPLETING_REBALANCE:
            raise IllegalGeneration("The member was put out of its generation before it was given its assignment.")
        if protocol is not None and protocol != self.generation.protocol:
            raise InconsistentGroupProtocol(f"The coordinator synced protocol {protocol}, but {self.generation.protocol} was joined")
        self._enter(ClassicMemberState.STABLE)
        self.rejoin_reason = ""
        self.rejoin_needed = False
        log.info("Successfully synced group in generation %s", self.generation)

    def reset(self, reason: str, *, forget_member_id: bool) -> None:
        """Leaves the group and requests a rejoin; with the same member id if it may still be valid."""
        log.info("Resetting generation %sdue to: %s", "and member id " if forget_member_id else "", reason)
        self._enter(ClassicMemberState.UNJOINED)
        self.generation = NO_GENERATION if forget_member_id else Generation(member_id=self.generation.member_id)
        self.request_rejoin(reason)
        self.needs_prepare = True

    def left(self) -> None:
        self.reset("consumer pro-actively leaving the group", forget_member_id=True)

    # What errors mean

    def join_refused(self, error: KafkaError, sent: Generation, given_member_id: str) -> KafkaError:
        if isinstance(error, UnknownMemberId):
            if self.generation == sent:
                self._reset_by("JOIN_GROUP", error)
        elif isinstance(error, MemberIdRequired):
            self.generation = Generation(member_id=given_member_id)
            self.request_rejoin(f"need to re-join with the given member-id: {given_member_id}")
        elif isinstance(error, GroupMaxSizeReached):
            return GroupMaxSizeReached(f"Consumer group {self._group_id} already has the configured maximum number of members.")
        elif isinstance(error, GroupAuthorization):
            return GroupAuthorization(group_id=self._group_id)
        elif not isinstance(error, _JOIN_ERRORS):
            return KafkaError(f"Unexpected error in join group response: {error}")
        return error

    def sync_refused(self, error: KafkaError, sent: Generation) -> KafkaError:
        if isinstance(error, GroupAuthorization):
            return GroupAuthorization(group_id=self._group_id)
        if isinstance(error, (UnknownMemberId, IllegalGeneration)):
            if self.generation == sent:
                self._reset_by("SYNC_GROUP", error)
        elif not isinstance(error, (RebalanceInProgress, FencedInstanceId, CoordinatorNotAvailable, NotCoordinator)):
            return KafkaError(f"Unexpected error from SyncGroup: {error}")
        return error

    def heartbeat_refused(self, error: KafkaError, sent: Generation) -> ClassicHeartbeatResult:
        if isinstance(error, RebalanceInProgress):
            if self.state is ClassicMemberState.STABLE:
                self.request_rejoin("group is already rebalancing")
            return ClassicHeartbeatResult.LIVES
        if isinstance(error, (IllegalGeneration, UnknownMemberId, FencedInstanceId)):
            if self.generation != sent:
                return ClassicHeartbeatResult.LIVES
            self._reset_by("HEARTBEAT", error)
            return ClassicHeartbeatResult.FATAL if isinstance(error, FencedInstanceId) else ClassicHeartbeatResult.FAILED
        return ClassicHeartbeatResult.FATAL if isinstance(error, GroupAuthorization) else ClassicHeartbeatResult.FAILED

    # Commits

    def commit_identity(self) -> Identity:
        if self.state is ClassicMemberState.STABLE:
            return Identity(self.generation.id, self.generation.member_id, self.instance_id)
        log.info("Failing OffsetCommit request since the consumer is not part of an active group")
        if self.is_rebalancing:
            raise RebalanceInProgress(
                "Offset commit cannot be completed since the consumer is undergoing a rebalance for auto partition assignment. "
                "You can try completing the rebalance by calling poll() and then retry the operation."
            )
        raise CommitFailed(
            "Offset commit cannot be completed since the consumer is not part of an active group for auto partition assignment; "
            "it is likely that the consumer was kicked out of the group."
        )

    def commit_refused(self, error: KafkaError, sent: Identity) -> KafkaError:
        unchanged = sent == NO_MEMBER or (self.generation.id, self.generation.member_id) == (sent.generation, sent.member_id)
        preparing = self.state is ClassicMemberState.PREPARING_REBALANCE
        if isinstance(error, FencedInstanceId):
            if unchanged:
                return error
            return _rebalancing("'s old generation is fenced by its group instance id") if preparing else CommitFailed(COMMIT_FAILED)
        if isinstance(error, RebalanceInProgress):
            self.request_rejoin("offset commit failed since group is already rebalancing")
            return RebalanceInProgress(
                "Offset commit cannot be completed since the consumer group is executing a rebalance at the moment. "
                "You can try completing the rebalance by calling poll() and then retry commit again"
            )
        if isinstance(error, (UnknownMemberId, IllegalGeneration)):
            if not unchanged and preparing:
                return _rebalancing("'s generation is already stale")
            self._reset_by("OFFSET_COMMIT", error)
            return CommitFailed(COMMIT_FAILED)
        if isinstance(error, (CoordinatorNotAvailable, NotCoordinator, Timeout)):
            return error
        return KafkaError(f"Unexpected error in commit: {error}")

    def _reset_by(self, api: str, error: KafkaError) -> None:
        """Keeps the member id after ILLEGAL_GENERATION, because it may still be valid. The group then need not wait until the old id times
        out."""
        reason = f"encountered {type(error).__name__} from {api} response"
        self.reset(reason, forget_member_id=not isinstance(error, IllegalGeneration))

    def _enter(self, state: ClassicMemberState) -> None:
        assert self.state in STATES_BEFORE[state], f"{self.state} to {state}"
        self.state = state


_JOIN_ERRORS: Final = (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
    FencedInstanceId,
    InconsistentGroupProtocol,
    InvalidSessionTimeout,
    InvalidGroupId,
    UnsupportedVersion,
    RebalanceInProgress,
)


def _rebalancing(why: str) -> RebalanceInProgress:
    return RebalanceInProgress(
        f"Offset commit cannot be completed since the consumer member{why}, meaning it has already participated another rebalance and got "
        "a new generation. You can try completing the rebalance by calling poll() and then retry commit again"
    )
