"""What a consumer knows of its partitions: kinds of subscription, positions, and the states in between."""

from __future__ import annotations

import re

import pytest

from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.offset_reset import EARLIEST, LATEST, NONE
from barnabas.client.consumer.offsets.partition_state import (
    FETCH_STATES_BEFORE,
    FETCH_STATES_WITH_POSITION,
    FetchPosition,
    FetchState,
    TopicPartitionState,
)
from barnabas.client.consumer.offsets.subscription_state import SubscriptionPattern, SubscriptionState, SubscriptionType
from barnabas.client.errors import IllegalArgument, IllegalState, NoOffsetForPartition
from barnabas.topic_partition import TopicPartition

P0, P1, Q0 = TopicPartition("p", 0), TopicPartition("p", 1), TopicPartition("q", 0)


@pytest.fixture
def state() -> SubscriptionState:
    return SubscriptionState(EARLIEST)


def assigned(*partitions: TopicPartition, reset: object = EARLIEST) -> SubscriptionState:
    state = SubscriptionState(reset)  # type: ignore[arg-type]
    state.assign_from_user(partitions)
    return state


KINDS = {
    SubscriptionType.AUTO_TOPICS: lambda state: state.subscribe(["p"]),
    SubscriptionType.AUTO_PATTERN: lambda state: state.subscribe_pattern(re.compile("p.*")),
    SubscriptionType.AUTO_PATTERN_RE2J: lambda state: state.subscribe_re2j(SubscriptionPattern("p.*")),
    SubscriptionType.USER_ASSIGNED: lambda state: state.assign_from_user([P0]),
}


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_the_kinds_of_subscription_exclude_each_other_until_unsubscribe(
    state: SubscriptionState, first: SubscriptionType, second: SubscriptionType
) -> None:
    assert state.has_no_subscription_or_user_assignment()
    KINDS[first](state)
    assert state.type is first
    if first is second:
        KINDS[second](state)
    else:
        with pytest.raises(IllegalState, match="Subscription to topics, partitions and pattern are mutually exclusive"):
            KINDS[second](state)
        assert state.type is first
    state.unsubscribe()
    assert state.type is SubscriptionType.NONE
    KINDS[second](state)
    assert state.type is second


def test_a_subscription_replaces_the_one_before(state: SubscriptionState) -> None:
    assert state.subscribe(["a", "b"])
    assert not state.subscribe(["b", "a"])
    assert state.subscribe(["c"])
    assert state.subscription() == {"c"}


def test_a_listener_belongs_to_its_subscription(state: SubscriptionState) -> None:
    listener = ConsumerRebalanceListener()
    state.subscribe(["a"], listener)
    assert state.rebalance_listener is listener
    state.subscribe(["a"])
    assert state.rebalance_listener is None


def test_a_pattern_must_match_the_whole_name(state: SubscriptionState) -> None:
    state.subscribe_pattern(re.compile("ab*"))
    assert state.matches_subscribed_pattern("abb")
    assert not state.matches_subscribed_pattern("abbc")
    assert state.subscribe_from_pattern(["abb"])
    assert state.subscription() == {"abb"}
    assert state.check_assignment_matched_subscription([TopicPartition("abb", 0)])
    assert not state.check_assignment_matched_subscription([TopicPartition("x", 0)])


def test_topics_by_pattern_need_a_pattern(state: SubscriptionState) -> None:
    with pytest.raises(IllegalArgument, match="while subscription type set to NONE"):
        state.subscribe_from_pattern(["a"])


def test_partitions_assigned_by_the_user_are_no_subscription() -> None:
    state = assigned(P0, Q0)
    assert state.subscription() == frozenset()
    assert state.metadata_topics() == {"p", "q"}
    with pytest.raises(IllegalArgument, match="Attempt to dynamically assign partitions while manual assignment in use"):
        state.assign_from_subscribed([P0])
    with pytest.raises(IllegalState, match="mutually exclusive"):
        state.group_subscribe(["p"])


def test_the_leader_of_a_group_watches_the_topics_of_all(state: SubscriptionState) -> None:
    state.subscribe(["p"])
    assert not state.group_subscribe(["p"])
    assert state.group_subscribe(["p", "q"])
    assert state.metadata_topics() == {"p", "q"}
    assert state.needs_metadata("q")
    state.reset_group_subscription()
    assert state.metadata_topics() == {"p"}


def test_partitions_that_stay_keep_their_state_and_every_change_has_an_id(state: SubscriptionState) -> None:
    state.subscribe(["p", "q"])
    before = state.assignment_id
    state.assign_from_subscribed([P0, P1])
    state.seek(P0, 7)
    state.pause([P0])
    state.assign_from_subscribed([P0, Q0])
    assert state.position(P0) == FetchPosition(7)
    assert state.is_paused(P0)
    assert state.assigned_partitions() == {P0, Q0}
    assert state.assignment_id == before + 2


def test_partitions_of_a_topic_stand_together() -> None:
    state = assigned(Q0, P0, TopicPartition("q", 1), P1)
    assert [partition.topic for partition in state.assignment] == ["q", "q", "p", "p"]


