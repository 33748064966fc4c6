"""A member of the consumer protocol: its states, what its heartbeats tell, and what every answer means for it."""

from __future__ import annotations

import pytest

from barnabas.client.consumer.membership.consumer_member import (
    LEAVE_EPOCH,
    STATES_BEFORE,
    ConsumerHeartbeatResult,
    ConsumerMember,
    ConsumerMemberState,
    LocalAssignment,
)
from barnabas.client.consumer.offsets.offset_messages import NO_MEMBER, Identity
from barnabas.client.consumer.offsets.offset_reset import LATEST
from barnabas.client.consumer.offsets.subscription_state import SubscriptionPattern, SubscriptionState
from barnabas.client.errors import (
    CommitFailed,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedInstanceId,
    FencedMemberEpoch,
    GroupAuthorization,
    GroupMaxSizeReached,
    IllegalState,
    KafkaError,
    NotCoordinator,
    StaleMemberEpoch,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.messages.consumer_group_heartbeat_request import TopicPartitions as OwnedTopic
from barnabas.protocol.messages.consumer_group_heartbeat_response import Assignment, ConsumerGroupHeartbeatResponse, TopicPartitions
from barnabas.uuid import Uuid

T1 = Uuid(bytes(15) + b"\x01")
T2 = Uuid(bytes(15) + b"\x02")


def subscribed(*topics: str) -> SubscriptionState:
    subscriptions = SubscriptionState(LATEST)
    subscriptions.subscribe(topics)
    return subscriptions


def member(subscriptions: SubscriptionState | None = None, instance_id: str | None = None, assignor: str | None = None) -> ConsumerMember:
    one = ConsumerMember(
        "g",
        "me",
        subscriptions or subscribed("t"),
        instance_id=instance_id,
        rebalance_timeout_ms=300_000,
        assignor=assignor,
        rack="a",
    )
    one.join()
    return one


def answer(epoch: int = 1, assignment: dict[Uuid, list[int]] | None = None) -> ConsumerGroupHeartbeatResponse:
    target = None if assignment is None else Assignment([TopicPartitions(one, numbers) for one, numbers in assignment.items()])
    return ConsumerGroupHeartbeatResponse(member_id="me", member_epoch=epoch, heartbeat_interval_ms=5000, assignment=target)


def reconciling() -> ConsumerMember:
    one = member()
    one.request()
    one.answered(answer(1, {T1: [0, 1]}))
    return one


def stable() -> ConsumerMember:
    one = reconciling()
    one.acknowledge(one.target)
    one.request()
    return one


# What heartbeats tell


def test_the_first_heartbeat_tells_everything() -> None:
    request = member(assignor="range").request()
    assert (request.member_epoch, request.subscribed_topic_names, request.rebalance_timeout_ms) == (0, ["t"], 300_000)
    assert (request.server_assignor, request.rack_id, request.topic_partitions, request.subscribed_topic_regex) == ("range", "a", [], None)


def test_the_next_heartbeat_tells_only_that_the_member_lives() -> None:
    one = stable()
    request = one.request()
    assert (request.group_id, request.member_id, request.member_epoch) == ("g", "me", 1)
    assert (request.subscribed_topic_names, request.rebalance_timeout_ms, request.topic_partitions) == (None, -1, None)


def test_an_assignment_that_was_reached_is_told_once() -> None:
    one = reconciling()
    one.acknowledge(one.target)
    assert one.request().topic_partitions == [OwnedTopic(T1, [0, 1])]
    assert one.request().topic_partitions is None


def test_a_changed_subscription_is_told_once() -> None:
    subscriptions = subscribed("t")
    one = member(subscriptions)
    one.request()
    one.answered(answer(1, {}))
    one.acknowledge(one.target)
    one.request()
    subscriptions.subscribe(["t", "u"])
    assert one.has_news
    assert one.request().subscribed_topic_names == ["t", "u"]
    assert one.request().subscribed_topic_names is None


def test_a_pattern_for_the_broker_is_told_and_taken_back_by_an_empty_one() -> None:
    subscriptions = SubscriptionState(LATEST)
    subscriptions.subscribe_re2j(SubscriptionPattern("t.*"))
    one = member(subscriptions)
    assert (one.request().subscribed_topic_regex, one.request().subscribed_topic_regex) == ("t.*", "t.*")
    one.answered(answer(1, {}))
    one.acknowledge(one.target)
    assert one.request().subscribed_topic_regex is None
    subscriptions.unsubscribe()
    subscriptions.subscribe(["t"])
    assert one.request().subscribed_topic_regex == ""


def test_after_a_failure_everything_is_told_again() -> None:
    one = stable()
    one.failed()
    request = one.request()
    assert (request.subscribed_topic_names, request.topic_partitions) == (["t"], [OwnedTopic(T1, [0, 1])])


# Towards the target


def test_a_target_is_reconciled() -> None:
    one = reconciling()
    assert (one.state, one.epoch, one.target) == (ConsumerMemberState.RECONCILING, 1, LocalAssignment(0, {T1: frozenset({0, 1})}))


def test_what_was_reached_is_acknowledged_and_then_stable() -> None:
    one = reconciling()
    one.acknowledge(one.target)
    assert (one.state, one.has_news) == (ConsumerMemberState.ACKNOWLEDGING, True)
    one.request()
    assert (one.state, one.is_reconciled) == (ConsumerMemberState.STABLE, True)


def test_a_target_that_came_meanwhile_is_next() -> None:
    one = reconciling()
    reached = one.target
    one.answered(answer(2, {T1: [0]}))
    one.acknowledge(reached)
    one.request()
    assert (one.state, one.target.epoch) == (ConsumerMemberState.RECONCILING, 1)


def test_a_target_that_is_told_again_changes_nothing() -> None:
    one = stable()
    one.answered(answer(1, {T1: [0, 1]}))
    assert one.state is ConsumerMemberState.STABLE


def test_a_target_of_nothing_is_a_target() -> None:
    one = stable()
    one.answered(answer(2, {}))
    assert one.state is ConsumerMemberState.RECONCILING


def test_an_answer_that_comes_after_leaving_is_ignored() -> None:
    one = stable()
    one.prepare_leaving()
    one.begin_leaving(LEAVE_EPOCH)
    one.left()
    one.answered(answer(7, {T2: [0]}))
    assert (one.epoch, one.state) == (LEAVE_EPOCH, ConsumerMemberState.UNSUBSCRIBED)


# Refusals


@pytest.mark.parametrize("error", [FencedMemberEpoch(), UnknownMemberId()])
def test_a_fenced_member_lets_go_and_joins_with_epoch_0(error: KafkaError) -> None:
    one = stable()
    assert one.refused(error)[0] is ConsumerHeartbeatResult.FENCED
    assert (one.state, one.skips_heartbeats) == (ConsumerMemberState.FENCED, True)
    one.released()
    one.join()
    assert (one.request().member_epoch, one.member_id, one.current) == (0, "me", LocalAssignment())


def test_a_member_that_is_fenced_while_it_leaves_has_left() -> None:
    one = stable()
    one.prepare_leaving()
    one.refused(UnknownMemberId())
    assert one.state is ConsumerMemberState.UNSUBSCRIBED


@pytest.mark.parametrize("error", [NotCoordinator(), CoordinatorNotAvailable()])
def test_another_coordinator_is_looked_for(error: KafkaError) -> None:
    one = stable()
    assert (one.refused(error)[0], one.state) == (ConsumerHeartbeatResult.ELSEWHERE, ConsumerMemberState.STABLE)


def test_a_coordinator_that_loads_is_waited_for() -> None:
    one = stable()
    assert (one.refused(CoordinatorLoadInProgress())[0], one.state) == (ConsumerHeartbeatResult.FAILED, ConsumerMemberState.STABLE)


@pytest.mark.parametrize(
    "error", [GroupMaxSizeReached(), UnsupportedAssignor(), UnreleasedInstanceId(), FencedInstanceId(), KafkaError("anything else")]
)
def test_what_the_member_cannot_settle_ends_it(error: KafkaError) -> None:
    one = member()
    assert one.refused(error) == (ConsumerHeartbeatResult.FATAL, error)
    assert (one.state, one.skips_heartbeats) == (ConsumerMemberState.FATAL, True)


def test_a_group_that_one_may_not_join_is_named() -> None:
    _, refusal = member().refused(GroupAuthorization("no"))
    assert isinstance(refusal, GroupAuthorization)
    assert refusal.group_id == "g"


def test_a_broker_without_the_protocol_is_explained() -> None:
    _, refusal = member().refused(UnsupportedVersion("68"))
    assert "Set group.protocol=classic" in str(refusal)


# Commits


def test_a_member_commits_in_its_epoch() -> None:
    assert stable().commit_identity() == Identity(1, "me")


def test_a_member_that_was_put_out_cannot_commit() -> None:
    one = stable()
    one.refused(FencedMemberEpoch())
    with pytest.raises(CommitFailed):
        one.commit_identity()
    assert one.fetch_identity() == NO_MEMBER


def test_a_commit_of_an_unknown_member_fails_for_good() -> None:
    assert isinstance(stable().commit_refused(UnknownMemberId("who")), CommitFailed)


def test_a_commit_in_an_old_epoch_may_be_tried_again() -> None:
    assert isinstance(stable().commit_refused(StaleMemberEpoch()), StaleMemberEpoch)


@pytest.mark.parametrize("before", ConsumerMemberState)
@pytest.mark.parametrize("after", ConsumerMemberState)
def test_only_the_states_in_the_table_follow_each_other(before: ConsumerMemberState, after: ConsumerMemberState) -> None:
    one = member()
    one.state = before
    if before is after or before in STATES_BEFORE[after]:
        one._enter(after)
        assert one.state is after
    else:
        with pytest.raises(IllegalState, match="Invalid state transition"):
            one._enter(after)
