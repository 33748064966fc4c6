"""What administration writes into the tree: the nodes Kafka wrote, and nothing when it may not."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

import pytest

from barnabas.errors import InvalidReplicaAssignment, InvalidTopic, KafkaError, TopicExists, UnknownTopicOrPartition
from barnabas.metadata import paths
from barnabas.metadata.admin_tree import AdminTree, ExistingTopics, PlannedTopic, TopicAlreadyMarkedForDeletion
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import NotEmpty
from barnabas.metadata.local import LocalTree
from barnabas.metadata.tree import Create, Delete, SetData, TreeRequest, TreeResponse
from barnabas.metadata.znodes.topics import TopicAssignment
from barnabas.uuid import Uuid

R = TypeVar("R")
T_ID = Uuid.from_string("Y8jGbDucSc2uq1lOY5Cs7w")
T_NODE = b'{"partitions":{"0":[0,1],"1":[1,0]},"topic_id":"Y8jGbDucSc2uq1lOY5Cs7w","adding_replicas":{},"removing_replicas":{},"version":3}'


def run(coroutine: Coroutine[object, object, R]) -> R:
    """On the embedded store nothing is ever waited for, so one step is the whole way."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]
    raise AssertionError("the embedded store suspended")


@pytest.fixture
def client() -> TreeClient:
    connected = TreeClient(LocalTree(lambda: 1000), lambda: None)
    run(connected.connect())
    for path in paths.PERSISTENT_PATHS:
        run(connected.ensure(path))
    return connected


@pytest.fixture
def admin(client: TreeClient) -> AdminTree:
    return AdminTree(client, Random(1))


def data(client: TreeClient, path: str) -> bytes | None:
    node = run(client.get(path))
    assert node is not None, f"{path} is not there"
    return node.data


def changes(client: TreeClient) -> list[bytes | None]:
    children = run(client.children(paths.CONFIG_CHANGES))
    assert children is not None
    return [data(client, f"{paths.CONFIG_CHANGES}/{name}") for name in children.names]


def test_a_topic_is_written_as_kafka_writes_it(client: TreeClient, admin: AdminTree) -> None:
    assert run(admin.create_topic("T", {0: (0, 1), 1: (1, 0)}, {"retention.ms": "123456789"}, topic_id=T_ID)) == T_ID
    assert data(client, "/brokers/topics/T") == T_NODE
    assert data(client, "/config/topics/T") == b'{"version":1,"config":{"retention.ms":"123456789"}}'


def test_a_topic_without_config_has_an_empty_config_node(client: TreeClient, admin: AdminTree) -> None:
    run(admin.create_topic("U", {0: (0,)}))
    assert data(client, "/config/topics/U") == b'{"version":1,"config":{}}'


def test_a_new_topic_makes_no_config_change_notification(client: TreeClient, admin: AdminTree) -> None:
    run(admin.create_topic("T", {0: (0,)}, {"retention.ms": "1"}))
    assert changes(client) == []


def test_validating_only_writes_nothing(admin: AdminTree) -> None:
    run(admin.create_topic("T", {0: (0,)}, validate_only=True))
    assert run(admin.all_topics()) == []


def test_a_topic_is_not_created_twice(client: TreeClient, admin: AdminTree) -> None:
    run(admin.create_topic("T", {0: (0,)}, {"retention.ms": "1"}))
    with pytest.raises(TopicExists, match=r"^Topic 'T' already exists\.$"):
        run(admin.create_topic("T", {0: (0,)}))
    assert data(client, "/config/topics/T") == b'{"version":1,"config":{"retention.ms":"1"}}'


def test_one_who_was_faster_keeps_topic_and_config(client: TreeClient, admin: AdminTree) -> None:
    run(admin.create_topic("T", {0: (0,)}, {"retention.ms": "1"}))
    (outcome,) = run(admin.create_topics([PlannedTopic("T", {0: (1,)}, {"retention.ms": "2"})]))
    assert isinstance(outcome, TopicExists)
    assert data(client, "/config/topics/T") == b'{"version":1,"config":{"retention.ms":"1"}}'


