"""The clocks that run for each member of a consumer group: its session, and how long it may take to give partitions back, to join, to sync.

When one runs out the member is fenced, unless by then the group or the member is another: every action looks again before it does anything,
so a timer that was not cancelled does no harm.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.coordinator.group.consumer.consumer_group_member import ConsumerGroupMember
from barnabas.coordinator.result import Result, Timer


class Fence(Protocol):
    def __call__(self, group_id: str, member_id: str, epoch: int | None = None, /) -> Result[None] | None:
        """Take the member out of its group if it is still there, and still at `epoch` where one is given."""


class ConsumerGroupTimers:
    def __init__(self, timer: Timer, fence: Fence) -> None:
        self._timer = timer
        self._fence = fence

    def schedule_session(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._timer.schedule(session_key(group_id, member_id), timeout_ms, lambda: self._fence(group_id, member_id))

    def schedule_rebalance(self, group_id: str, member: ConsumerGroupMember) -> None:
        """The member has to leave its epoch, by giving back what it was asked for."""
        member_id, epoch = member.member_id, member.member_epoch
        key = rebalance_key(group_id, member_id)
        self._timer.schedule(key, member.rebalance_timeout_ms, lambda: self._fence(group_id, member_id, epoch))

    def cancel_rebalance(self, group_id: str, member_id: str) -> None:
        self._timer.cancel(rebalance_key(group_id, member_id))

    def schedule_join(self, group_id: str, member: ConsumerGroupMember) -> None:
        """A classic member was told to join again; being told twice gives it no more time."""
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
