"""Groups, their members and their offsets."""

from __future__ import annotations

import pytest

from barnabas.client.admin import GroupState, GroupType, ListConsumerGroupOffsetsSpec, MemberToRemove, OffsetAndMetadata
from barnabas.client.consumer.assignors.assignor import Assignment
from barnabas.client.consumer.assignors.protocol import serialize_assignment
from barnabas.client.errors import GroupAuthorization, IllegalArgument
from barnabas.errors import GroupIdNotFound, NonEmptyGroup, UnknownMemberId, UnknownTopicOrPartition
from barnabas.protocol import api_keys
from barnabas.protocol.messages import consumer_group_describe_response as modern
from barnabas.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.delete_groups_request import DeleteGroupsRequest
from barnabas.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups_request import DescribeGroupsRequest
from barnabas.protocol.messages.describe_groups_response import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest
from barnabas.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_delete_request import OffsetDeleteRequest
from barnabas.protocol.messages.offset_delete_response import OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch_request import OffsetFetchRequest
from barnabas.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.topic_partition import TopicPartition
from tests.unit.client.admin.parts import FakeCluster, ScriptedAdmin, run

TP = TopicPartition("t", 0)


def test_all_brokers_list_their_groups() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, lambda node, _: ListGroupsResponse(groups=[ListedGroup(f"g{node}", "consumer", "Stable", "Classic")]))
    groups = run(ScriptedAdmin(cluster).list_groups())
    assert {listing.group_id for listing in groups} == {"g1", "g2", "g3"}
    assert {(listing.type, listing.group_state) for listing in groups} == {(GroupType.CLASSIC, GroupState.STABLE)}


def test_a_broker_that_fails_does_not_hide_what_the_others_list() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, lambda node, _: ListGroupsResponse(0, 31) if node == 2 else ListGroupsResponse(groups=[ListedGroup("g")]))
    groups = run(ScriptedAdmin(cluster).list_groups())
    assert [listing.group_id for listing in groups.valid] == ["g"]
    assert [error.code for error in groups.errors] == [31]
    with pytest.raises(Exception, match="authorization"):
        groups.all()


def test_groups_of_connect_are_no_consumer_groups() -> None:
    cluster = FakeCluster()
    cluster.alive = [1]
    listed = [
        ListedGroup("a", "consumer", "Empty", "Classic"),
        ListedGroup("b", "connect", "Stable", "Classic"),
        ListedGroup("c", "", "Empty", "Classic"),
    ]
    cluster.on(ListGroupsRequest, ListGroupsResponse(groups=listed))
    admin = ScriptedAdmin(cluster)
    consumer_groups = run(admin.list_consumer_groups())
    assert [(listing.group_id, listing.is_simple_consumer_group) for listing in consumer_groups] == [("a", False), ("c", True)]
    assert [listing.group_id for listing in run(admin.list_groups(protocol_types=["connect"]))] == ["b"]


def test_filters_are_sent_to_the_brokers() -> None:
    cluster = FakeCluster()
    cluster.on(ListGroupsRequest, ListGroupsResponse())
    run(ScriptedAdmin(cluster).list_groups(group_states=[GroupState.PREPARING_REBALANCE], types=[GroupType.SHARE]))
    request = cluster.requests(ListGroupsRequest)[0]
    assert (request.states_filter, request.types_filter) == (["PreparingRebalance"], ["Share"])


def classic(group_id: str, protocol_type: str = "consumer") -> DescribedGroup:
    member = DescribedGroupMember("m", None, "c", "/h", b"", serialize_assignment(Assignment((TP,), None)))
    return DescribedGroup(0, None, group_id, "Stable", protocol_type, "range", [member])


def test_a_group_of_the_new_protocol_is_described_with_its_epochs() -> None:
    cluster = FakeCluster()
    assigned = modern.Assignment([modern.TopicPartitions(topic_name="t", partitions=[0])])
    member = modern.Member("m", None, "rack", 4, "c", "/h", ["t"], None, assigned, assigned, 1)
    cluster.on(
        ConsumerGroupDescribeRequest,
        modern.ConsumerGroupDescribeResponse(groups=[modern.DescribedGroup(0, None, "g", "Stable", 5, 4, "uniform", [member])]),
    )
    group = run(ScriptedAdmin(cluster).describe_consumer_groups(["g"]))["g"]
    assert (group.type, group.group_state, group.group_epoch, group.target_assignment_epoch) == (
        GroupType.CONSUMER,
        GroupState.STABLE,
        5,
        4,
    )
    (described,) = group.members
    assert (described.member_epoch, described.upgraded, described.rack_id) == (4, True, "rack")
    assert described.assignment.topic_partitions == described.target_assignment.topic_partitions == {TP}  # type: ignore[union-attr]
    assert group.coordinator.id == 2