def test_the_config_of_a_topic_that_is_no_more_is_replaced(client: TreeClient, admin: AdminTree) -> None:
    run(client.create("/config/topics/T", b'{"version":1,"config":{"retention.ms":"1"}}'))
    run(admin.create_topic("T", {0: (0,)}))
    assert data(client, "/config/topics/T") == b'{"version":1,"config":{}}'


def test_a_topic_without_config_node_is_not_created_again(client: TreeClient, admin: AdminTree) -> None:
    run(client.create("/brokers/topics/T", T_NODE))
    (outcome,) = run(admin.create_topics([PlannedTopic("T", {0: (1,)})]))
    assert isinstance(outcome, TopicExists)
    assert run(client.exists("/config/topics/T")) is None


def test_the_parents_are_made_where_they_are_missing() -> None:
    client = TreeClient(LocalTree(lambda: 1000), lambda: None)
    run(client.connect())
    run(AdminTree(client, Random(1)).create_topic("T", {0: (0, 1), 1: (1, 0)}, topic_id=T_ID))
    assert data(client, "/brokers/topics/T") == T_NODE


def test_of_many_topics_each_has_its_own_outcome(admin: AdminTree) -> None:
    run(admin.create_topic("b", {0: (0,)}))
    outcomes = run(admin.create_topics([PlannedTopic(name, {0: (0,)}) for name in "abc"]))
    assert [type(outcome) for outcome in outcomes] == [Uuid, TopicExists, Uuid]
    assert run(admin.all_topics()) == ["a", "b", "c"]


def test_a_name_that_collides_is_refused(admin: AdminTree) -> None:
    run(admin.create_topic("a.b", {0: (0,)}))
    with pytest.raises(InvalidTopic, match=r"^Topic 'a_b' collides with existing topic: a\.b$"):
        run(admin.create_topic("a_b", {0: (0,)}))


def test_a_name_is_taken_while_its_topic_is_being_deleted(admin: AdminTree) -> None:
    run(admin.create_topic("T", {0: (0,)}))
    run(admin.delete_topic("T"))
    with pytest.raises(TopicExists, match="marked for deletion"):
        run(admin.create_topic("T", {0: (0,)}))


def test_the_names_of_a_request_count_for_those_that_follow() -> None:
    names = ExistingTopics(["a"], [])
    names.add("b.c")
    assert "b.c" in names and len(names) == 2
    with pytest.raises(InvalidTopic):
        names.check_new("b_c")
    with pytest.raises(TopicExists):
        names.check_new("b.c")


@pytest.mark.parametrize("assignment", [{}, {0: (0,), 1: (0, 1)}, {0: (1, 1)}, {0: (0,), 2: (0,)}, {1: (0,)}])
def test_an_assignment_that_is_none_is_refused(admin: AdminTree, assignment: dict[int, tuple[int, ...]]) -> None:
    with pytest.raises(InvalidReplicaAssignment):
        run(admin.create_topic("T", assignment))


def test_deleting_marks_the_topic_and_no_more(client: TreeClient, admin: AdminTree) -> None:
    run(admin.create_topic("T", {0: (0,)}))
    run(admin.delete_topic("T"))
    assert data(client, "/admin/delete_topics/T") is None
    assert run(admin.topic_exists("T")) and run(admin.is_marked_for_deletion("T"))


def test_a_topic_that_is_not_there_cannot_be_deleted(admin: AdminTree) -> None:
    with pytest.raises(UnknownTopicOrPartition):
        run(admin.delete_topic("T"))


def test_a_topic_is_marked_once(admin: AdminTree) -> None:
    run(admin.create_topic("T", {0: (0,)}))
    run(admin.delete_topic("T"))
    with pytest.raises(TopicAlreadyMarkedForDeletion):
        run(admin.delete_topic("T"))
    run(admin.delete_topics(["T"]))


