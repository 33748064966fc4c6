"""The classic protocol: joining, syncing, heartbeats, leaving, and the errors in between."""

from __future__ import annotations

import pytest

from barnabas.coordinator.group.classic.classic_group import ClassicGroup, ClassicGroupState
from barnabas.errors import NotEnoughReplicas, RecordTooLarge
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.writer import STRING_SIZE_MAX
from tests.unit.coordinator.coordinator_host import Host, subscription


def state(host: Host, group: str = "g") -> ClassicGroupState:
    classic_group = host.shard.groups[group]
    assert isinstance(classic_group, ClassicGroup)
    return classic_group.state


def test_a_new_dynamic_member_is_told_to_come_back_with_its_id() -> None:
    response = Host().join().one
    assert (response.error_code, response.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "client-id1")


def test_before_version_4_a_member_joins_at_once() -> None:
    host = Host()
    answers = host.join(version=3)
    host.time.advance(3_000)
    assert (answers.one.error_code, answers.one.generation_id) == (0, 1)


def test_the_first_rebalance_waits_for_more_members_and_longer_while_they_come() -> None:
    host = Host()
    _, first = host.member()
    host.time.advance(2_000)
    _, second = host.member()
    host.time.advance(2_000)
    assert (first, second) == ([], [])
    host.time.advance(2_000)
    assert first.one.generation_id == second.one.generation_id == 1


def test_only_the_leader_sees_the_members() -> None:
    host = Host()
    (_, first), (_, second) = host.member(), host.member()
    host.time.advance(10_000)
    assert sorted(len(answers.one.members) for answers in (first, second)) == [0, 2]


def test_each_member_gets_the_assignment_the_leader_made_for_it() -> None:
    host = Host()
    ids = host.stable(3)
    assert state(host) is ClassicGroupState.STABLE
    assert [host.sync(member_id, 1).one.assignment for member_id in ids] == [member_id.encode() for member_id in ids]


def test_a_member_the_leader_forgot_gets_an_empty_assignment() -> None:
    host = Host()
    joining = [host.member(), host.member()]
    host.time.advance(10_000)
    leader = joining[0][1].one.leader
    other = next(member_id for member_id, _ in joining if member_id != leader)
    waiting = host.sync(other, 1)
    host.sync(leader, 1, {leader: b"all", "stranger": b"x"})
    assert (waiting.one.error_code, waiting.one.assignment) == (0, b"")


def test_a_session_timeout_outside_the_bounds_is_refused() -> None:
    host = Host()
    assert host.join(session_ms=5_999).one.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert host.join(session_ms=1_800_001).one.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_an_empty_group_id_is_refused() -> None:
    assert Host().join(group="").one.error_code == ErrorCode.INVALID_GROUP_ID


def test_a_group_id_of_ten_kilobytes_is_a_group_like_any_other() -> None:
    host = Host()
    assert host.join(group="x" * 10_240).one.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_member_id_nobody_was_given_is_unknown() -> None:
    host = Host()
    assert host.join("stranger").one.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    host.stable()
    assert host.join("stranger").one.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_without_a_protocol_in_common_is_refused() -> None:
    host = Host()
    host.stable()
    assert host.join(protocols={"sticky": b""}).one.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert host.join(protocol_type="connect").one.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_that_most_members_prefer_is_chosen() -> None:
    host = Host()
    wishes = [["b", "a"], ["a", "b", "c"], ["d", "b", "a"]]
    answers = [host.member(protocols=dict.fromkeys(wish, subscription("t")))[1] for wish in wishes]
    host.time.advance(20_000)
    assert {answer.one.protocol_name for answer in answers} == {"b"}