def test_a_group_of_the_classic_protocol_is_found_by_the_older_request() -> None:
    cluster = FakeCluster()
    cluster.on(ConsumerGroupDescribeRequest, modern.ConsumerGroupDescribeResponse(groups=[modern.DescribedGroup(69, None, "g")]))
    cluster.on(DescribeGroupsRequest, DescribeGroupsResponse(groups=[classic("g")]))
    before_ms = cluster.clock.ms
    group = run(ScriptedAdmin(cluster).describe_consumer_groups(["g"]))["g"]
    assert (group.type, group.partition_assignor) == (GroupType.CLASSIC, "range")
    assert group.members[0].assignment.topic_partitions == {TP}
    assert cluster.clock.ms == before_ms


def test_a_broker_without_the_new_protocol_is_asked_in_the_old_way() -> None:
    cluster = FakeCluster()
    cluster.limits[api_keys.CONSUMER_GROUP_DESCRIBE] = -1
    cluster.on(DescribeGroupsRequest, DescribeGroupsResponse(groups=[classic("g")]))
    assert run(ScriptedAdmin(cluster).describe_consumer_groups(["g"]))["g"].type is GroupType.CLASSIC


def test_a_group_of_connect_is_refused_as_a_consumer_group_but_not_as_a_classic_one() -> None:
    cluster = FakeCluster()
    cluster.limits[api_keys.CONSUMER_GROUP_DESCRIBE] = -1
    cluster.on(DescribeGroupsRequest, DescribeGroupsResponse(groups=[classic("g", "connect")]))
    admin = ScriptedAdmin(cluster)
    with pytest.raises(IllegalArgument, match=r"GroupId g is not a consumer group \(connect\)\."):
        run(admin.describe_consumer_groups(["g"]))["g"]
    group = run(admin.describe_classic_groups(["g"]))["g"]
    assert (group.protocol, group.protocol_data) == ("connect", "range")
    assert group.members[0].assignment.topic_partitions == frozenset()


def test_a_coordinator_that_has_moved_is_found_again() -> None:
    cluster = FakeCluster()
    cluster.on(
        DeleteGroupsRequest,
        DeleteGroupsResponse(results=[DeletableGroupResult("g", 16)]),
        DeleteGroupsResponse(results=[DeletableGroupResult("g")]),
    )
    assert run(ScriptedAdmin(cluster).delete_consumer_groups(["g"])).all() == {"g": None}
    assert len(cluster.requests(FindCoordinatorRequest)) == 2


def test_a_group_with_members_is_not_deleted_and_one_that_is_not_there_neither() -> None:
    cluster = FakeCluster()
    cluster.on(DeleteGroupsRequest, DeleteGroupsResponse(results=[DeletableGroupResult("g", 68), DeletableGroupResult("h", 69)]))
    errors = run(ScriptedAdmin(cluster).delete_consumer_groups(["g", "h"])).errors
    assert isinstance(errors["g"], NonEmptyGroup) and isinstance(errors["h"], GroupIdNotFound)


def test_a_coordinator_that_may_not_be_looked_up_is_told_so() -> None:
    cluster = FakeCluster()
    cluster.on(FindCoordinatorRequest, FindCoordinatorResponse(coordinators=[Coordinator("g", error_code=30)]))
    error = run(ScriptedAdmin(cluster).delete_consumer_groups(["g"])).errors["g"]
    assert isinstance(error, GroupAuthorization)
    assert str(error) == "FindCoordinator request for groupId `g` failed due to authorization failure"


def test_old_brokers_are_asked_for_one_coordinator_after_the_other() -> None:
    cluster = FakeCluster()
    cluster.limits[api_keys.FIND_COORDINATOR] = 3
    cluster.on(FindCoordinatorRequest, FindCoordinatorResponse(node_id=3))
    cluster.on(DeleteGroupsRequest, DeleteGroupsResponse(results=[DeletableGroupResult("g"), DeletableGroupResult("h")]))
    run(ScriptedAdmin(cluster).delete_consumer_groups(["g", "h"])).all()
    assert [request.key for request in cluster.requests(FindCoordinatorRequest)] == ["g", "h"]
    assert cluster.nodes_asked(DeleteGroupsRequest) == [3]


def test_static_members_are_removed_by_their_names() -> None:
    cluster = FakeCluster()
    cluster.on(LeaveGroupRequest, LeaveGroupResponse(members=[MemberResponse("", "i"), MemberResponse("", "j", 25)]))
    left = run(ScriptedAdmin(cluster).remove_members_from_consumer_group("g", [MemberToRemove("i"), MemberToRemove("j")]))
    assert left["i"] is None and isinstance(left.errors["j"], UnknownMemberId)
    assert [member.reason for member in cluster.requests(LeaveGroupRequest)[0].members] == ["member was removed by an admin"] * 2


def test_a_member_without_a_name_is_removed_by_its_member_id() -> None:
    cluster = FakeCluster()
    cluster.on(LeaveGroupRequest, LeaveGroupResponse(members=[MemberResponse("m", None)]))
    assert run(ScriptedAdmin(cluster).remove_members_from_consumer_group("g", [MemberToRemove(member_id="m")])).all() == {"m": None}
    sent = cluster.requests(LeaveGroupRequest)[0].members[0]
    assert (sent.member_id, sent.group_instance_id) == ("m", None)