def test_added_partitions_stand_beside_the_old_ones(client: TreeClient, admin: AdminTree) -> None:
    run(client.create("/brokers/topics/T", T_NODE))
    run(admin.add_partitions("T", lambda topic: {len(topic.partitions): (0, 1)}))
    assert data(client, "/brokers/topics/T") == T_NODE.replace(b'"1":[1,0]', b'"1":[1,0],"2":[0,1]')


def test_partitions_can_be_planned_without_being_added(client: TreeClient, admin: AdminTree) -> None:
    run(client.create("/brokers/topics/T", T_NODE))
    planned = run(admin.add_partitions("T", lambda topic: {2: (0, 1)}, validate_only=True))
    assert len(planned.partitions) == 3
    assert data(client, "/brokers/topics/T") == T_NODE


def test_an_increase_is_planned_again_when_another_came_between(client: TreeClient, admin: AdminTree) -> None:
    run(client.create("/brokers/topics/T", T_NODE))
    seen: list[int] = []

    def plan(topic: TopicAssignment) -> dict[int, tuple[int, ...]]:
        seen.append(len(topic.partitions))
        if len(seen) == 1:
            run(admin.add_partitions("T", lambda _: {2: (0, 1)}))
        return {len(topic.partitions): (1, 0)}

    assert sorted(run(admin.add_partitions("T", plan)).partitions) == [0, 1, 2, 3]
    assert seen == [2, 3]


def test_partitions_cannot_be_added_to_no_topic(admin: AdminTree) -> None:
    with pytest.raises(UnknownTopicOrPartition):
        run(admin.add_partitions("T", lambda _: {0: (0,)}))


def test_a_change_of_a_topics_config_is_written_and_told(client: TreeClient, admin: AdminTree) -> None:
    run(admin.create_topic("T", {0: (0,)}, {"retention.ms": "123456789"}))
    run(admin.change_topic_config("T", {"max.message.bytes": "2000000", "retention.ms": "123456789"}))
    assert data(client, "/config/topics/T") == b'{"version":1,"config":{"max.message.bytes":"2000000","retention.ms":"123456789"}}'
    assert changes(client) == [b'{"version":2,"entity_path":"topics/T"}']


def test_the_config_of_a_topic_that_is_not_there_cannot_be_changed(admin: AdminTree) -> None:
    with pytest.raises(UnknownTopicOrPartition):
        run(admin.change_topic_config("T", {}))


def test_broker_configs_are_of_one_or_of_all(client: TreeClient, admin: AdminTree) -> None:
    run(admin.change_broker_config(0, {"log.cleaner.threads": "2"}))
    run(admin.change_broker_config(None, {"message.max.bytes": "1500000"}))
    assert data(client, "/config/brokers/0") == b'{"version":1,"config":{"log.cleaner.threads":"2"}}'
    assert data(client, "/config/brokers/<default>") == b'{"version":1,"config":{"message.max.bytes":"1500000"}}'
    assert changes(client) == [b'{"version":2,"entity_path":"brokers/0"}', b'{"version":2,"entity_path":"brokers/<default>"}']
    assert run(admin.fetch_all_configs("brokers")) == {"0": {"log.cleaner.threads": "2"}, "<default>": {"message.max.bytes": "1500000"}}


def test_the_configs_of_a_users_clients_stand_below_the_user(client: TreeClient, admin: AdminTree) -> None:
    run(admin.change_config("users", "alice/clients/c1", {"producer_byte_rate": "1024"}))
    assert data(client, "/config/users/alice") is None
    assert run(admin.fetch_config("users", "alice/clients/c1")) == {"producer_byte_rate": "1024"}
    assert changes(client) == [b'{"version":2,"entity_path":"users/alice/clients/c1"}']


