# Compiled by mypyc: src/compiled.toml lists this module.
"""The subscription of a consumer, its assignment, and its positions. This class is the only owner of positions.

`Consumer` and `AsyncConsumer` set the subscription, the membership sets the assignment, the fetcher reads positions and stores fetch
results. The class does not wait, send, or read the time. Readers in other threads see complete assignments, because a change replaces the
old one. Every method that changes something holds `lock`; a caller that needs several calls to be atomic holds it around them.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Collection, Iterable
from enum import Enum
from typing import Final, NamedTuple

from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.offset_reset import NONE, AutoOffsetResetStrategy
from barnabas.client.consumer.offsets.partition_state import FetchPosition, FetchState, TopicPartitionState, Truncation, epoch_or_none
from barnabas.client.errors import IllegalArgument, IllegalState, NoOffsetForPartition
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid

_log: Final = logging.getLogger(__name__)

EXCLUSIVE: Final = "Subscription to topics, partitions and pattern are mutually exclusive"


class SubscriptionType(Enum):
    NONE = "NONE"
    AUTO_TOPICS = "AUTO_TOPICS"
    AUTO_PATTERN = "AUTO_PATTERN"  # matched by the client, against all topics
    AUTO_PATTERN_RE2J = "AUTO_PATTERN_RE2J"  # matched by the broker (KIP-848)
    USER_ASSIGNED = "USER_ASSIGNED"


class SubscriptionPattern(NamedTuple):
    """A regular expression of Google's RE2 that the broker evaluates; for group.protocol=consumer."""

    pattern: str

    def __str__(self) -> str:
        return self.pattern