def test_what_was_read_goes_to_the_end() -> None:
    state = assigned(P0, P1, Q0)
    state.move_to_end([P0])
    assert list(state.assignment) == [P1, Q0, P0]
    state.move_to_end([TopicPartition("gone", 0)])
    assert list(state.assignment) == [P1, Q0, P0]


def test_only_a_partition_with_a_position_that_nobody_holds_back_is_fetched(state: SubscriptionState) -> None:
    state.subscribe(["p"])
    state.assign_from_subscribed_awaiting_callback([P0], [P0])
    state.seek(P0, 0)
    assert not state.is_fetchable(P0)
    state.enable_partitions_awaiting_callback([P0])
    assert state.is_fetchable(P0)
    state.pause([P0])
    assert not state.is_fetchable(P0)
    state.resume([P0])
    assert state.fetchable_partitions() == [P0]
    state.mark_pending_revocation([P0])
    assert not state.is_fetchable(P0)
    assert not state.is_fetchable(Q0)


def test_what_is_not_assigned_has_no_state(state: SubscriptionState) -> None:
    for call in (state.position, state.valid_position, lambda p: state.pause([p]), lambda p: state.seek(p, 1), state.reset_strategy):
        with pytest.raises(IllegalState, match="No current assignment for partition p-0"):
            call(P0)


def in_state(state: FetchState) -> TopicPartitionState:
    partition = TopicPartitionState()
    if state is FetchState.FETCHING:
        partition.seek_validated(FetchPosition(1))
    elif state is FetchState.AWAIT_RESET:
        partition.reset(LATEST)
    elif state is FetchState.AWAIT_VALIDATION:
        partition.seek_unvalidated(FetchPosition(1, 2, 3, 4))
    assert partition.fetch_state is state
    return partition


MOVES = {
    FetchState.FETCHING: lambda partition: partition.seek_validated(FetchPosition(9)),
    FetchState.AWAIT_RESET: lambda partition: partition.reset(EARLIEST),
    FetchState.AWAIT_VALIDATION: lambda partition: partition.validate(FetchPosition(9, 1, 1, 1)),
}


@pytest.mark.parametrize("before", FetchState)
@pytest.mark.parametrize("after", MOVES)
def test_states_follow_each_other_as_the_table_says(before: FetchState, after: FetchState) -> None:
    partition = in_state(before)
    MOVES[after](partition)
    assert partition.fetch_state is (after if before in FETCH_STATES_BEFORE[after] else before)
    assert (partition.position is not None) == (partition.fetch_state in FETCH_STATES_WITH_POSITION)
    assert partition.has_valid_position == (partition.fetch_state is FetchState.FETCHING)


def test_without_positions_the_default_strategy_is_asked() -> None:
    state = assigned(P0, P1)
    assert state.initializing_partitions() == {P0, P1}
    state.seek(P1, 3)
    state.reset_initializing_positions()
    assert state.partitions_needing_reset(0) == {P0}
    assert state.reset_strategy(P0) == EARLIEST
    assert not state.has_all_fetch_positions()


def test_the_strategy_none_names_the_partitions_without_offset() -> None:
    state = assigned(P0, P1, reset=NONE)
    state.seek(P1, 3)
    with pytest.raises(NoOffsetForPartition) as raised:
        state.reset_initializing_positions()
    assert raised.value.partitions == {P0}


def test_a_reset_that_came_too_late_changes_nothing() -> None:
    state = assigned(P0)
    state.request_offset_reset([P0], LATEST)
    assert not state.maybe_seek_unvalidated(P0, FetchPosition(1), EARLIEST)  # another one was asked for meanwhile
    assert not state.maybe_seek_unvalidated(Q0, FetchPosition(1), LATEST)
    assert state.maybe_seek_unvalidated(P0, FetchPosition(1), LATEST)
    assert not state.maybe_seek_unvalidated(P0, FetchPosition(5), LATEST)
    assert state.position(P0) == FetchPosition(1)


def test_a_request_that_failed_waits_before_the_next() -> None:
    state = assigned(P0)
    state.request_offset_reset([P0])
    state.set_next_allowed_retry([P0, Q0], 100)
    assert state.partitions_needing_reset(99) == set()
    assert state.partitions_needing_reset(100) == {P0}


def test_seeking_to_the_beginning_of_what_is_not_assigned_changes_nothing() -> None:
    state = assigned(P0)
    state.seek(P0, 4)
    with pytest.raises(IllegalState):
        state.request_offset_reset([P0, Q0], EARLIEST)
    assert state.position(P0) == FetchPosition(4)


def test_all_positions_are_what_is_committed() -> None:
    state = assigned(P0, P1, Q0)
    state.seek_validated(P0, FetchPosition(5, 2, 1, 3))
    state.seek(P1, 0)
    assert state.all_consumed() == {P0: OffsetAndMetadata(5, "", 2), P1: OffsetAndMetadata(0)}


def validating(position: FetchPosition, reset: object = EARLIEST) -> SubscriptionState:
    state = assigned(P0, reset=reset)
    state.seek_validated(P0, position)
    assert state.maybe_validate_position(P0, 2, 5)
    return state