def test_all_members_are_removed_when_none_is_named() -> None:
    cluster = FakeCluster()
    cluster.limits[api_keys.CONSUMER_GROUP_DESCRIBE] = -1
    cluster.on(DescribeGroupsRequest, DescribeGroupsResponse(groups=[classic("g")]))
    cluster.on(LeaveGroupRequest, LeaveGroupResponse(members=[MemberResponse("m", None)]))
    assert run(ScriptedAdmin(cluster).remove_members_from_consumer_group("g", reason="a" * 300)).all() == {"m": None}
    assert len(cluster.requests(LeaveGroupRequest)[0].members[0].reason or "") == 255


def fetched(*rows: tuple[int, int, int]) -> OffsetFetchResponse:
    partitions = [OffsetFetchResponsePartitions(number, offset, 7, "note", code) for number, offset, code in rows]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup("g", [OffsetFetchResponseTopics("t", partitions=partitions)])])


def test_offsets_are_listed_by_group_and_partition() -> None:
    cluster = FakeCluster()
    cluster.on(OffsetFetchRequest, fetched((0, 5, 0), (1, -1, 0), (2, 3, 88)))
    spec = ListConsumerGroupOffsetsSpec([TopicPartition("t", number) for number in range(3)])
    offsets = run(ScriptedAdmin(cluster).list_consumer_group_offsets({"g": spec}))["g"]
    assert offsets == {TP: OffsetAndMetadata(5, "note", 7), TopicPartition("t", 1): None}


def test_all_offsets_are_listed_of_a_group_alone() -> None:
    cluster = FakeCluster()
    cluster.on(OffsetFetchRequest, fetched((0, 5, 0)))
    run(ScriptedAdmin(cluster).list_consumer_group_offsets("g")).all()
    assert cluster.requests(OffsetFetchRequest)[0].groups[0].topics is None


def test_old_brokers_are_asked_for_the_offsets_of_one_group_after_the_other() -> None:
    cluster = FakeCluster()
    cluster.limits[api_keys.OFFSET_FETCH] = 7
    rows = [OffsetFetchResponseTopic("t", [OffsetFetchResponsePartition(0, 5)])]
    cluster.on(OffsetFetchRequest, OffsetFetchResponse(topics=rows))
    consumer_group_offsets = run(ScriptedAdmin(cluster).list_consumer_group_offsets({"g": None, "h": [TP]}))
    assert consumer_group_offsets["g"] == consumer_group_offsets["h"] == {TP: OffsetAndMetadata(5)}
    assert [request.group_id for request in cluster.requests(OffsetFetchRequest)] == ["g", "h"]


def committed(*codes: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[OffsetCommitResponseTopic("t", partitions=[OffsetCommitResponsePartition(n, c) for n, c in enumerate(codes)])]
    )


def test_offsets_are_set_each_with_its_outcome() -> None:
    cluster = FakeCluster()
    cluster.on(OffsetCommitRequest, committed(0, 3))
    offsets = {TP: OffsetAndMetadata(1), TopicPartition("t", 1): OffsetAndMetadata(2, "x", 3)}
    altered = run(ScriptedAdmin(cluster).alter_consumer_group_offsets("g", offsets))
    assert altered[TP] is None and isinstance(altered.errors[TopicPartition("t", 1)], UnknownTopicOrPartition)


def test_a_rebalance_is_waited_for_before_offsets_are_set() -> None:
    cluster = FakeCluster()
    cluster.on(OffsetCommitRequest, committed(27), committed(0))
    run(ScriptedAdmin(cluster).alter_consumer_group_offsets("g", {TP: OffsetAndMetadata(1)})).all()


def test_the_groups_error_is_that_of_all_its_partitions() -> None:
    cluster = FakeCluster()
    cluster.on(OffsetDeleteRequest, OffsetDeleteResponse(69))
    errors = run(ScriptedAdmin(cluster).delete_consumer_group_offsets("g", [TP])).errors
    assert isinstance(errors[TP], GroupIdNotFound)


@pytest.mark.parametrize("text", ["Stable", "stable", "STABLE"])
def test_states_are_read_in_any_case(text: str) -> None:
    assert GroupState.parse(text) is GroupState.STABLE


def test_a_state_of_a_newer_broker_is_unknown() -> None:
    assert GroupState.parse("Dreaming") is GroupState.UNKNOWN
    assert GroupType.parse("Choir") is GroupType.UNKNOWN


def test_each_type_of_group_has_its_states() -> None:
    assert GroupState.states_for_type(GroupType.SHARE) == {GroupState.EMPTY, GroupState.STABLE, GroupState.DEAD}
    with pytest.raises(ValueError, match="Unknown"):
        GroupState.states_for_type(GroupType.UNKNOWN)
