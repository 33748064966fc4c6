"""A consumer's place in its group, as the consumer sees it; the classic protocol and KIP-848's stand behind this one face.

On the way of a poll: the consumer tells `poll` that the application lives, and when that says so awaits `join_if_needed`, which does all
that may change the assignment or call the application: joining, reconciling, listeners, automatic commits. Heartbeats run in a task of
their own and change nothing outside the membership; they call `wake` when a poll that waits for records has to look.

`membership_factory.make_membership` makes the one that `group.protocol` asks for; without `group.id` there is none.

All coroutines run on the client's loop. `poll`, `need_rejoin`, `group_metadata`, `run_callbacks` and `ms_to_next_poll` only read and write
plain attributes and may be called from the thread of the application.
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
"""`on_complete(offsets, error)`, in Kafka's order of commits."""

# What `close` does about the group, beyond Kafka's rule that a dynamic member leaves and a static one stays.
DEFAULT = "default"
LEAVE_GROUP = "leave_group"
REMAIN_IN_GROUP = "remain_in_group"


class Membership(Protocol):
    """Deadlines are in the clock's `monotonic_ms`.

    What the consumer does with it:

        subscribe(...):     subscriptions.subscribe(...); membership.on_subscription_change()
        poll(...):          if membership.poll(now): await membership.join_if_needed(deadline)     (may raise what the group raised)
                            membership.run_callbacks(); … wait for records, at most ms_to_next_poll(now), or until `wake` is called
        unsubscribe():      await membership.leave(reason); subscriptions.unsubscribe()
        assign(...):        await membership.before_assign(); subscriptions.assign_from_user(...)
        close(...):         await membership.close(deadline, operation)
    """

    def poll(self, now_ms: int) -> bool:
        """Told at the start of every poll: the application is alive. True if `join_if_needed` has something to do."""

    async def join_if_needed(self, deadline_ms: int) -> bool:
        """Does what is due: finds the coordinator, joins or reconciles, tells listeners, commits automatically.

        False if the deadline came first; the next call goes on where this one stopped. Raises what only the application can settle.
        """

    @property
    def need_rejoin(self) -> bool: ...

    def ms_to_next_poll(self, now_ms: int) -> int:
        """How long a poll may wait for records before it has to call `poll` again."""

    def on_subscription_change(self) -> None:
        """Called after the SubscriptionState has the new subscription."""

    def enforce_rebalance(self, reason: str | None) -> None: ...

    async def before_assign(self) -> None:
        """The application takes its partitions by itself from now on: what was read is committed if commits are automatic."""

    def group_metadata(self) -> ConsumerGroupMetadata: ...

    async def commit(self, offsets: Offsets, deadline_ms: int) -> None:
        """commit_sync: tried again until done, refused, or the deadline (Timeout)."""

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """On the loop. Never tried again; the callback waits for `run_callbacks`."""

    @property
    def callbacks_waiting(self) -> bool: ...

    def run_callbacks(self) -> None:
        """Calls, in order, the callbacks of commits that have ended; in the application's thread. Raises FencedInstanceId once fenced."""

    async def fetch_committed(
        self, partitions: Collection[TopicPartition], deadline_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed; None for a partition without. Raises Timeout at the deadline."""

    async def leave(self, reason: str) -> None:
        """unsubscribe(): gives all partitions back, tells the listener, and leaves the group where the protocol has such a member leave."""

    async def close(self, deadline_ms: int, operation: str = DEFAULT) -> None:
        """Commits if that is automatic, waits for pending commits, tells the listener, leaves, ends the heartbeats."""


class Subscriptions(Protocol):
    """What a membership asks of, and tells, the SubscriptionState."""

    rebalance_listener: ConsumerRebalanceListener | None

    def has_auto_assigned_partitions(self) -> bool: ...

    def has_pattern_subscription(self) -> bool: ...

    def subscribed_regex(self) -> str | None:
        """The pattern of a subscription that the broker evaluates (SubscriptionPattern); None for all others."""

    def matches_subscribed_pattern(self, topic: str) -> bool: ...

    def subscribe_from_pattern(self, topics: Collection[str]) -> bool:
        """True if that changed the subscription."""

    def subscription(self) -> frozenset[str] | set[str]: ...

    def group_subscribe(self, topics: Collection[str]) -> bool:
        """The topics of the whole group, for a leader that has to watch them; True if some are new."""

    def reset_group_subscription(self) -> None: ...

    def metadata_topics(self) -> Collection[str]:
        """The topics of the whole group for its leader, else those of the subscription."""

    def assigned_partitions(self) -> Collection[TopicPartition]: ...

    def check_assignment_matched_subscription(self, partitions: Collection[TopicPartition]) -> bool: ...

    def assign_from_subscribed(self, partitions: Collection[TopicPartition]) -> None:
        """Keeps the state of partitions that stay."""

    def assign_from_subscribed_awaiting_callback(self, partitions: Collection[TopicPartition], added: Collection[TopicPartition]) -> None:
        """As above, but `added` are neither fetched nor positioned before `enable_partitions_awaiting_callback`."""

    def enable_partitions_awaiting_callback(self, partitions: Collection[TopicPartition]) -> None: ...

    def mark_pending_revocation(self, partitions: Collection[TopicPartition]) -> None:
        """Nothing more of them is fetched or handed out."""

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Positions to commit, of all partitions that have one."""
