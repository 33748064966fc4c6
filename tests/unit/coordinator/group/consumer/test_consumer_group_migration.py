"""A group that moves between the classic and the consumer protocol while it has members of both."""

from __future__ import annotations

import pytest

from barnabas.coordinator.group.classic.classic_group import ClassicGroup
from barnabas.coordinator.group.classic.classic_groups import Caller
from barnabas.coordinator.group.classic.consumer_protocol import read_assignment
from barnabas.coordinator.group.config import GroupCoordinatorConfig, MigrationPolicy
from barnabas.coordinator.group.consumer.consumer_group import ConsumerGroup
from barnabas.errors import GroupIdNotFound, IllegalGeneration, InconsistentGroupProtocol, KafkaError, RebalanceInProgress, UnknownMemberId
from barnabas.protocol.message import serialize
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.consumer_protocol_subscription import TopicPartition as OwnedTopic
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse
from tests.unit.coordinator.consumer_world import Topics, World, state_of

VERSION = 1
PREFIX = VERSION.to_bytes(2, "big")


def subscription(*topics: str, owned: dict[str, list[int]] | None = None) -> bytes:
    held = [OwnedTopic(name, partitions) for name, partitions in (owned or {}).items()]
    return PREFIX + serialize(ConsumerProtocolSubscription(topics=list(topics), user_data=None, owned_partitions=held), VERSION)


def assignment(user_data: bytes | None = None, **topics: list[int]) -> bytes:
    assigned = [AssignedTopic(name, partitions) for name, partitions in topics.items()]
    return PREFIX + serialize(ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=user_data), VERSION)


class Migration(World):
    def classic_join(self, member_id: str, *topics: str, version: int = 3, protocol: str = "range", **fields: object) -> JoinGroupResponse:
        owned = fields.pop("owned", None)
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(protocol, subscription(*topics, owned=owned))],  # type: ignore[arg-type]
            **fields,  # type: ignore[arg-type]
        )
        answers: list[JoinGroupResponse] = []
        self.write(self.shard.join(Caller("old", "/10.0.0.1", version), request, answers.append))
        self.advance(0)
        assert len(answers) == 1
        return answers[0]

    def classic_sync(self, member_id: str, generation: int, **assignments: bytes) -> SyncGroupResponse:
        request = SyncGroupRequest(
            "g",
            generation,
            member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member, data) for member, data in assignments.items()],
        )
        answers: list[SyncGroupResponse] = []
        self.write(self.shard.sync(request, answers.append))
        assert len(answers) == 1
        return answers[0]

    def classic_heartbeat(self, member_id: str, generation: int) -> int:
        result = self.shard.heartbeat(HeartbeatRequest("g", generation, member_id))
        self.write(result)  # type: ignore[arg-type]
        assert result.response is not None
        return result.response.error_code

    def classic_group(self, user_data: bytes | None = None) -> str:
        """A stable classic group of one member that reads all of topic a; the id of the member."""
        member_id = self.classic_join("", "a").member_id
        self.write(
            self.shard.sync(
                SyncGroupRequest(
                    "g", 1, member_id, assignments=[SyncGroupRequestAssignment(member_id, assignment(user_data, a=[0, 1, 2, 3]))]
                ),
                lambda _: None,
            )
        )
        return member_id


def migration(**config: object) -> Migration:
    return Migration(Topics(a=4), GroupCoordinatorConfig(group_initial_rebalance_delay_ms=0, **config))  # type: ignore[arg-type]


def test_a_new_member_turns_a_classic_group_into_a_consumer_group_and_nobody_loses_a_partition() -> None:
    w = migration()
    old = w.classic_group()
    new = w.join("m2", "a")
    assert new.member_epoch == 2
    assert w.assigned(old) == {"a": [0, 1, 2, 3]}
    assert w.assigned("m2") == {}
    assert state_of(w.rebuilt().groups["g"]) == state_of(w.group)


def test_a_classic_member_is_told_to_join_again_gives_back_and_the_new_one_takes_over() -> None:
    w = migration()
    old = w.classic_group()
    w.join("m2", "a")
    assert w.classic_heartbeat(old, 1) == RebalanceInProgress.code
    w.classic_join(old, "a", owned={"a": [0, 1, 2, 3]})
    keeps = w.assigned(old)["a"]
    assert len(keeps) == 2
    answer = w.classic_join(old, "a", owned={"a": keeps})
    assert (answer.error_code, answer.generation_id, answer.protocol_name, answer.leader) == (0, 2, "range", "")
    synced = w.classic_sync(old, 2)
    assert [(topic.topic, topic.partitions) for topic in read_assignment(synced.assignment).assigned_partitions] == [("a", keeps)]
    w.report("m2", 2)
    assert sorted(keeps + w.assigned("m2")["a"]) == [0, 1, 2, 3]
    assert w.classic_heartbeat(old, 2) == 0


