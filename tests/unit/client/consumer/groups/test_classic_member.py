"""A member of the classic protocol: its states, and what every answer means for it."""

from __future__ import annotations

import pytest

from barnabas.client.consumer.membership.classic_member import (
    STATES_BEFORE,
    ClassicHeartbeatResult,
    ClassicMember,
    ClassicMemberState,
    Generation,
    Unjoined,
)
from barnabas.client.consumer.offsets.offset_messages import Identity
from barnabas.client.errors import (
    CommitFailed,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupAuthorization,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownServerError,
)

FIRST = Generation(1, "me", "range")
SENT = Identity(1, "me")


def member() -> ClassicMember:
    return ClassicMember("g", None)


def joining() -> ClassicMember:
    one = member()
    one.begin_join()
    return one


def stable() -> ClassicMember:
    one = joining()
    one.joined(FIRST)
    one.synced("range")
    return one


def rejoining() -> ClassicMember:
    one = stable()
    one.begin_join()
    return one


# The way to an assignment


def test_a_new_member_has_to_join() -> None:
    one = member()
    assert (one.state, one.rejoin_needed, one.owns_nothing) == (ClassicMemberState.UNJOINED, True, True)


def test_a_member_that_has_synced_need_not_join_again() -> None:
    one = stable()
    assert (one.state, one.rejoin_needed, one.rejoin_reason, one.generation) == (ClassicMemberState.STABLE, False, "", FIRST)


def test_a_member_that_left_while_joining_does_not_sync() -> None:
    one = joining()
    one.left()
    with pytest.raises(Unjoined) as caught:
        one.joined(FIRST)
    assert caught.value.retriable


def test_a_member_that_was_reset_while_syncing_joins_again_at_once() -> None:
    one = joining()
    one.joined(FIRST)
    one.reset("a heartbeat", forget_member_id=False)
    with pytest.raises(IllegalGeneration):
        one.synced("range")


def test_another_protocol_than_the_one_joined_is_refused() -> None:
    one = joining()
    one.joined(FIRST)
    with pytest.raises(InconsistentGroupProtocol):
        one.synced("sticky")


def test_leaving_forgets_the_member_id() -> None:
    one = stable()
    one.left()
    assert (one.state, one.generation, one.rejoin_needed) == (ClassicMemberState.UNJOINED, Generation(), True)


@pytest.mark.parametrize("before", ClassicMemberState)
@pytest.mark.parametrize("after", ClassicMemberState)
def test_only_the_states_in_the_table_follow_each_other(before: ClassicMemberState, after: ClassicMemberState) -> None:
    one = member()
    one.state = before
    if before in STATES_BEFORE[after]:
        one._enter(after)
        assert one.state is after
    else:
        with pytest.raises(AssertionError):
            one._enter(after)


# Refused joins


def test_the_id_that_the_coordinator_gives_is_joined_with() -> None:
    one = joining()
    error = one.join_refused(MemberIdRequired(), Generation(), "given")
    assert (type(error), one.generation, one.rejoin_needed) == (MemberIdRequired, Generation(member_id="given"), True)


def test_an_unknown_member_forgets_its_id() -> None:
    one = rejoining()
    one.join_refused(UnknownMemberId(), FIRST, "")
    assert (one.generation, one.state) == (Generation(), ClassicMemberState.UNJOINED)


def test_an_answer_to_an_earlier_generation_changes_nothing() -> None:
    one = rejoining()
    one.join_refused(UnknownMemberId(), Generation(0, "other", "range"), "")
    assert one.generation == FIRST


@pytest.mark.parametrize("error", [CoordinatorLoadInProgress(), CoordinatorNotAvailable(), NotCoordinator()])
def test_what_may_pass_is_tried_again_under_the_same_name(error: KafkaError) -> None:
    one = rejoining()
    assert one.join_refused(error, FIRST, "").retriable
    assert one.generation == FIRST


def test_a_full_group_is_named() -> None:
    refusal = joining().join_refused(GroupMaxSizeReached("no"), Generation(), "")
    assert str(refusal) == "Consumer group g already has the configured maximum number of members."


def test_a_group_that_one_may_not_join_is_named() -> None:
    refusal = joining().join_refused(GroupAuthorization("no"), Generation(), "")
    assert isinstance(refusal, GroupAuthorization)
    assert refusal.group_id == "g"


