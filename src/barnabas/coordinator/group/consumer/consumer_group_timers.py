"""The timers of each member of a consumer group: its session, and the time limits for revoking partitions, joining and syncing.

An expired timer fences the member, unless the group or the member has changed meanwhile: every action checks that first, so a timer that
was not cancelled does no harm.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.coordinator.group.consumer.consumer_group_member import ConsumerGroupMember
from barnabas.coordinator.result import CoordinatorResult, CoordinatorTimer


class Fence(Protocol):
    def __call__(self, group_id: str, member_id: str, epoch: int | None = None, /) -> CoordinatorResult[None] | None:
        """Remove the member from its group if it is still in it and, when `epoch` is given, still at that epoch."""


class ConsumerGroupTimers:
    def __init__(self, timer: CoordinatorTimer, fence: Fence) -> None:
        self._timer = timer
        self._fence = fence

    def schedule_session(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._timer.schedule(session_key(group_id, member_id), timeout_ms, lambda: self._fence(group_id, member_id))

    def schedule_rebalance(self, group_id: str, member: ConsumerGroupMember) -> None:
        """The member has to leave its epoch within the rebalance timeout, by revoking partitions."""
        member_id, epoch = member.member_id, member.member_epoch
        key = rebalance_key(group_id, member_id)
        self._timer.schedule(key, member.rebalance_timeout_ms, lambda: self._fence(group_id, member_id, epoch))

    def cancel_rebalance(self, group_id: str, member_id: str) -> None:
        self._timer.cancel(rebalance_key(group_id, member_id))

    def schedule_join(self, group_id: str, member: ConsumerGroupMember) -> None:
        """A classic member received REBALANCE_IN_PROGRESS. A repetition does not extend its time to join."""
        member_id = member.member_id
        if not self._timer.is_scheduled(classic_join_key(group_id, member_id)):
            key = classic_join_key(group_id, member_id)
            self._timer.schedule(key, member.rebalance_timeout_ms, lambda: self._fence(group_id, member_id))

    def cancel_join(self, group_id: str, member_id: str) -> None:
        self._timer.cancel(classic_join_key(group_id, member_id))

    def schedule_sync(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._timer.schedule(classic_sync_key(group_id, member_id), timeout_ms, lambda: self._fence(group_id, member_id))

    def cancel_sync(self, group_id: str, member_id: str) -> None:
        self._timer.cancel(classic_sync_key(group_id, member_id))

    def cancel_all(self, group_id: str, member_id: str) -> None:
        self._timer.cancel(session_key(group_id, member_id))
        self.cancel_rebalance(group_id, member_id)
        self.cancel_join(group_id, member_id)
        self.cancel_sync(group_id, member_id)


def session_key(group_id: str, member_id: str) -> str:
    return f"session-timeout-{group_id}-{member_id}"


def rebalance_key(group_id: str, member_id: str) -> str:
    return f"rebalance-timeout-{group_id}-{member_id}"


def classic_join_key(group_id: str, member_id: str) -> str:
    return f"consumer-group-join-{group_id}-{member_id}"


def classic_sync_key(group_id: str, member_id: str) -> str:
    return f"consumer-group-sync-{group_id}-{member_id}"