def test_a_classic_member_with_a_wrong_generation_or_protocol_is_told_so() -> None:
    w = migration()
    old = w.classic_group()
    w.join("m2", "a")
    with pytest.raises(IllegalGeneration):
        w.classic_heartbeat(old, 9)
    with pytest.raises(UnknownMemberId, match="does not use the classic protocol"):
        w.classic_heartbeat("m2", 2)
    with pytest.raises(InconsistentGroupProtocol):
        w.classic_join(old, "a", protocol="other")


def test_a_dynamic_classic_member_is_given_its_id_first() -> None:
    w = migration()
    w.join("m1", "a")
    answer = w.classic_join("", "a", version=4)
    assert (answer.error_code, answer.member_id) == (79, "id-1")
    assert w.classic_join(answer.member_id, "a", version=4).error_code == 0
    assert w.group.num_classic_members == 1


def test_a_classic_member_that_does_not_come_back_in_time_is_fenced() -> None:
    w = migration(group_consumer_session_timeout_ms=10**9)
    old = w.classic_group()
    w.join("m2", "a")
    for _ in range(4):
        w.classic_heartbeat(old, 1)
        w.advance(8_000)
    assert list(w.group.members) == ["m2"]


def test_when_the_last_member_of_the_consumer_protocol_leaves_the_group_is_classic_again_and_rebalances() -> None:
    w = migration()
    old = w.classic_group()
    w.join("m2", "a")
    w.report("m2", -1)
    group = w.shard.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert list(group.members) == [old]
    assert group.state_name == "PreparingRebalance"
    rebuilt = w.rebuilt().groups["g"]
    assert isinstance(rebuilt, ClassicGroup) and list(rebuilt.members) == [old]
    assert w.classic_join(old, "a").generation_id == 3


def test_a_classic_member_can_leave_a_consumer_group() -> None:
    w = migration()
    old = w.classic_group()
    w.join("m2", "a")
    result = w.shard.leave(LeaveGroupRequest("g", members=[MemberIdentity(old), MemberIdentity("x")]), 5)
    w.write(result)  # type: ignore[arg-type]
    assert result.response is not None
    assert [member.error_code for member in result.response.members] == [0, 25]
    w.report("m2", 2)
    assert w.assigned("m2") == {"a": [0, 1, 2, 3]}


def test_a_static_member_that_comes_back_with_the_classic_protocol_takes_the_group_with_it() -> None:
    w = migration()
    w.join("m1", "a", instance_id="i")
    answer = w.classic_join("", "a", group_instance_id="i")
    assert answer.error_code == 0
    group = w.shard.groups["g"]
    assert isinstance(group, ClassicGroup) and group.state_name == "Stable"
    assert read_assignment(group.members[answer.member_id].assignment).assigned_partitions[0].partitions == [0, 1, 2, 3]
    assert isinstance(w.rebuilt(w.compacted()).groups["g"], ClassicGroup)


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_a_group_is_not_upgraded_where_that_is_not_allowed(policy: MigrationPolicy) -> None:
    w = migration(group_consumer_migration_policy=policy)
    w.classic_group()
    with pytest.raises(GroupIdNotFound, match=r"Cannot upgrade classic group g to consumer group because online upgrade is disabled\."):
        w.join("m2", "a")


def test_a_group_is_not_downgraded_where_that_is_not_allowed() -> None:
    w = migration(group_consumer_migration_policy=MigrationPolicy.UPGRADE)
    w.classic_group()
    w.join("m2", "a")
    w.report("m2", -1)
    assert isinstance(w.shard.groups["g"], ConsumerGroup)


def test_a_group_with_a_custom_assignor_is_not_upgraded() -> None:
    w = migration()
    w.classic_group(user_data=b"mine")
    with pytest.raises(GroupIdNotFound, match="an unsupported custom assignor is in use"):
        w.join("m2", "a")


def test_a_subscription_nobody_can_read_is_refused() -> None:
    w = migration()
    w.join("m1", "a")
    request = JoinGroupRequest("g", 10_000, 30_000, "m2", None, "consumer", [JoinGroupRequestProtocol("range", b"")])
    with pytest.raises(KafkaError, match="Malformed embedded consumer protocol"):
        w.shard.join(Caller("old", "/10.0.0.1", 3), request, lambda _: None)


def test_an_empty_classic_group_simply_becomes_a_consumer_group() -> None:
    w = migration()
    old = w.classic_group()
    w.write(w.shard.leave(LeaveGroupRequest("g", members=[MemberIdentity(old)]), 5))  # type: ignore[arg-type]
    w.advance(0)
    assert w.shard.groups["g"].is_empty
    assert w.join("m2", "a").member_epoch == 1
    assert state_of(w.rebuilt().groups["g"]) == state_of(w.group)


def test_an_empty_consumer_group_simply_becomes_a_classic_group() -> None:
    w = migration()
    w.join("m1", "a")
    w.report("m1", -1)
    w.classic_group()
    assert w.shard.groups["g"].state_name == "Stable"
    assert isinstance(w.rebuilt().groups["g"], ClassicGroup)
