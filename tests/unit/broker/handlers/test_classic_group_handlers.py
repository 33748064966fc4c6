"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup, asked of a broker that runs, in every version."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.coordinator.group.group_metrics import CLASSIC
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups_request import DescribeGroupsRequest
from barnabas.protocol.messages.describe_groups_response import DescribeGroupsResponse
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse
from tests.unit.broker.grouping import GROUP, Groups, turn_of_the_loop, with_groups

JOIN_VERSIONS = range(10)
SYNC_VERSIONS = range(6)
HEARTBEAT_VERSIONS = range(5)
LEAVE_VERSIONS = range(6)
ID_REQUIRED_SINCE = 4  # of JoinGroup


async def joined(groups: Groups, version: int) -> JoinGroupResponse:
    """As clients of the version join: from 4 on twice, the second time with the id they were given."""
    first = await groups.join(version=version)
    if version < ID_REQUIRED_SINCE:
        return first
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    return await groups.join(first.member_id, version)


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_the_first_member_leads_the_group_in_every_version(tmp_path: Path, version: int) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        answer = await joined(groups, version)
        assert (answer.error_code, answer.generation_id, answer.leader, answer.protocol_name) == (0, 1, answer.member_id, "range")
        assert [(member.member_id, member.metadata) for member in answer.members] == [(answer.member_id, b"metadata")]

    with_groups(tmp_path, use)


@pytest.mark.parametrize("version", SYNC_VERSIONS)
def test_every_member_is_given_what_the_leader_decided(tmp_path: Path, version: int) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        leader = await groups.join()
        second = asyncio.ensure_future(groups.join())
        await turn_of_the_loop()  # in which the second one asks
        leader, follower = await groups.join(leader.member_id), await second
        waiting = asyncio.ensure_future(groups.sync(follower, version=version))
        await turn_of_the_loop()
        led = await groups.sync(leader, {leader.member_id: b"one", follower.member_id: b"two"}, version)
        followed = await waiting
        assert [(answer.error_code, answer.assignment) for answer in (led, followed)] == [(0, b"one"), (0, b"two")]
        if version >= 5:
            assert (followed.protocol_type, followed.protocol_name) == ("consumer", "range")

    with_groups(tmp_path, use)


@pytest.mark.parametrize("version", HEARTBEAT_VERSIONS)
def test_a_member_is_told_whether_it_is_one(tmp_path: Path, version: int) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        member = await groups.join_alone()
        generations = [
            (member.generation_id, member.member_id),
            (member.generation_id + 1, member.member_id),
            (member.generation_id, "who"),
        ]
        codes = [(await groups.heartbeat(generation, member_id, version)).error_code for generation, member_id in generations]
        assert codes == [0, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID]

    with_groups(tmp_path, use)


def test_a_member_hears_by_its_heartbeat_that_another_wants_to_join(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        member = await groups.join_alone()
        second = asyncio.ensure_future(groups.join())
        await turn_of_the_loop()
        beat = await groups.heartbeat(member.generation_id, member.member_id)
        assert beat.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        second.cancel()

    with_groups(tmp_path, use)


@pytest.mark.parametrize("version", LEAVE_VERSIONS)
def test_who_has_left_is_unknown(tmp_path: Path, version: int) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        member = await groups.join_alone()
        if version < 3:
            request = LeaveGroupRequest(GROUP, member.member_id)
        else:
            request = LeaveGroupRequest(GROUP, members=[MemberIdentity(member.member_id), MemberIdentity("who")])
        answer = await groups.ask(request, LeaveGroupResponse, version)
        codes = [(member.member_id, member.error_code) for member in answer.members]
        assert answer.error_code == 0
        assert codes == ([] if version < 3 else [(member.member_id, 0), ("who", ErrorCode.UNKNOWN_MEMBER_ID)])
        assert (await groups.heartbeat(member.generation_id, member.member_id)).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    with_groups(tmp_path, use)


def test_before_version_3_the_error_of_the_one_that_leaves_is_that_of_the_answer(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        answer = await groups.ask(LeaveGroupRequest(GROUP, "who"), LeaveGroupResponse, 2)
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    with_groups(tmp_path, use)


def test_a_member_that_is_silent_for_its_session_is_out(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        member = await groups.join(session_timeout_ms=1)
        await groups.sync(member)

        async def is_out() -> bool:
            return groups.broker.groups.gauges()[f"{CLASSIC}NumGroupsEmpty"] == 1

        await groups.until(is_out)

    with_groups(tmp_path, use)


def test_what_can_be_told_without_a_group_is_told_first(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        assert (await groups.join(group_id="")).error_code == ErrorCode.INVALID_GROUP_ID
        assert (await groups.join(session_timeout_ms=0)).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        assert (await groups.join("who")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert (await groups.heartbeat(1, "who", group="")).error_code == ErrorCode.INVALID_GROUP_ID

    with_groups(tmp_path, use)


def test_before_the_topic_is_there_nobody_is_coordinator(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        assert (await groups.join()).error_code == ErrorCode.NOT_COORDINATOR
        assert (await groups.heartbeat(1, "m")).error_code == ErrorCode.NOT_COORDINATOR

    with_groups(tmp_path, use)


def test_others_see_the_client_id_and_the_address_of_a_member(tmp_path: Path) -> None:
    async def use(groups: Groups) -> None:
        await groups.ready()
        await groups.join_alone()
        described = await groups.ask(DescribeGroupsRequest([GROUP]), DescribeGroupsResponse, 5)
        assert [(member.client_id, member.client_host) for member in described.groups[0].members] == [("test", "/127.0.0.1")]

    with_groups(tmp_path, use)