def test_a_new_leader_makes_the_position_be_validated() -> None:
    state = validating(FetchPosition(10, 3, 1, 4))
    assert state.awaiting_validation(P0)
    assert not state.is_fetchable(P0)
    assert state.position(P0) == FetchPosition(10, 3, 2, 5)
    assert state.partitions_needing_validation(0) == {P0}


def test_the_same_leader_and_a_position_without_epoch_need_no_validation() -> None:
    state = assigned(P0)
    assert not state.maybe_validate_position(P0, 1, 1)
    state.seek_validated(P0, FetchPosition(10, 3, 1, 4))
    assert not state.maybe_validate_position(P0, 1, 4)
    assert not state.maybe_validate_position(P0, -1, 9)  # no leader at the moment
    state.seek_validated(P0, FetchPosition(10, -1, 1, 4))
    assert not state.maybe_validate_position(P0, 2, 5)
    assert state.valid_position(P0) == FetchPosition(10, -1, 2, 5)


def test_a_broker_that_cannot_tell_is_believed() -> None:
    state = assigned(P0)
    state.seek_validated(P0, FetchPosition(10, 3, 1, 4))
    assert not state.maybe_validate_position(P0, 2, 5, can_validate=False)
    assert state.valid_position(P0) == FetchPosition(10, 3, 2, 5)


def test_what_the_new_leader_has_is_read_on() -> None:
    state = validating(FetchPosition(10, 3, 1, 4))
    assert state.maybe_complete_validation(P0, FetchPosition(10, 3, 2, 5), end_offset=12, leader_epoch=3) is None
    assert state.valid_position(P0) == FetchPosition(10, 3, 2, 5)


def test_truncated_records_move_the_position_back_to_where_the_logs_part() -> None:
    state = validating(FetchPosition(10, 3, 1, 4))
    assert state.maybe_complete_validation(P0, FetchPosition(10, 3, 2, 5), end_offset=7, leader_epoch=2) is None
    assert state.valid_position(P0) == FetchPosition(7, 2, 2, 5)


def test_truncation_is_told_where_no_strategy_is_set() -> None:
    state = validating(FetchPosition(10, 3, 1, 4), NONE)
    lost = state.maybe_complete_validation(P0, FetchPosition(10, 3, 2, 5), end_offset=7, leader_epoch=2)
    assert lost is not None
    assert (lost.partition, lost.position.offset, lost.divergent) == (P0, 10, OffsetAndMetadata(7, "", 2))
    unknown = state.maybe_complete_validation(P0, FetchPosition(10, 3, 2, 5), end_offset=-1, leader_epoch=-1)
    assert unknown is not None and unknown.divergent is None


def test_an_epoch_the_leader_does_not_know_resets_the_position() -> None:
    state = validating(FetchPosition(10, 3, 1, 4))
    assert state.maybe_complete_validation(P0, FetchPosition(10, 3, 2, 5), end_offset=-1, leader_epoch=-1) is None
    assert state.partitions_needing_reset(0) == {P0}


def test_a_validation_of_another_position_changes_nothing() -> None:
    state = validating(FetchPosition(10, 3, 1, 4))
    assert state.maybe_complete_validation(P0, FetchPosition(9, 3, 2, 5), end_offset=0, leader_epoch=2) is None
    assert state.awaiting_validation(P0)
    state.seek(P0, 1)
    assert state.maybe_complete_validation(P0, FetchPosition(10, 3, 2, 5), end_offset=0, leader_epoch=2) is None
    assert state.valid_position(P0) == FetchPosition(1)


def test_lag_and_lead_are_counted_from_the_position() -> None:
    state = assigned(P0)
    assert state.lag(P0, read_committed=False) is None
    state.seek(P0, 10)
    state.set_end_offset(P0, 30, read_committed=False)
    state.set_end_offset(P0, 25, read_committed=True)
    state.state(P0).log_start_offset = 4
    assert state.lag(P0, read_committed=False) == 20
    assert state.lag(P0, read_committed=True) == 15
    assert state.lead_or_none(P0) == 6


def test_a_preferred_read_replica_is_used_until_its_time_is_over() -> None:
    state = assigned(P0)
    state.update_preferred_read_replica(P0, 3, 1000)
    state.update_preferred_read_replica(P0, 3, 2000)  # named again: the leader is still asked when the first time is over
    assert state.preferred_read_replica(P0, 1000) == 3
    assert state.preferred_read_replica(P0, 1001) is None
    state.update_preferred_read_replica(P0, 4, 5000)
    assert state.clear_preferred_read_replica(P0) == 4
    assert state.clear_preferred_read_replica(P0) is None


def test_a_new_leader_ends_the_preference_of_a_replica() -> None:
    state = assigned(P0)
    state.seek_validated(P0, FetchPosition(1, -1, 1, 1))
    state.update_preferred_read_replica(P0, 3, 1000)
    state.maybe_validate_position(P0, 2, 2)
    assert state.preferred_read_replica(P0, 0) is None
