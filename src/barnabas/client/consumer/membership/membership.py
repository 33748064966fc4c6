"""The interface of a consumer's group membership, for the classic protocol and for KIP-848's.

In a poll, the consumer calls `poll`, which records that the application is alive. If it returns True, the consumer awaits `join_if_needed`,
which does everything that may change the assignment or call the application: joining, reconciling, listeners, automatic commits. Heartbeats
run in a task of their own and change nothing outside the membership; they call `wake` when a waiting poll must check the membership.

`membership_factory.make_membership` creates the membership for `group.protocol`; without `group.id` there is none.

All coroutines run on the client's event loop. `poll`, `need_rejoin`, `group_metadata`, `run_callbacks` and `ms_to_next_poll` only read and
write plain attributes and may be called from the application's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback = Callable[[dict[TopicPartition, OffsetAndMetadata], Exception | None], object]
"""`on_complete(offsets, error)`, called in the order of the commits."""

# What `close` does with the membership. By default, as in Kafka, a dynamic member leaves and a static member stays.
DEFAULT = "default"
LEAVE_GROUP = "leave_group"
REMAIN_IN_GROUP = "remain_in_group"


class Membership(Protocol):
    """Deadlines are times of the clock's `monotonic_ms`.

    The consumer's calls:

        subscribe(...):     subscriptions.subscribe(...); membership.on_subscription_change()
        poll(...):          if membership.poll(now): await membership.join_if_needed(deadline)     (may raise an error of the group)
                            membership.run_callbacks(); … wait for records, at most ms_to_next_poll(now), or until `wake` is called
        unsubscribe():      await membership.leave(reason); subscriptions.unsubscribe()
        assign(...):        await membership.before_assign(); subscriptions.assign_from_user(...)
        close(...):         await membership.close(deadline, operation)
    """

    def poll(self, now_ms: int) -> bool:
        """Called at the start of every poll: the application is alive. True if `join_if_needed` has something to do."""

    async def join_if_needed(self, deadline_ms: int) -> bool:
        """Does what is due: finds the coordinator, joins or reconciles, calls listeners, commits automatically.

        False if the deadline was reached; the next call continues. Raises errors that only the application can handle.
        """

    @property
    def need_rejoin(self) -> bool: ...

    def ms_to_next_poll(self, now_ms: int) -> int:
        """How long a poll may wait for records before it must call `poll` again."""

    def on_subscription_change(self) -> None:
        """Called after the SubscriptionState has the new subscription."""

    def enforce_rebalance(self, reason: str | None) -> None: ...

    async def before_assign(self) -> None:
        """Called before the application assigns partitions itself: commits positions if commits are automatic."""

    def group_metadata(self) -> ConsumerGroupMetadata: ...

    async def commit(self, offsets: Offsets, deadline_ms: int) -> None:
        """commit_sync: retries until the commit succeeds, is rejected, or the deadline is reached (Timeout)."""

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Called on the event loop. Never retries; `run_callbacks` calls the callback."""

    @property
    def callbacks_waiting(self) -> bool: ...

    def run_callbacks(self) -> None:
        """Calls the callbacks of finished commits, in order, in the application's thread. Raises FencedInstanceId if the member was
        fenced."""

    async def fetch_committed(
        self, partitions: Collection[TopicPartition], deadline_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets of the group; None for a partition without one. Raises Timeout at the deadline."""

    async def leave(self, reason: str) -> None:
        """unsubscribe(): revokes all partitions, calls the listener, and leaves the group if the protocol requires it."""

    async def close(self, deadline_ms: int, operation: str = DEFAULT) -> None:
        """Commits if commits are automatic, waits for pending commits, calls the listener, leaves the group, stops the heartbeats."""


class Subscriptions(Protocol):
    """The part of SubscriptionState that a membership uses."""

    rebalance_listener: ConsumerRebalanceListener | None

    def has_auto_assigned_partitions(self) -> bool: ...

    def has_pattern_subscription(self) -> bool: ...

    def subscribed_regex(self) -> str | None:
        """The pattern of a subscription that the broker evaluates (SubscriptionPattern); None for other subscriptions."""

    def matches_subscribed_pattern(self, topic: str) -> bool: ...

    def subscribe_from_pattern(self, topics: Collection[str]) -> bool:
        """True if this changed the subscription."""

    def subscription(self) -> frozenset[str] | set[str]: ...

    def group_subscribe(self, topics: Collection[str]) -> bool:
        """Sets the topics of the whole group, which a leader must watch; True if some are new."""

    def reset_group_subscription(self) -> None: ...

    def metadata_topics(self) -> Collection[str]:
        """The topics of the whole group for its leader, otherwise the topics of the subscription."""

    def assigned_partitions(self) -> Collection[TopicPartition]: ...

    def check_assignment_matched_subscription(self, partitions: Collection[TopicPartition]) -> bool: ...

    def assign_from_subscribed(self, partitions: Collection[TopicPartition]) -> None:
        """Keeps the state of partitions that remain assigned."""

    def assign_from_subscribed_awaiting_callback(self, partitions: Collection[TopicPartition], added: Collection[TopicPartition]) -> None:
        """Like `assign_from_subscribed`, but `added` are neither fetched nor positioned before `enable_partitions_awaiting_callback`."""

    def enable_partitions_awaiting_callback(self, partitions: Collection[TopicPartition]) -> None: ...

    def mark_pending_revocation(self, partitions: Collection[TopicPartition]) -> None:
        """Stops fetching and returning records of these partitions."""

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions to commit, of all partitions that have one."""