def test_an_error_that_nobody_expects_is_none_of_kafkas_own() -> None:
    refusal = joining().join_refused(UnknownServerError("what"), Generation(), "")
    assert (type(refusal), str(refusal)) == (KafkaError, "Unexpected error in join group response: what")


# Refused syncs


def test_an_illegal_generation_keeps_the_member_id() -> None:
    one = joining()
    one.joined(FIRST)
    one.sync_refused(IllegalGeneration(), FIRST)
    assert (one.generation, one.state) == (Generation(member_id="me"), ClassicMemberState.UNJOINED)


def test_a_rebalance_during_a_sync_keeps_everything() -> None:
    one = joining()
    one.joined(FIRST)
    assert isinstance(one.sync_refused(RebalanceInProgress(), FIRST), RebalanceInProgress)
    assert one.generation == FIRST


# Heartbeats


def test_a_rebalance_is_heard_of_and_the_member_lives() -> None:
    one = stable()
    assert one.heartbeat_refused(RebalanceInProgress(), FIRST) is ClassicHeartbeatResult.LIVES
    assert (one.rejoin_needed, one.rejoin_reason) == (True, "group is already rebalancing")


def test_a_rebalance_is_no_news_to_one_who_is_in_it() -> None:
    one = joining()
    one.joined(FIRST)
    one.rejoin_needed = False
    assert one.heartbeat_refused(RebalanceInProgress(), FIRST) is ClassicHeartbeatResult.LIVES
    assert not one.rejoin_needed


@pytest.mark.parametrize(
    ("error", "heard", "member_id"),
    [
        (IllegalGeneration(), ClassicHeartbeatResult.FAILED, "me"),
        (UnknownMemberId(), ClassicHeartbeatResult.FAILED, ""),
        (FencedInstanceId(), ClassicHeartbeatResult.FATAL, ""),
    ],
)
def test_a_member_that_is_not_known_any_more_is_out(error: KafkaError, heard: ClassicHeartbeatResult, member_id: str) -> None:
    one = stable()
    assert one.heartbeat_refused(error, FIRST) is heard
    assert (one.state, one.generation.member_id, one.needs_prepare) == (ClassicMemberState.UNJOINED, member_id, True)


def test_a_late_heartbeat_of_an_earlier_generation_is_ignored() -> None:
    one = stable()
    assert one.heartbeat_refused(UnknownMemberId(), Generation(0, "me", "range")) is ClassicHeartbeatResult.LIVES
    assert one.state is ClassicMemberState.STABLE


def test_only_the_application_can_settle_that_it_may_not() -> None:
    assert stable().heartbeat_refused(GroupAuthorization(), FIRST) is ClassicHeartbeatResult.FATAL


# Commits


def test_a_stable_member_commits_in_its_generation() -> None:
    assert stable().commit_identity() == SENT


def test_a_member_that_is_rebalancing_is_told_to_poll() -> None:
    with pytest.raises(RebalanceInProgress, match="undergoing a rebalance"):
        rejoining().commit_identity()


def test_a_member_that_is_out_cannot_commit() -> None:
    with pytest.raises(CommitFailed, match="not part of an active group"):
        member().commit_identity()


@pytest.mark.parametrize(("error", "member_id"), [(IllegalGeneration(), "me"), (UnknownMemberId(), "")])
def test_a_commit_after_the_group_has_moved_on_fails_for_good(error: KafkaError, member_id: str) -> None:
    one = stable()
    assert isinstance(one.commit_refused(error, SENT), CommitFailed)
    assert (one.state, one.generation.member_id) == (ClassicMemberState.UNJOINED, member_id)


def test_a_commit_of_before_a_rebalance_may_be_tried_again_after_it() -> None:
    one = rejoining()
    one.generation = Generation(2, "me", "range")
    assert isinstance(one.commit_refused(IllegalGeneration(), SENT), RebalanceInProgress)


def test_a_commit_during_a_rebalance_makes_the_member_join() -> None:
    one = stable()
    assert isinstance(one.commit_refused(RebalanceInProgress(), SENT), RebalanceInProgress)
    assert one.rejoin_needed


def test_a_fenced_instance_hears_so() -> None:
    assert isinstance(stable().commit_refused(FencedInstanceId(), SENT), FencedInstanceId)


def test_a_fenced_commit_of_an_earlier_generation_is_only_a_failed_one() -> None:
    one = stable()
    one.generation = Generation(2, "me", "range")
    assert isinstance(one.commit_refused(FencedInstanceId(), SENT), CommitFailed)