def test_a_full_group_takes_no_new_member() -> None:
    host = Host(group_max_size=1)
    host.stable()
    assert host.join().one.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_the_leader_joining_again_starts_a_rebalance() -> None:
    host = Host()
    leader, follower = host.stable(2)
    again = host.join(leader)
    assert state(host) is ClassicGroupState.PREPARING_REBALANCE
    assert host.heartbeat(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    host.join(follower)
    assert again.one.generation_id == 2


def test_a_follower_joining_again_unchanged_hears_the_current_generation() -> None:
    host = Host()
    _, follower = host.stable(2)
    assert host.join(follower).one.generation_id == 1
    assert state(host) is ClassicGroupState.STABLE


def test_who_does_not_rejoin_in_time_is_out() -> None:
    host = Host()
    leader, follower = host.stable(2, session_ms=120_000)
    again = host.join(leader, session_ms=120_000)
    host.time.advance(60_000)
    assert again.one.generation_id == 2
    assert host.heartbeat(follower, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_silent_for_its_session_is_out() -> None:
    host = Host()
    leader, follower = host.stable(2)
    host.time.advance(6_000)
    assert host.heartbeat(leader, 1) == 0
    host.time.advance(6_000)
    assert host.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert host.heartbeat(follower, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_joined_and_never_syncs_is_out_after_the_rebalance_timeout() -> None:
    host = Host()
    (one, first), (two, _) = host.member(session_ms=200_000), host.member(session_ms=200_000)
    host.time.advance(10_000)
    leader = first.one.leader
    silent = two if leader == one else one
    host.sync(leader, 1, {leader: b"x"})
    host.time.advance(60_000)
    assert state(host) is ClassicGroupState.PREPARING_REBALANCE
    assert host.heartbeat(silent, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pending_member_that_never_comes_back_does_not_hold_up_the_group() -> None:
    host = Host()
    leader = host.stable()[0]
    host.join(session_ms=6_000)
    again = host.join(leader)
    assert again == []
    host.time.advance(6_000)
    assert again.one.generation_id == 2


def test_sync_answers_errors_in_kafkas_order() -> None:
    host = Host()
    leader = host.stable()[0]
    assert host.sync("stranger", 7).one.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert host.sync(leader, 7).one.error_code == ErrorCode.ILLEGAL_GENERATION
    assert host.sync(leader, 1, group="none").one.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_of_another_generation_is_refused() -> None:
    host = Host()
    leader = host.stable()[0]
    assert host.heartbeat(leader, 2) == ErrorCode.ILLEGAL_GENERATION


def test_a_member_that_leaves_makes_the_others_rebalance() -> None:
    host = Host()
    leader, follower = host.stable(2)
    assert host.leave(follower).members[0].error_code == 0
    assert host.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_whose_last_member_left_is_empty() -> None:
    host = Host()
    host.leave(host.stable()[0])
    assert state(host) is ClassicGroupState.EMPTY


def test_leaving_an_unknown_group_is_told_for_each_member_or_at_the_top_before_version_3() -> None:
    host = Host()
    assert host.leave("m").members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert host.leave("m", version=2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def static_group(host: Host) -> str:
    answers = host.join(instance="i")
    host.time.advance(3_000)
    member_id: str = answers.one.member_id
    host.sync(member_id, 1, {member_id: b"mine"}, instance="i")
    return member_id


def test_a_static_member_that_comes_back_keeps_its_assignment_without_a_rebalance() -> None:
    host = Host()
    old = static_group(host)
    response = host.join(instance="i").one
    assert (response.error_code, response.generation_id, response.skip_assignment) == (0, 1, True)
    assert response.member_id != old
    assert host.sync(response.member_id, 1, instance="i").one.assignment == b"mine"


def test_the_old_id_of_a_static_member_is_fenced() -> None:
    host = Host()
    old = static_group(host)
    host.join(instance="i")
    assert host.heartbeat(old, 1, instance="i") == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_whose_return_cannot_be_written_stays_as_it_was() -> None:
    host = Host()
    old = static_group(host)
    host.log.error = NotEnoughReplicas()
    assert host.join(instance="i").one.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.heartbeat(old, 1, instance="i") == 0


def test_an_administrator_removes_a_static_member_by_its_instance() -> None:
    host = Host()
    static_group(host)
    assert host.leave("", instance="i").members[0].error_code == 0
    assert state(host) is ClassicGroupState.EMPTY


def test_an_assignment_that_cannot_be_written_makes_everyone_join_again() -> None:
    host = Host()
    member_id, joined = host.member()
    host.time.advance(3_000)
    assert joined.one.generation_id == 1
    host.log.error = RecordTooLarge()
    assert host.sync(member_id, 1, {member_id: b"x"}).one.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert state(host) is ClassicGroupState.PREPARING_REBALANCE


def test_a_group_whose_first_record_cannot_be_written_does_not_exist() -> None:
    host = Host()
    host.log.error = NotEnoughReplicas()
    assert host.join(version=3).one.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.shard.groups == {}
    host.time.advance(1_000_000)


def test_a_stable_group_is_there_again_after_a_restart() -> None:
    host = Host()
    leader, follower = host.stable(2)
    again = Host(host.log)
    assert again.heartbeat(leader, 1) == 0
    assert again.sync(follower, 1).one.assignment == follower.encode()


def test_groups_are_listed_by_state_and_type() -> None:
    host = Host()
    host.stable()
    host.commit(1, group="simple")
    filters: list[tuple[list[str], list[str]]] = [(["stable"], []), (["Empty"], ["classic"]), ([], ["consumer"])]
    listed = [host.coordinator.list_groups(ListGroupsRequest(states, types)).groups for states, types in filters]
    assert [[group.group_id for group in groups] for groups in listed] == [["g"], ["simple"], []]


def test_a_thousand_members_join_at_once() -> None:
    host = Host()
    assert len(host.stable(1_000, rebalance_ms=10_000_000, session_ms=1_800_000)) == 1_000
    assert state(host) is ClassicGroupState.STABLE


def test_a_member_id_fits_in_a_string_of_the_protocol_however_long_the_instance_id_is() -> None:
    host = Host()
    answers = host.join(instance="i" * STRING_SIZE_MAX)
    host.time.advance(3_000)
    assert len(answers.one.member_id) <= STRING_SIZE_MAX


def test_members_that_the_leader_leaves_out_are_told(caplog: pytest.LogCaptureFixture) -> None:
    host = Host()
    leader, follower = host.stable(2)
    assert "Setting empty assignments" not in caplog.text
    host.leave(follower)
    host.join(leader)
    host.sync(leader, 2, assignments={})
    assert f"Setting empty assignments for members Set({leader}) of g for generation 2" in caplog.text