def test_an_empty_quota_takes_its_node_away_and_what_only_held_it(client: TreeClient, admin: AdminTree) -> None:
    run(admin.change_config("users", "alice/clients/c1", {"producer_byte_rate": "1024"}))
    run(admin.change_config("users", "alice/clients/c1", {}))
    assert run(client.exists("/config/users/alice")) is None
    assert len(changes(client)) == 2


def test_an_empty_quota_leaves_the_others_of_the_user(client: TreeClient, admin: AdminTree) -> None:
    run(admin.change_config("users", "alice", {"consumer_byte_rate": "1"}))
    run(admin.change_config("users", "alice/clients/c1", {"producer_byte_rate": "1024"}))
    run(admin.change_config("users", "alice/clients/c1", {}))
    assert run(client.exists("/config/users/alice/clients")) is None
    run(admin.change_config("users", "alice/clients/c2", {"producer_byte_rate": "1"}))
    run(admin.change_config("users", "alice", {}))
    assert data(client, "/config/users/alice") == b'{"version":1,"config":{}}'


def test_what_was_never_set_is_empty(admin: AdminTree) -> None:
    assert run(admin.fetch_config("topics", "T")) == {}
    assert run(admin.fetch_configs("topics", ["T", "U"])) == {"T": {}, "U": {}}


class Reconnecting(TreeClient):
    """Loses the connection after the first write below /config, and sends it again, as a ZooKeeper session does."""

    write_is_lost = False

    async def handle(self, requests: Sequence[TreeRequest[Any]]) -> list[TreeResponse[Any]]:
        responses = await super().handle(requests)
        is_write = any(isinstance(request, (Create, Delete, SetData)) for request in requests)
        if self.write_is_lost and is_write and not isinstance(responses[0].error, NotEmpty):
            self.write_is_lost = False
            return await super().handle(requests)
        return responses


@pytest.mark.parametrize(
    ("entity", "before", "after"),
    [
        ("bob", {}, {"producer_byte_rate": "2"}),
        ("alice", {"producer_byte_rate": "1"}, {"producer_byte_rate": "2"}),
        ("alice", {"producer_byte_rate": "1"}, {}),
        ("alice/clients/c1", {"producer_byte_rate": "1"}, {}),
    ],
)
def test_a_quota_whose_write_lost_its_response_is_notified(entity: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    client = Reconnecting(LocalTree(lambda: 1000), lambda: None)
    admin = AdminTree(client, Random(1))
    run(client.connect())
    run(client.ensure("/config/users"))
    run(client.ensure(paths.CONFIG_CHANGES))
    if before:
        run(admin.change_config("users", entity, before))
    earlier = len(changes(client))
    client.write_is_lost = True
    run(admin.update_config("users", entity, lambda _: after))
    assert not client.write_is_lost
    assert run(admin.fetch_config("users", entity)) == after
    assert len(changes(client)) == earlier + 1
    if not after:
        assert run(client.exists("/config/users/alice")) is None


def test_a_deletion_whose_write_lost_its_response_is_notified_although_nothing_is_left_to_delete() -> None:
    client = Reconnecting(LocalTree(lambda: 1000), lambda: None)
    admin = AdminTree(client, Random(1))
    run(client.connect())
    run(admin.change_config("users", "alice", {"SCRAM-SHA-256": "x", "producer_byte_rate": "1"}))

    def without_credential(config: dict[str, str]) -> dict[str, str]:
        if "SCRAM-SHA-256" not in config:
            raise KafkaError("no such credential")
        return {name: value for name, value in config.items() if name != "SCRAM-SHA-256"}

    client.write_is_lost = True
    with pytest.raises(KafkaError):
        run(admin.update_config("users", "alice", without_credential))
    assert run(admin.fetch_config("users", "alice")) == {"producer_byte_rate": "1"}
    assert len(changes(client)) == 2


def test_a_config_that_stays_as_it_is_is_not_notified(client: TreeClient, admin: AdminTree) -> None:
    run(admin.update_config("users", "alice", lambda config: config))
    assert changes(client) == []