class SubscriptionState:
    def __init__(self, default_reset: AutoOffsetResetStrategy) -> None:
        self.lock = threading.RLock()
        self.default_reset = default_reset
        self.type = SubscriptionType.NONE
        self.pattern: re.Pattern[str] | None = None
        self.re2j_pattern: SubscriptionPattern | None = None
        self.rebalance_listener: ConsumerRebalanceListener | None = None
        self.assignment_id = 0  # incremented with every change of the assignment
        self._subscription: frozenset[str] = frozenset()
        self._group_subscription: frozenset[str] = frozenset()
        self._assignment: dict[TopicPartition, TopicPartitionState] = {}
        self._assigned_topic_ids: frozenset[Uuid] = frozenset()

    # Subscriptions of the user

    def subscribe(self, topics: Iterable[str], listener: ConsumerRebalanceListener | None = None) -> bool:
        """Whether the topics differ from the previous ones."""
        with self.lock:
            self._set_type(SubscriptionType.AUTO_TOPICS)
            self.rebalance_listener = listener
            return self._change_subscription(frozenset(topics))

    def subscribe_pattern(self, pattern: re.Pattern[str], listener: ConsumerRebalanceListener | None = None) -> None:
        with self.lock:
            self._set_type(SubscriptionType.AUTO_PATTERN)
            self.rebalance_listener = listener
            self.pattern = pattern

    def subscribe_re2j(self, pattern: SubscriptionPattern, listener: ConsumerRebalanceListener | None = None) -> None:
        with self.lock:
            self._set_type(SubscriptionType.AUTO_PATTERN_RE2J)
            self.rebalance_listener = listener
            self.re2j_pattern = pattern

    def subscribe_from_pattern(self, topics: Iterable[str]) -> bool:
        """Sets the topics that match the pattern now; returns whether they differ from the previous ones."""
        with self.lock:
            if self.type is not SubscriptionType.AUTO_PATTERN:
                raise IllegalArgument(f"Attempt to subscribe from pattern while subscription type set to {self.type.value}")
            return self._change_subscription(frozenset(topics))

    def assign_from_user(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the topics differ from the previous ones. Partitions that remain assigned keep their positions."""
        with self.lock:
            self._set_type(SubscriptionType.USER_ASSIGNED)
            if self._assignment.keys() == set(partitions):
                return False
            self._replace_assignment(partitions)
            return self._change_subscription(frozenset(partition.topic for partition in partitions))

    def unsubscribe(self) -> None:
        with self.lock:
            self._subscription = frozenset()
            self._group_subscription = frozenset()
            self._assigned_topic_ids = frozenset()
            self._assignment = {}
            self.pattern = None
            self.re2j_pattern = None
            self.type = SubscriptionType.NONE
            self.assignment_id += 1

    def _set_type(self, new_type: SubscriptionType) -> None:
        if self.type is SubscriptionType.NONE:
            self.type = new_type
        elif self.type is not new_type:
            raise IllegalState(EXCLUSIVE)

    def _change_subscription(self, topics: frozenset[str]) -> bool:
        if self._subscription == topics:
            return False
        self._subscription = topics
        return True

    def subscription(self) -> frozenset[str]:
        """The subscribed topics; empty if the user assigned partitions."""
        return self._subscription if self.has_auto_assigned_partitions() else frozenset()

    def has_no_subscription_or_user_assignment(self) -> bool:
        return self.type is SubscriptionType.NONE

    def has_auto_assigned_partitions(self) -> bool:
        return self.type in (SubscriptionType.AUTO_TOPICS, SubscriptionType.AUTO_PATTERN, SubscriptionType.AUTO_PATTERN_RE2J)

    def has_pattern_subscription(self) -> bool:
        return self.type is SubscriptionType.AUTO_PATTERN

    def subscribed_regex(self) -> str | None:
        """The pattern that the broker evaluates; None for other subscriptions."""
        return None if self.re2j_pattern is None else self.re2j_pattern.pattern

    def matches_subscribed_pattern(self, topic: str) -> bool:
        return self.has_pattern_subscription() and self.pattern is not None and self.pattern.fullmatch(topic) is not None

    # Assignments of the group

    def group_subscribe(self, topics: Iterable[str]) -> bool:
        """Sets the topics of all members, whose metadata the leader of a group needs; returns whether there are some this member does not
        subscribe to."""
        with self.lock:
            if not self.has_auto_assigned_partitions():
                raise IllegalState(EXCLUSIVE)
            self._group_subscription = frozenset(topics)
            return not self._group_subscription <= self._subscription

    def reset_group_subscription(self) -> None:
        with self.lock:
            self._group_subscription = frozenset()

    def metadata_topics(self) -> frozenset[str]:
        """The topics whose metadata is needed, as far as their names are known."""
        return self._subscription | self._group_subscription

    def needs_metadata(self, topic: str) -> bool:
        return topic in self._subscription or topic in self._group_subscription

    @property
    def assigned_topic_ids(self) -> frozenset[Uuid]:
        return self._assigned_topic_ids

    def set_assigned_topic_ids(self, topic_ids: Iterable[Uuid]) -> None:
        """Sets the topic ids of the target assignment whose names the metadata must resolve, for a pattern that the broker evaluates."""
        with self.lock:
            self._assigned_topic_ids = frozenset(topic_ids)

    def check_assignment_matched_subscription(self, partitions: Collection[TopicPartition]) -> bool:
        if self.pattern is not None:
            return all(self.pattern.fullmatch(partition.topic) for partition in partitions)
        return all(partition.topic in self._subscription for partition in partitions)

    def assign_from_subscribed(self, partitions: Collection[TopicPartition]) -> None:
        with self.lock:
            if not self.has_auto_assigned_partitions():
                raise IllegalArgument("Attempt to dynamically assign partitions while manual assignment in use")
            self._replace_assignment(partitions)

    def assign_from_subscribed_awaiting_callback(self, partitions: Collection[TopicPartition], added: Collection[TopicPartition]) -> None:
        """Like `assign_from_subscribed`, but nothing is fetched from `added` until `enable_partitions_awaiting_callback`."""
        with self.lock:
            self.assign_from_subscribed(partitions)
            for partition in added:
                self.state(partition).pending_on_assigned_callback = True

    def enable_partitions_awaiting_callback(self, partitions: Iterable[TopicPartition]) -> None:
        with self.lock:
            for partition in partitions:
                self.state(partition).pending_on_assigned_callback = False

    def mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """Stops fetching and returning records of these partitions."""
        with self.lock:
            for partition in partitions:
                self.state(partition).pending_revocation = True

    def _replace_assignment(self, partitions: Iterable[TopicPartition]) -> None:
        self.assignment_id += 1
        previous = self._assignment
        # Sorted by topic, so that a fetch request names each topic once.
        by_topic: dict[str, list[TopicPartition]] = {}
        for partition in partitions:
            by_topic.setdefault(partition.topic, []).append(partition)
        ordered = dict.fromkeys(partition for group in by_topic.values() for partition in group)
        self._assignment = {partition: previous.get(partition) or TopicPartitionState() for partition in ordered}

    # The assignment

    @property
    def assignment(self) -> dict[TopicPartition, TopicPartitionState]:
        """The states by partition, least recently fetched first. The caller must not change it."""
        return self._assignment

    def assigned_partitions(self) -> set[TopicPartition]:
        return set(self._assignment)

    def is_assigned(self, partition: TopicPartition) -> bool:
        return partition in self._assignment

    def state(self, partition: TopicPartition) -> TopicPartitionState:
        state = self._assignment.get(partition)
        if state is None:
            raise IllegalState(f"No current assignment for partition {partition}")
        return state

    def state_or_none(self, partition: TopicPartition) -> TopicPartitionState | None:
        return self._assignment.get(partition)

    def move_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Moves partitions that were just read to the end, so that the next fetch starts with the others."""
        with self.lock:
            moved = {partition: state for partition in partitions if (state := self._assignment.get(partition)) is not None}
            if moved:
                self._assignment = {partition: state for partition, state in self._assignment.items() if partition not in moved} | moved

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        with self.lock:
            for partition in partitions:
                self.state(partition).paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        with self.lock:
            for partition in partitions:
                self.state(partition).paused = False

    def paused_partitions(self) -> set[TopicPartition]:
        return self._where(lambda state: state.paused)

    def is_paused(self, partition: TopicPartition) -> bool:
        state = self._assignment.get(partition)
        return state is not None and state.paused

    def is_fetchable(self, partition: TopicPartition) -> bool:
        state = self._assignment.get(partition)
        return state is not None and state.is_fetchable

    def fetchable_partitions(self) -> list[TopicPartition]:
        return [partition for partition, state in self._assignment.items() if state.is_fetchable]

    # Positions

    def position(self, partition: TopicPartition) -> FetchPosition | None:
        return self.state(partition).position

    def valid_position(self, partition: TopicPartition) -> FetchPosition | None:
        state = self.state(partition)
        return state.position if state.has_valid_position else None

    def has_valid_position(self, partition: TopicPartition) -> bool:
        state = self._assignment.get(partition)
        return state is not None and state.has_valid_position

    def has_all_fetch_positions(self) -> bool:
        for state in self._assignment.values():  # noqa: SIM110 - in every poll, and a generator costs twice as much
            if state.fetch_state is not FetchState.FETCHING:
                return False
        return True

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets that a commit without arguments commits."""
        with self.lock:
            return {
                partition: OffsetAndMetadata(state.position.offset, "", epoch_or_none(state.position.offset_epoch))
                for partition, state in self._assignment.items()
                if state.has_valid_position and state.position is not None
            }

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.seek_validated(partition, FetchPosition(offset))

    def seek_validated(self, partition: TopicPartition, position: FetchPosition) -> None:
        with self.lock:
            self.state(partition).seek_validated(position)

    def seek_unvalidated(self, partition: TopicPartition, position: FetchPosition) -> None:
        with self.lock:
            self.state(partition).seek_unvalidated(position)

    def maybe_seek_unvalidated(self, partition: TopicPartition, position: FetchPosition, strategy: AutoOffsetResetStrategy) -> bool:
        """Applies the result of a reset, unless the reset is no longer current."""
        with self.lock:
            state = self._assignment.get(partition)
            if state is None or state.fetch_state is not FetchState.AWAIT_RESET or state.reset_strategy != strategy:
                _log.debug("Skipping reset of partition %s: it is no longer assigned, or the reset is no longer current", partition)
                return False
            _log.info("Resetting offset for partition %s to position %s.", partition, position)
            state.seek_unvalidated(position)
            return True

    def set_position(self, partition: TopicPartition, position: FetchPosition) -> None:
        with self.lock:
            state = self.state(partition)
            if not state.has_valid_position:
                raise IllegalState("Cannot set a new position without a valid current position")
            state.position = position

    # Initial positions: a committed offset, otherwise a reset

    def initializing_partitions(self) -> set[TopicPartition]:
        return self._where(lambda state: state.fetch_state is FetchState.INITIALIZING)

    def reset_initializing_positions(self, include: Callable[[TopicPartition], bool] = lambda _: True) -> None:
        """Requests a reset by the default strategy for all partitions without a position; raises an error if the strategy is none."""
        with self.lock:
            initializing = [partition for partition in self.initializing_partitions() if include(partition)]
            if self.default_reset == NONE:
                if initializing:
                    raise NoOffsetForPartition(set(initializing))
                return
            for partition in initializing:
                self.request_offset_reset([partition])

    def has_default_reset_policy(self) -> bool:
        return self.default_reset != NONE

    def request_offset_reset(self, partitions: Iterable[TopicPartition], strategy: AutoOffsetResetStrategy | None = None) -> None:
        with self.lock:
            partition_list = list(partitions)
            for partition in partition_list:
                self.state(partition)
            for partition in partition_list:
                self.state(partition).reset(strategy or self.default_reset)

    def request_offset_reset_if_assigned(self, partition: TopicPartition) -> None:
        with self.lock:
            state = self._assignment.get(partition)
            if state is not None:
                state.reset(self.default_reset)

    def partitions_needing_reset(self, now_ms: int) -> set[TopicPartition]:
        return self._where(lambda state: state.fetch_state is FetchState.AWAIT_RESET and state.may_retry(now_ms))

    def reset_strategy(self, partition: TopicPartition) -> AutoOffsetResetStrategy | None:
        return self.state(partition).reset_strategy

    def set_next_allowed_retry(self, partitions: Iterable[TopicPartition], next_retry_ms: int) -> None:
        with self.lock:
            for partition in partitions:
                state = self._assignment.get(partition)
                if state is not None:
                    state.next_retry_ms = next_retry_ms

    # Validation: does the log of the new leader still contain the records that were read?

    def maybe_validate_position(self, partition: TopicPartition, leader_id: int, leader_epoch: int, *, can_validate: bool = True) -> bool:
        """Sets the leader; returns whether the position awaits validation. `can_validate`: the broker supports OffsetForLeaderEpoch for
        clients."""
        with self.lock:
            state = self._assignment.get(partition)
            if state is None:
                return False
            position = state.position
            if position is None or state.fetch_state is FetchState.AWAIT_RESET or leader_id < 0:
                return state.fetch_state is FetchState.AWAIT_VALIDATION
            if not can_validate:
                state.seek_validated(FetchPosition(position.offset, position.offset_epoch, leader_id, leader_epoch))
                return False
            if position.leader_id != leader_id or position.leader_epoch != leader_epoch:
                state.validate(FetchPosition(position.offset, position.offset_epoch, leader_id, leader_epoch))
                state.preferred_read_replica = None
            return state.fetch_state is FetchState.AWAIT_VALIDATION

    def partitions_needing_validation(self, now_ms: int) -> set[TopicPartition]:
        return self._where(lambda state: state.fetch_state is FetchState.AWAIT_VALIDATION and state.may_retry(now_ms))

    def awaiting_validation(self, partition: TopicPartition) -> bool:
        return self.state(partition).fetch_state is FetchState.AWAIT_VALIDATION

    def complete_validation(self, partition: TopicPartition) -> None:
        with self.lock:
            state = self.state(partition)
            if state.position is not None:
                state.seek_validated(state.position)

    def maybe_complete_validation(
        self, partition: TopicPartition, validated: FetchPosition, end_offset: int, leader_epoch: int
    ) -> Truncation | None:
        """Applies the leader's response for the epoch of `validated`: the end offset of that epoch. Returns a truncation if no reset
        strategy is set."""
        with self.lock:
            state = self._assignment.get(partition)
            if state is None or state.fetch_state is not FetchState.AWAIT_VALIDATION or state.position != validated:
                _log.debug("Skipping completed validation for partition %s: it is no longer expected", partition)
                return None
            if end_offset < 0 or leader_epoch < 0:
                if not self.has_default_reset_policy():
                    return Truncation(partition, validated, None)
                _log.info("Truncation detected for partition %s at offset %s, resetting offset", partition, validated)
                state.reset(self.default_reset)
            elif end_offset < validated.offset:
                if not self.has_default_reset_policy():
                    return Truncation(partition, validated, OffsetAndMetadata(end_offset, "", leader_epoch))
                position = FetchPosition(end_offset, leader_epoch, validated.leader_id, validated.leader_epoch)
                _log.info("Truncation detected for partition %s at offset %s, resetting offset to %s", partition, validated, position)
                state.seek_validated(position)
            else:
                state.seek_validated(validated)
            return None

    # Fetch results besides records

    def lag(self, partition: TopicPartition, *, read_committed: bool) -> int | None:
        self.state(partition)
        return self.lag_or_none(partition, read_committed=read_committed)

    def lag_or_none(self, partition: TopicPartition, *, read_committed: bool) -> int | None:
        """The number of records after the position; None if it is unknown or the partition is not assigned."""
        state = self._assignment.get(partition)
        if state is None:
            return None
        end = state.last_stable_offset if read_committed else state.high_watermark
        position = state.position
        return None if end is None or position is None else end - position.offset

    def lead_or_none(self, partition: TopicPartition) -> int | None:
        """The distance of the position from the log start offset."""
        state = self._assignment.get(partition)
        if state is None or state.log_start_offset is None or state.position is None:
            return None
        return state.position.offset - state.log_start_offset

    def set_end_offset(self, partition: TopicPartition, offset: int, *, read_committed: bool) -> None:
        with self.lock:
            state = self._assignment.get(partition)
            if state is None:
                return
            state.end_offset_requested = False
            if read_committed:
                state.last_stable_offset = offset
            else:
                state.high_watermark = offset

    def preferred_read_replica(self, partition: TopicPartition, now_ms: int) -> int | None:
        state = self._assignment.get(partition)
        if state is None or state.preferred_read_replica is None:
            return None
        if now_ms > state.preferred_read_replica_until_ms:
            state.preferred_read_replica = None
        return state.preferred_read_replica

    def update_preferred_read_replica(self, partition: TopicPartition, replica_id: int, until_ms: int) -> None:
        """The time runs from the first mention of the replica, so that the leader is asked again from time to time."""
        with self.lock:
            state = self._assignment.get(partition)
            if state is not None and state.preferred_read_replica != replica_id:
                state.preferred_read_replica = replica_id
                state.preferred_read_replica_until_ms = until_ms

    def clear_preferred_read_replica(self, partition: TopicPartition) -> int | None:
        with self.lock:
            state = self._assignment.get(partition)
            if state is None:
                return None
            removed, state.preferred_read_replica = state.preferred_read_replica, None
            return removed

    def _where(self, predicate: Callable[[TopicPartitionState], bool]) -> set[TopicPartition]:
        return {partition for partition, state in self._assignment.items() if predicate(state)}

    def __str__(self) -> str:
        if self.type is SubscriptionType.AUTO_TOPICS:
            return f"Subscribe({','.join(sorted(self._subscription))})"
        if self.type is SubscriptionType.AUTO_PATTERN and self.pattern is not None:
            return f"Subscribe({self.pattern.pattern})"
        if self.type is SubscriptionType.AUTO_PATTERN_RE2J:
            return f"Subscribe({self.re2j_pattern})"
        if self.type is SubscriptionType.USER_ASSIGNED:
            return f"Assign({', '.join(str(partition) for partition in self._assignment)})"
        return "None"
