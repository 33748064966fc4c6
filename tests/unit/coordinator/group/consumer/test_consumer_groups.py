"""Members of the consumer protocol: joining, taking over and giving back partitions, leaving, static members, expressions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coordinator.group.classic.classic_groups import Caller
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.consumer.heartbeat_epochs import validate_heartbeat
from barnabas.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRegularExpression,
    InvalidRequest,
    KafkaError,
    KafkaStorageError,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.unit.coordinator.consumer_world import Topics, World, state_of


def world(**config: object) -> World:
    return World(Topics(a=4, b=2), GroupCoordinatorConfig(**config))  # type: ignore[arg-type]


def test_the_first_member_gets_everything_at_epoch_one() -> None:
    w = world()
    answer = w.join("m1", "a", "b")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m1", 1, 5_000)
    assert answer.assignment is not None
    assert {topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions} == {
        w.topics.ids["a"]: [0, 1, 2, 3],
        w.topics.ids["b"]: [0, 1],
    }
    assert w.group.state_name == "Stable"


def test_a_member_without_an_id_is_given_one() -> None:
    assert world().heartbeat(version=0, subscribed_topic_names=["a"], rebalance_timeout_ms=1, topic_partitions=[]).member_id == "id-1"


def test_a_heartbeat_without_news_writes_nothing_and_says_no_assignment() -> None:
    w = world()
    w.join("m1", "a")
    written = len(w.log)
    assert w.report("m1", 1).assignment is None
    assert len(w.log) == written


def test_a_partition_has_one_owner_until_it_is_given_back() -> None:
    w = world()
    w.join("m1", "a")
    second = w.join("m2", "a")
    assert second.assignment is not None and second.assignment.topic_partitions == []
    assert w.report("m1", 1).member_epoch == 1  # asked to give two back, and stays where it is
    assert w.assigned("m1") == {"a": [0, 1]}
    assert w.report("m2", 2).assignment is None
    assert w.report("m1", 1, {"a": [0, 1]}).member_epoch == 2
    assert w.report("m2", 2).assignment is not None
    assert w.assigned("m2") == {"a": [2, 3]}
    assert w.group.state_name == "Stable"


def test_a_member_that_keeps_its_partitions_too_long_is_fenced() -> None:
    w = world(group_consumer_session_timeout_ms=10**9)
    w.join("m1", "a")
    w.join("m2", "a")
    w.report("m1", 1)
    w.advance(60_001)
    assert list(w.group.members) == ["m2"]


def test_a_member_whose_session_ends_is_fenced_and_its_partitions_go_to_the_others() -> None:
    w = world()
    w.join("m1", "a")
    w.join("m2", "a")
    w.advance(44_000)
    w.report("m2", 2)
    w.advance(2_000)
    assert list(w.group.members) == ["m2"]
    w.report("m2", 2)
    assert w.assigned("m2") == {"a": [0, 1, 2, 3]}


def test_the_session_of_a_member_ends_although_its_leave_could_not_be_written() -> None:
    w = world()
    w.join("m1", "a")
    w.join("m2", "a")
    left = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m1", member_epoch=-1)
    result = w.consumer.consumer_heartbeat(Caller("client", "/127.0.0.1", 1), left)
    assert result.on_appended is not None
    result.on_appended(KafkaStorageError("too many open files"))
    w.advance(44_000)
    w.report("m2", 2)
    w.advance(2_000)
    assert list(w.group.members) == ["m2"]
    assert [key for key in w.time.due if "m1" in key] == []


def test_a_member_that_leaves_is_forgotten() -> None:
    w = world()
    w.join("m1", "a")
    assert w.report("m1", -1).member_epoch == -1
    assert w.group.state_name == "Empty"
    assert w.group.group_epoch == 2


def test_a_full_heartbeat_is_answered_with_the_assignment() -> None:
    w = world()
    w.join("m1", "a")
    assert w.report("m1", 1, {"a": [0]}, rebalance_timeout_ms=60_000, subscribed_topic_names=["a"]).assignment is not None


def test_an_epoch_from_the_future_is_fenced() -> None:
    w = world()
    w.join("m1", "a")
    with pytest.raises(FencedMemberEpoch, match=r"greater member epoch \(7\) than the one known by the group coordinator \(1\)"):
        w.report("m1", 7)


def test_the_previous_epoch_is_good_for_a_member_that_missed_our_answer() -> None:
    w = world()
    w.join("m1", "a")
    w.join("m2", "a")
    w.report("m1", 1)
    w.report("m1", 1, {"a": [0, 1]})
    assert w.report("m1", 1, {"a": [0, 1]}).member_epoch == 2
    with pytest.raises(FencedMemberEpoch, match="smaller"):
        w.report("m1", 1, {"a": [0, 1, 2]})
    with pytest.raises(FencedMemberEpoch, match="smaller"):
        w.report("m1", 1)


def test_an_unknown_group_or_member_is_told_so() -> None:
    w = world()
    with pytest.raises(GroupIdNotFound, match=r"Consumer group g not found\."):
        w.report("m1", 1)
    w.join("m1", "a")
    with pytest.raises(UnknownMemberId, match=r"Member m9 is not a member of group g\."):
        w.report("m9", 1)


def test_a_full_group_takes_nobody_in() -> None:
    w = world(group_consumer_max_size=1)
    w.join("m1", "a")
    with pytest.raises(GroupMaxSizeReached, match="maximum capacity of 1 members"):
        w.join("m2", "a")
    assert w.join("m1", "a").member_epoch == 1


def test_new_partitions_are_assigned_when_the_topic_changed() -> None:
    w = world()
    w.join("m1", "b")
    w.topics.counts["b"] = 3
    w.report("m1", 1)
    assert w.assigned("m1") == {"b": [0, 1]}
    w.consumer.on_topics_changed(["b"], created=False)
    w.report("m1", 1)
    assert w.assigned("m1") == {"b": [0, 1, 2]}


def test_a_topic_that_comes_into_being_is_assigned() -> None:
    w = world()
    w.join("m1", "later")
    w.topics.create("later", 1)
    w.consumer.on_topics_changed(["later"], created=True)
    w.report("m1", 1)
    assert w.assigned("m1") == {"later": [0]}


def test_a_member_gives_back_at_once_what_it_no_longer_wants() -> None:
    w = world()
    w.join("m1", "a", "b")
    w.report("m1", 1, {"a": [0, 1, 2, 3], "b": [0, 1]}, subscribed_topic_names=["a"])
    assert w.assigned("m1") == {"a": [0, 1, 2, 3]}
    assert w.named(w.group.members["m1"].partitions_pending_revocation) == {"b": [0, 1]}


def test_the_assignor_most_members_ask_for_is_used() -> None:
    w = World(Topics(a=2, b=2))
    w.join("m1", "a", "b", server_assignor="range")
    w.join("m2", "a", "b", server_assignor="range")
    assert w.target("m1") == {"a": [0], "b": [0]}
    assert w.consumer.describe(["g"])[0].assignor_name == "range"


# -- static members


def test_a_static_member_that_went_for_a_while_gets_its_partitions_back_under_a_new_id() -> None:
    w = world()
    w.join("m1", "a", instance_id="i")
    assert w.report("m1", -2, instance_id="i").member_epoch == -2
    assert w.join("m2", "a", instance_id="i").member_epoch == 1
    assert w.assigned("m2") == {"a": [0, 1, 2, 3]}
    assert list(w.group.members) == ["m2"]


def test_a_static_member_that_is_there_is_not_replaced() -> None:
    w = world()
    w.join("m1", "a", instance_id="i")
    with pytest.raises(UnreleasedInstanceId, match="owned by m1 member"):
        w.join("m2", "a", instance_id="i")


def test_the_predecessor_of_a_static_member_is_fenced() -> None:
    w = world()
    w.join("m1", "a", instance_id="i")
    w.report("m1", -2, instance_id="i")
    w.join("m2", "a", instance_id="i")
    with pytest.raises(FencedInstanceId, match="was fenced by member m2"):
        w.report("m1", 1, instance_id="i")


def test_nobody_takes_the_partitions_of_a_static_member_that_will_be_back() -> None:
    w = world()
    w.join("m1", "a", instance_id="i")
    w.report("m1", -2, instance_id="i")
    w.join("m2", "a")
    w.report("m2", 2)
    assert w.assigned("m2") == {}


def test_a_static_member_that_stays_away_is_fenced_when_its_session_ends() -> None:
    w = world()
    w.join("m1", "a", instance_id="i")
    w.report("m1", -2, instance_id="i")
    w.advance(45_001)
    assert w.group.state_name == "Empty"


# -- expressions


def test_an_expression_is_resolved_after_the_join_and_assigned_with_the_next_heartbeat() -> None:
    w = World(Topics(**{"foo": 1, "foobar": 2, "bar": 1}))
    first = w.join("m1", subscribed_topic_names=None, subscribed_topic_regex="foo.*")
    assert first.assignment is not None and first.assignment.topic_partitions == []
    w.advance(0)
    assert w.report("m1", 1).member_epoch == 2
    assert w.assigned("m1") == {"foo": [0], "foobar": [0, 1]}


def test_a_new_topic_is_found_by_an_expression() -> None:
    w = World(Topics(foo=1))
    w.join("m1", subscribed_topic_names=None, subscribed_topic_regex="foo.*")
    w.advance(0)
    w.report("m1", 1)
    w.topics.create("foo2", 1)
    w.consumer.on_topics_changed(["foo2"], created=True)
    w.advance(10_001)
    w.report("m1", 2)
    w.advance(0)
    w.report("m1", 2)
    assert w.assigned("m1") == {"foo": [0], "foo2": [0]}


def test_an_expression_is_dropped_with_its_last_member() -> None:
    w = World(Topics(foo=1))
    w.join("m1", subscribed_topic_names=None, subscribed_topic_regex="foo.*")
    w.advance(0)
    w.report("m1", -1)
    assert w.group.resolved_regexes == {} and w.group.subscribed_topics == {}


def test_a_wrong_expression_is_refused() -> None:
    with pytest.raises(InvalidRegularExpression, match=r"`\[` is not a valid regular expression: missing closing \]\."):
        World(Topics(a=1)).join("m1", subscribed_topic_names=None, subscribed_topic_regex="[")


def test_names_and_an_expression_can_be_wanted_together() -> None:
    w = World(Topics(a=1, foo=1))
    w.join("m1", "a", subscribed_topic_regex="foo")
    w.advance(0)
    w.report("m1", 1)
    assert w.assigned("m1") == {"a": [0], "foo": [0]}


# -- what is refused before the group is looked at


@pytest.mark.parametrize(
    ("fields", "version", "message"),
    [
        ({"member_epoch": 0, "member_id": ""}, 1, "MemberId can't be empty."),
        ({"member_epoch": 5, "member_id": " "}, 0, "MemberId can't be empty."),
        ({"member_id": "m", "group_id": ""}, 1, "GroupId can't be empty."),
        ({"member_id": "m", "instance_id": ""}, 1, "InstanceId can't be empty."),
        ({"member_id": "m", "rack_id": ""}, 1, "RackId can't be empty."),
        ({"member_id": "m", "rebalance_timeout_ms": -1}, 1, "RebalanceTimeoutMs must be provided in first request."),
        ({"member_id": "m", "topic_partitions": None}, 1, "TopicPartitions must be empty when (re-)joining."),
        ({"member_id": "m", "topic_partitions": [TopicPartitions()]}, 1, "TopicPartitions must be empty when (re-)joining."),
        (
            {"member_id": "m", "subscribed_topic_names": None},
            1,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_id": "m", "member_epoch": -2}, 1, "InstanceId can't be null."),
        ({"member_id": "m", "member_epoch": -3}, 1, "MemberEpoch is invalid."),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(fields: dict[str, object], version: int, message: str) -> None:
    whole = {"group_id": "g", "rebalance_timeout_ms": 1, "topic_partitions": [], "subscribed_topic_names": ["a"], **fields}
    with pytest.raises(InvalidRequest) as caught:
        validate_heartbeat(ConsumerGroupHeartbeatRequest(**whole), version, ["uniform"])  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_an_assignor_we_do_not_have_is_refused() -> None:
    request = ConsumerGroupHeartbeatRequest("g", "m", 1, server_assignor="magic")
    with pytest.raises(UnsupportedAssignor, match=r"ServerAssignor magic is not supported\. Supported assignors: uniform, range\."):
        validate_heartbeat(request, 1, ["uniform", "range"])


# -- offsets, deletion, description


def test_only_the_current_epoch_may_commit() -> None:
    w = world()
    w.join("m1", "a")
    assert w.group.validate_offset_commit("m1", None, 1, transactional=False, version=9) is None
    with pytest.raises(StaleMemberEpoch, match="The received member epoch 0 does not match the expected member epoch 1"):
        w.group.validate_offset_commit("m1", None, 0, transactional=False, version=9)
    with pytest.raises(UnsupportedVersion):
        w.group.validate_offset_commit("m1", None, 1, transactional=False, version=8)
    with pytest.raises(UnknownMemberId):
        w.group.validate_offset_commit("", None, -1, transactional=False, version=9)


def test_anyone_may_commit_to_an_empty_group() -> None:
    w = world()
    w.join("m1", "a")
    w.report("m1", -1)
    w.group.validate_offset_commit("", None, -1, transactional=False, version=9)


def test_offsets_are_fetched_by_members_of_the_epoch_or_by_those_who_do_not_say() -> None:
    w = world()
    w.join("m1", "a")
    w.group.validate_offset_fetch(None, -1)
    w.group.validate_offset_fetch("m1", 1)
    with pytest.raises(StaleMemberEpoch):
        w.group.validate_offset_fetch("m1", 2)


def test_a_group_with_members_is_not_deleted_and_an_empty_one_is() -> None:
    w = world()
    w.join("m1", "a")
    with pytest.raises(NonEmptyGroup):
        w.group.validate_delete()
    w.report("m1", -1)
    w.write(w.shard.delete_groups(["g"]))  # type: ignore[arg-type]
    assert w.shard.groups == {}


def test_a_group_is_described_with_its_members() -> None:
    w = world()
    w.join("m1", "a", rack_id="r1")
    group = w.consumer.describe(["g"])[0]
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == ("Stable", 1, 1, "uniform")
    member = group.members[0]
    assert (member.member_id, member.rack_id, member.client_host, member.member_type) == ("m1", "r1", "/127.0.0.1", 1)
    assert [(topic.topic_name, topic.partitions) for topic in member.assignment.topic_partitions] == [("a", [0, 1, 2, 3])]
    assert member.target_assignment == member.assignment


def test_a_group_that_is_not_there_is_described_as_not_found() -> None:
    group = world().consumer.describe(["x"])[0]
    assert (group.error_code, group.error_message) == (69, "Group x not found.")


# -- the fold

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["join", "static", "beat", "give", "leave", "away", "wait", "regex", "names", "grow"]),
        st.sampled_from(["m1", "m2", "m3", "m4"]),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_replaying_the_log_whole_or_compacted_gives_the_same_group_and_no_partition_has_two_owners(steps: list[tuple[str, str]]) -> None:
    w = World(Topics(a=3, b=2, foo=1))
    for step, member_id in steps:
        try:
            take(w, step, member_id)
        except KafkaError:
            continue
        check_owners(w)
    if "g" in w.shard.groups:
        expected = state_of(w.group)
        assert state_of(w.rebuilt().groups["g"]) == expected
        assert state_of(w.rebuilt(w.compacted()).groups["g"]) == expected


def take(w: World, step: str, member_id: str) -> None:
    member = w.group.members.get(member_id) if "g" in w.shard.groups else None
    epoch = 0 if member is None else member.member_epoch
    instance = None if member is None else member.instance_id
    if step == "join":
        w.join(member_id, "a", "b")
    elif step == "static":
        w.join(member_id, "a", instance_id="i")
    elif step == "beat":
        w.report(member_id, epoch, instance_id=instance)
    elif step == "give":
        w.report(member_id, epoch, w.assigned(member_id) if member else {}, instance_id=instance)
    elif step == "leave":
        w.report(member_id, -1, instance_id=instance)
    elif step == "away":
        w.report(member_id, -2, instance_id="i")
    elif step == "wait":
        w.advance(20_000)
    elif step == "regex":
        w.join(member_id, subscribed_topic_names=None, subscribed_topic_regex="f.*")
    elif step == "names":
        w.report(member_id, epoch, w.assigned(member_id) if member else {}, subscribed_topic_names=["b"], instance_id=instance)
    else:
        w.topics.counts["a"] += 1
        w.consumer.on_topics_changed(["a"], created=False)


def check_owners(w: World) -> None:
    if "g" not in w.shard.groups:
        return
    owned = [
        (topic, partition)
        for member in w.group.members.values()
        for assignment in (member.assigned_partitions, member.partitions_pending_revocation)
        for topic, partitions in assignment.items()
        for partition in partitions
    ]
    assert len(owned) == len(set(owned))
