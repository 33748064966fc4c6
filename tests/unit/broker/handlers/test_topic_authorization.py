"""What the handlers of topics and partitions refuse and hide from a client that an authorizer does not allow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.requests.authorized_operations import NOT_ASKED_FOR
from barnabas.broker.topics.admin_manager import TopicCreation
from barnabas.errors import KafkaError, UnknownTopicOrPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.protocol.messages.create_partitions_response import CreatePartitionsResponse
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.create_topics_response import CreateTopicsResponse
from barnabas.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.delete_records_response import DeleteRecordsResponse
from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.delete_topics_response import DeleteTopicsResponse
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.describe_producers_response import DescribeProducersResponse
from barnabas.protocol.messages.describe_topic_partitions_request import Cursor, DescribeTopicPartitionsRequest
from barnabas.protocol.messages.describe_topic_partitions_request import TopicRequest as DescribedTopic
from barnabas.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from barnabas.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.list_offsets_response import ListOffsetsResponse
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from barnabas.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.broker.handlers.asking import a_broker, asked, id_of, topic
from tests.unit.broker.handlers.granting import decisions, granting

DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class Replicas:
    """Stands for the replica manager of a broker without logs: every answer is an error, and `used` has the partitions."""

    def __init__(self) -> None:
        self.used: list[TopicPartition] = []

    def active_producers(self, partition: TopicPartition) -> list[Any]:
        self.used.append(partition)
        return []

    def list_offsets(self, partition: TopicPartition, *_: object) -> None:
        self.used.append(partition)

    def last_offset_for_leader_epoch(self, partition: TopicPartition, *_: object) -> Any:
        self.used.append(partition)
        raise AssertionError

    def delete_records(self, timeout_ms: int, offsets: dict[TopicPartition, int], done: Any) -> None:
        self.used += offsets
        done([])


class Admin:
    """Stands for the admin manager: everything succeeds, and is noted."""

    def __init__(self) -> None:
        self.topics: list[str] = []

    async def create_topics(self, topics: Sequence[CreatableTopic], *_: object) -> list[TopicCreation]:
        self.topics += [created.name for created in topics]
        return [TopicCreation(created.name, topic_id=id_of(created.name), assignment={0: (0,)}) for created in topics]

    async def create_partitions(self, topics: Sequence[CreatePartitionsTopic], *_: object) -> dict[str, KafkaError | None]:
        self.topics += [grown.name for grown in topics]
        return {grown.name: None for grown in topics}

    async def delete_topics(self, names: Sequence[str], *_: object) -> dict[str, KafkaError | None]:
        self.topics += names
        return {name: None if name in ("t", "u") else UnknownTopicOrPartition() for name in names}


def broker_granting(*grants: str, **parts: Any) -> Broker:
    """With topics t and u; v does not exist."""
    return a_broker(topic("t", topic_id=id_of("t")), topic("u", topic_id=id_of("u")), access=granting(*grants), **parts)


def named(*names: str, **fields: Any) -> MetadataRequest:
    return MetadataRequest([MetadataRequestTopic(name=name) for name in names], **fields)


def told(response: MetadataResponse) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in response.topics]


@pytest.mark.parametrize("version", range(14))
def test_metadata_of_all_topics_leaves_out_what_a_client_may_not_describe(version: int) -> None:
    every = MetadataRequest(topics=[] if version == 0 else None)
    assert told(asked(broker_granting(), every, MetadataResponse, version)) == []
    assert told(asked(broker_granting("DESCRIBE topic u"), every, MetadataResponse, version)) == [("u", 0)]


@pytest.mark.parametrize("version", range(14))
def test_metadata_does_not_tell_whether_a_denied_topic_exists(version: int) -> None:
    broker = broker_granting("DESCRIBE topic t")
    response = asked(broker, named("u", "t", "v", allow_auto_topic_creation=version < 4), MetadataResponse, version)
    assert told(response) == [("t", 0), ("u", DENIED), ("v", DENIED)]
    assert response.topics[1:] == [MetadataResponseTopic(DENIED, name) for name in ("u", "v")]


def test_metadata_by_id_tells_the_id_of_a_denied_topic_but_not_its_name() -> None:
    request = MetadataRequest([MetadataRequestTopic(topic_id, None) for topic_id in (id_of("t"), id_of("u"), id_of("v"))])
    response = asked(broker_granting("DESCRIBE topic t"), request, MetadataResponse, 13)
    assert [(topic.name, topic.topic_id, topic.error_code) for topic in response.topics] == [
        (None, id_of("v"), ErrorCode.UNKNOWN_TOPIC_ID),
        ("t", id_of("t"), 0),
        (None, id_of("u"), DENIED),
    ]


class Creation:
    """Stands for the automatic creation of topics."""

    def __init__(self) -> None:
        self.created: list[str] = []

    def create_topics(self, names: list[str]) -> list[MetadataResponseTopic]:
        self.created += names
        return [MetadataResponseTopic(ErrorCode.LEADER_NOT_AVAILABLE, name) for name in names]


@pytest.mark.parametrize(
    ("grants", "created"),
    [((), []), (("CREATE topic v",), ["v"]), (("CREATE cluster",), ["v", "w"]), (("CREATE topic t",), [])],
)
def test_metadata_creates_a_topic_only_with_create_on_it_or_on_the_cluster(grants: tuple[str, ...], created: list[str]) -> None:
    creation = Creation()
    describes = [f"DESCRIBE topic {name}" for name in ("t", "v", "w")]
    response = asked(broker_granting(*describes, *grants, topic_creation=creation), named("t", "v", "w", "x"), MetadataResponse, 13)
    assert creation.created == created
    refused = [(name, DENIED) for name in ("v", "w") if name not in created]
    assert told(response) == [("t", 0), *((name, ErrorCode.LEADER_NOT_AVAILABLE) for name in created), *refused, ("x", DENIED)]


def test_authorized_operations_in_metadata_are_those_that_are_granted() -> None:
    request = named("t", "u", include_topic_authorized_operations=True, include_cluster_authorized_operations=True)
    broker = broker_granting("DESCRIBE topic t", "READ topic t", "CLUSTER_ACTION topic t")
    response = asked(broker, request, MetadataResponse, 10)
    assert [topic.topic_authorized_operations for topic in response.topics] == [
        1 << AclOperation.DESCRIBE | 1 << AclOperation.READ,
        NOT_ASKED_FOR,
    ]
    assert response.cluster_authorized_operations == 0
    broker = broker_granting("DESCRIBE cluster", "CREATE cluster")
    response = asked(broker, request, MetadataResponse, 10)
    assert response.cluster_authorized_operations == 1 << AclOperation.DESCRIBE | 1 << AclOperation.CREATE


def test_describe_cluster_needs_describe_for_the_authorized_operations_alone() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = asked(broker_granting("ALTER cluster"), request, DescribeClusterResponse, 1)
    assert (len(response.brokers), response.cluster_authorized_operations) == (1, 0)
    response = asked(broker_granting("ALTER cluster", "DESCRIBE cluster"), request, DescribeClusterResponse, 1)
    assert response.cluster_authorized_operations == 1 << AclOperation.DESCRIBE | 1 << AclOperation.ALTER


def test_describe_topic_partitions_hides_denied_topics() -> None:
    broker = broker_granting("DESCRIBE topic u", "WRITE topic u")
    every = asked(broker, DescribeTopicPartitionsRequest(response_partition_limit=9), DescribeTopicPartitionsResponse, 0)
    operations = 1 << AclOperation.DESCRIBE | 1 << AclOperation.WRITE
    assert [(topic.name, topic.topic_authorized_operations) for topic in every.topics] == [("u", operations)]
    request = DescribeTopicPartitionsRequest([DescribedTopic(name) for name in ("t", "u", "v")], 9, Cursor("t", 0))
    response = asked(broker, request, DescribeTopicPartitionsResponse, 0)
    assert [(found.name, found.error_code, found.topic_id) for found in response.topics] == [
        ("u", 0, id_of("u")),
        ("t", DENIED, Uuid.ZERO),
        ("v", DENIED, Uuid.ZERO),
    ]


def create(broker: Broker, *names: str, version: int = 7) -> CreateTopicsResponse:
    return asked(broker, CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in names], 0), CreateTopicsResponse, version)


@pytest.mark.parametrize("version", range(8))
def test_topics_are_created_with_create_on_the_topic_or_on_the_cluster(version: int) -> None:
    admin = Admin()
    response = create(broker_granting("CREATE topic a", admin=admin), "a", "b", version=version)
    assert [(created.name, created.error_code) for created in response.topics] == [("a", 0), ("b", DENIED)]
    assert response.topics[1].error_message == ("" if version == 0 else "Authorization failed.")
    create(broker_granting("CREATE cluster", admin=admin), "c", "d", version=version)
    assert admin.topics == ["a", "c", "d"]


def test_the_configs_of_a_new_topic_need_describe_configs() -> None:
    broker = broker_granting("CREATE cluster", "DESCRIBE_CONFIGS topic a", admin=Admin())
    seen, unseen = create(broker, "a", "b").topics
    assert (seen.num_partitions, seen.replication_factor, seen.topic_config_error_code, bool(seen.configs)) == (1, 1, 0, True)
    assert (unseen.num_partitions, unseen.replication_factor, unseen.configs) == (-1, -1, [])
    assert (unseen.error_code, unseen.topic_config_error_code) == (0, DENIED)


def test_create_partitions_needs_alter_on_the_topic() -> None:
    admin = Admin()
    topics = [CreatePartitionsTopic(name, 2) for name in ("t", "u", "v")]
    broker = broker_granting("ALTER topic u", "CREATE topic t", admin=admin)
    response = asked(broker, CreatePartitionsRequest(topics, 0), CreatePartitionsResponse, 3)
    assert [(grown.name, grown.error_code, grown.error_message) for grown in response.results] == [
        ("t", DENIED, None),
        ("v", DENIED, None),
        ("u", 0, None),
    ]
    assert admin.topics == ["u"]


def delete(broker: Broker, *topics: DeleteTopicState) -> list[tuple[str | None, Uuid, int]]:
    response = asked(broker, DeleteTopicsRequest(list(topics), timeout_ms=0), DeleteTopicsResponse, 6)
    return sorted(((result.name, result.topic_id, result.error_code) for result in response.responses), key=str)


def test_topics_are_deleted_by_name_with_describe_and_delete() -> None:
    admin = Admin()
    broker = broker_granting("DESCRIBE topic t", "DELETE topic t", "DESCRIBE topic u", "DESCRIBE topic v", admin=admin)
    assert delete(broker, *(DeleteTopicState(name) for name in ("t", "u", "v", "w"))) == [
        ("t", id_of("t"), 0),
        ("u", Uuid.ZERO, DENIED),  # it may know that u exists
        ("v", Uuid.ZERO, UNKNOWN),
        ("w", Uuid.ZERO, DENIED),
    ]
    assert admin.topics == ["t"]


def test_a_topic_that_is_not_in_the_cache_yet_is_not_deleted_without_delete() -> None:
    admin = Admin()
    assert delete(broker_granting("DESCRIBE topic v", admin=admin), DeleteTopicState("v")) == [("v", Uuid.ZERO, UNKNOWN)]
    assert admin.topics == []


def test_topics_are_deleted_by_id_and_a_denied_one_keeps_its_name_to_itself() -> None:
    admin = Admin()
    ids = [DeleteTopicState(None, id_of(name)) for name in ("t", "u", "v")]
    assert delete(broker_granting("DELETE topic t", "DESCRIBE topic u", admin=admin), *ids) == [
        ("t", id_of("t"), 0),
        ("u", id_of("u"), DENIED),
        (None, id_of("v"), ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert delete(broker_granting(admin=admin), *ids[:2]) == [(None, id_of("t"), DENIED), (None, id_of("u"), DENIED)]
    assert admin.topics == ["t"]


def test_the_name_and_the_id_of_a_denied_topic_are_not_compared() -> None:
    """Else the answer would tell which name an id has."""
    both = (DeleteTopicState("t"), DeleteTopicState(None, id_of("t")))
    assert delete(broker_granting(admin=Admin()), *both) == [("t", Uuid.ZERO, DENIED), (None, id_of("t"), DENIED)]


def test_delete_on_the_cluster_deletes_every_topic() -> None:
    admin = Admin()
    names = [DeleteTopicState(name) for name in ("t", "v")]
    assert delete(broker_granting("DELETE cluster", admin=admin), *names) == [("t", id_of("t"), 0), ("v", Uuid.ZERO, UNKNOWN)]
    assert admin.topics == ["t", "v"]


def test_delete_records_needs_delete_on_the_topic() -> None:
    replicas = Replicas()
    topics = [DeleteRecordsTopic(name, [DeleteRecordsPartition(0, 5)]) for name in ("t", "u", "v", "w")]
    broker = broker_granting("DELETE topic t", "DELETE topic v", "READ topic u", replica_manager=replicas)
    response = asked(broker, DeleteRecordsRequest(topics, 0), DeleteRecordsResponse, 2)
    assert {(topic.name, part.error_code, part.low_watermark) for topic in response.topics for part in topic.partitions} == {
        ("u", DENIED, -1),
        ("v", UNKNOWN, -1),
        ("w", DENIED, -1),
    }
    assert replicas.used == [("t", 0)]


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets_needs_describe_on_the_topic(version: int) -> None:
    replicas = Replicas()
    topics = [ListOffsetsTopic(name, [ListOffsetsPartition(0, timestamp=-1)]) for name in ("u", "t", "v")]
    broker = broker_granting("DESCRIBE topic t", replica_manager=replicas)
    response = asked(broker, ListOffsetsRequest(-1, 0, topics), ListOffsetsResponse, version)
    assert [(topic.name, part.error_code, part.offset) for topic in response.topics for part in topic.partitions] == [
        ("t", 0, -1),
        ("u", DENIED, -1),
        ("v", DENIED, -1),
    ]
    assert replicas.used == [("t", 0)]


def test_list_offsets_of_denied_topics_alone_looks_nothing_up() -> None:
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=-1)])])
    response = asked(broker_granting("READ topic t", replica_manager=Replicas()), request, ListOffsetsResponse, 11)
    assert response.topics[0].partitions[0].error_code == DENIED


def epochs(broker: Broker) -> list[tuple[str, int, int, int]]:
    topics = [OffsetForLeaderTopic(name, [OffsetForLeaderPartition(0, -1, 0)]) for name in ("t", "u")]
    response = asked(broker, OffsetForLeaderEpochRequest(-1, topics), OffsetForLeaderEpochResponse, 4)
    return [(topic.topic, part.error_code, part.leader_epoch, part.end_offset) for topic in response.topics for part in topic.partitions]


class Epochs(Replicas):
    def last_offset_for_leader_epoch(self, partition: TopicPartition, *_: object) -> Any:
        class End:
            error, leader_epoch, end_offset = 0, 3, 7

        return End


@pytest.mark.parametrize(
    ("grants", "denied"),
    [((), ("t", "u")), (("DESCRIBE topic t",), ("u",)), (("CLUSTER_ACTION cluster",), ()), (("READ topic t",), ("t", "u"))],
)
def test_epochs_are_for_followers_and_for_those_who_may_describe_the_topic(grants: tuple[str, ...], denied: tuple[str, ...]) -> None:
    answers = epochs(broker_granting(*grants, replica_manager=Epochs()))
    assert sorted(answers) == [(name, *((DENIED, -1, -1) if name in denied else (0, 3, 7))) for name in ("t", "u")]


def test_describe_producers_needs_read_on_the_topic() -> None:
    replicas = Replicas()
    topics = [TopicRequest(name, [0]) for name in ("t", "u", "v", "w", "a b")]
    broker = broker_granting("READ topic t", "READ topic v", "DESCRIBE topic u", replica_manager=replicas)
    response = asked(broker, DescribeProducersRequest(topics), DescribeProducersResponse, 0)
    assert [(topic.name, part.error_code, part.error_message) for topic in response.topics for part in topic.partitions][:4] == [
        ("t", 0, None),
        ("u", DENIED, "Topic authorization failed."),
        ("v", UNKNOWN, "This server does not host this topic-partition."),
        ("w", DENIED, "Topic authorization failed."),
    ]
    assert response.topics[4].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert replicas.used == [("t", 0)]


def test_each_topic_is_decided_once() -> None:
    broker = broker_granting("DESCRIBE topic t")
    asked(broker, named("t", "t", "u", allow_auto_topic_creation=False), MetadataResponse, 13)
    assert decisions(broker.access) == ["DESCRIBE topic t", "DESCRIBE topic u"]
