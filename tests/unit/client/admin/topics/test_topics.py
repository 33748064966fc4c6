"""Topics, as the admin client asks for them and reads the answers."""

from __future__ import annotations

import pytest

from barnabas.client.admin import Config, ConfigSource, NewPartitions, NewTopic
from barnabas.client.errors import ThrottlingQuotaExceeded
from barnabas.errors import InvalidTopic, TopicExists, UnknownTopicId, UnknownTopicOrPartition
from barnabas.protocol import api_keys
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.messages import describe_topic_partitions_response as paged
from barnabas.protocol.messages.create_partitions_request import CreatePartitionsRequest
from barnabas.protocol.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from barnabas.protocol.messages.create_topics_request import CreateTopicsRequest
from barnabas.protocol.messages.create_topics_response import CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse
from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest
from barnabas.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from barnabas.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from barnabas.protocol.messages.metadata_request import MetadataRequest
from barnabas.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.uuid import Uuid
from tests.unit.client.admin.parts import FakeCluster, ScriptedAdmin, run

ID = Uuid(bytes(range(16)))
BROKERS = DescribeClusterResponse(brokers=[DescribeClusterBroker(1, "one", 9092, "rack"), DescribeClusterBroker(2, "two", 9092)])


def test_numbers_that_are_not_given_are_left_to_the_broker() -> None:
    cluster = FakeCluster()
    cluster.on(CreateTopicsRequest, CreateTopicsResponse(topics=[CreatableTopicResult("t", ID, num_partitions=3, replication_factor=1)]))
    created = run(ScriptedAdmin(cluster).create_topics([NewTopic("t", configs={"retention.ms": "5"})]))
    assert (created["t"].topic_id, created["t"].num_partitions, created["t"].replication_factor) == (ID, 3, 1)
    (requested,) = cluster.requests(CreateTopicsRequest)[0].topics
    assert (requested.num_partitions, requested.replication_factor, requested.configs[0].name) == (-1, -1, "retention.ms")
    assert cluster.nodes_asked(CreateTopicsRequest) == [1]  # the controller


def test_replicas_can_be_chosen() -> None:
    cluster = FakeCluster()
    cluster.on(CreateTopicsRequest, CreateTopicsResponse(topics=[CreatableTopicResult("t")]))
    run(ScriptedAdmin(cluster).create_topics([NewTopic("t", replicas_assignments={0: [1, 2], 1: [2, 1]})]))
    (requested,) = cluster.requests(CreateTopicsRequest)[0].topics
    assert [(row.partition_index, row.broker_ids) for row in requested.assignments] == [(0, [1, 2]), (1, [2, 1])]


def test_the_settings_of_a_new_topic_are_told() -> None:
    cluster = FakeCluster()
    result = CreatableTopicResult("t", ID, num_partitions=1, configs=[CreatableTopicConfigs("retention.ms", "5", False, 1)])
    cluster.on(CreateTopicsRequest, CreateTopicsResponse(topics=[result]))
    config = run(ScriptedAdmin(cluster).create_topics([NewTopic("t")]))["t"].config
    assert isinstance(config, Config)
    assert (config["retention.ms"].value, config["retention.ms"].source) == ("5", ConfigSource.DYNAMIC_TOPIC_CONFIG)


def test_settings_that_may_not_be_seen_do_not_make_the_topic_fail() -> None:
    cluster = FakeCluster()
    cluster.on(CreateTopicsRequest, CreateTopicsResponse(topics=[CreatableTopicResult("t", ID, topic_config_error_code=29)]))
    created = run(ScriptedAdmin(cluster).create_topics([NewTopic("t")]))["t"]
    assert created.error is not None and created.error.code == 29


def test_each_topic_fails_by_itself() -> None:
    cluster = FakeCluster()
    results = [CreatableTopicResult("a", num_partitions=1), CreatableTopicResult("b", error_code=36, error_message="there")]
    cluster.on(CreateTopicsRequest, CreateTopicsResponse(topics=results))
    created = run(ScriptedAdmin(cluster).create_topics([NewTopic("a"), NewTopic("b"), NewTopic("")]))
    assert list(created) == ["a", "b", ""]
    assert isinstance(created.errors["b"], TopicExists)
    assert str(created.errors[""]) == "The given topic name '' cannot be represented in a request."
    assert [topic.name for topic in cluster.requests(CreateTopicsRequest)[0].topics] == ["a", "b"]


def test_nothing_is_sent_for_topics_that_no_request_can_name() -> None:
    cluster = FakeCluster()
    assert isinstance(run(ScriptedAdmin(cluster).create_topics([NewTopic("")])).errors[""], InvalidTopic)
    assert cluster.sent == []


def test_a_quota_is_waited_for_unless_that_is_not_wanted() -> None:
    cluster = FakeCluster()
    held = CreateTopicsResponse(200, [CreatableTopicResult("t", error_code=89)])
    cluster.on(CreateTopicsRequest, held, CreateTopicsResponse(topics=[CreatableTopicResult("t", num_partitions=1)]))
    assert run(ScriptedAdmin(cluster).create_topics([NewTopic("t")])).errors == {}
    cluster.on(CreateTopicsRequest, held)
    refused = run(ScriptedAdmin(cluster).create_topics([NewTopic("t")], retry_on_quota_violation=False))
    assert isinstance(refused.errors["t"], ThrottlingQuotaExceeded)


def test_topics_are_deleted_by_name_or_by_id() -> None:
    cluster = FakeCluster()
    cluster.on(DeleteTopicsRequest, DeleteTopicsResponse(responses=[DeletableTopicResult("t", ID)]))
    assert run(ScriptedAdmin(cluster).delete_topics(["t"])).all() == {"t": None}
    cluster.on(DeleteTopicsRequest, DeleteTopicsResponse(responses=[DeletableTopicResult(None, ID, 100)]))
    assert isinstance(run(ScriptedAdmin(cluster).delete_topics([ID])).errors[ID], UnknownTopicId)


def test_brokers_without_ids_are_given_names() -> None:
    cluster = FakeCluster()
    cluster.limits[api_keys.DELETE_TOPICS] = 5
    cluster.on(DeleteTopicsRequest, DeleteTopicsResponse(responses=[DeletableTopicResult("t")]))
    run(ScriptedAdmin(cluster).delete_topics(["t"])).all()
    assert cluster.requests(DeleteTopicsRequest)[0].topic_names == ["t"]
    assert isinstance(run(ScriptedAdmin(cluster).delete_topics([ID])).errors[ID], UnsupportedVersion)


def test_internal_topics_are_listed_if_wanted() -> None:
    cluster = FakeCluster()
    topics = [MetadataResponseTopic(0, "t", ID), MetadataResponseTopic(0, "__x", is_internal=True), MetadataResponseTopic(29, "secret")]
    cluster.on(MetadataRequest, MetadataResponse(topics=topics))
    admin = ScriptedAdmin(cluster)
    assert list(run(admin.list_topics())) == ["t"]
    assert list(run(admin.list_topics(list_internal=True))) == ["t", "__x"]
    assert cluster.requests(MetadataRequest)[0].topics is None


def page(name: str, *partitions: int) -> paged.DescribeTopicPartitionsResponseTopic:
    rows = [paged.DescribeTopicPartitionsResponsePartition(0, number, 1, 0, [1, 9], [1], [2], None) for number in partitions]
    return paged.DescribeTopicPartitionsResponseTopic(0, name, ID, partitions=rows)


def test_pages_of_a_description_are_put_together() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeClusterRequest, BROKERS)
    cluster.on(
        DescribeTopicPartitionsRequest,
        paged.DescribeTopicPartitionsResponse(topics=[page("a", 0), page("b", 0, 1)], next_cursor=paged.Cursor("b", 2)),
        paged.DescribeTopicPartitionsResponse(topics=[page("b", 2), page("c", 0)], next_cursor=None),
    )
    topics = run(ScriptedAdmin(cluster).describe_topics(["c", "b", "a"], partition_size_limit_per_response=3))
    assert {name: [info.partition for info in topics[name].partitions] for name in topics} == {"c": [0], "b": [0, 1, 2], "a": [0]}
    first, second = cluster.requests(DescribeTopicPartitionsRequest)
    assert [topic.name for topic in first.topics] == ["a", "b", "c"] and first.cursor is None and first.response_partition_limit == 3
    assert [topic.name for topic in second.topics] == ["b", "c"]
    assert second.cursor is not None and (second.cursor.topic_name, second.cursor.partition_index) == ("b", 2)


def test_nodes_have_their_addresses_where_they_are_alive() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeClusterRequest, BROKERS)
    cluster.on(DescribeTopicPartitionsRequest, paged.DescribeTopicPartitionsResponse(topics=[page("a", 0)]))
    (info,) = run(ScriptedAdmin(cluster).describe_topics(["a"]))["a"].partitions
    assert info.leader is not None and (info.leader.host, info.leader.rack) == ("one", "rack")
    assert [(node.id, node.host) for node in info.replicas] == [(1, "one"), (9, "")]
    assert info.elr is not None and [node.id for node in info.elr] == [2] and info.last_known_elr is None


def test_a_topic_that_fails_does_not_end_the_pages() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeClusterRequest, BROKERS)
    gone = paged.DescribeTopicPartitionsResponseTopic(3, "a")
    cluster.on(
        DescribeTopicPartitionsRequest,
        paged.DescribeTopicPartitionsResponse(topics=[gone], next_cursor=paged.Cursor("b", 0)),
        paged.DescribeTopicPartitionsResponse(topics=[page("b", 0)]),
    )
    topics = run(ScriptedAdmin(cluster).describe_topics(["a", "b"]))
    assert isinstance(topics.errors["a"], UnknownTopicOrPartition)
    assert topics["b"].name == "b"


def test_older_brokers_are_asked_by_metadata() -> None:
    cluster = FakeCluster()
    cluster.limits[api_keys.DESCRIBE_TOPIC_PARTITIONS] = -1
    cluster.on(DescribeClusterRequest, BROKERS)
    rows = [MetadataResponsePartition(0, 1, -1, 0, [1], []), MetadataResponsePartition(0, 0, 1, 0, [1], [1])]
    cluster.on(
        MetadataRequest,
        MetadataResponse(
            brokers=[MetadataResponseBroker(1, "one", 9092)],
            topics=[MetadataResponseTopic(0, "t", ID, partitions=rows), MetadataResponseTopic(3, "u")],
        ),
    )
    topics = run(ScriptedAdmin(cluster).describe_topics(["t", "u"]))
    assert [(info.partition, info.leader is not None) for info in topics["t"].partitions] == [(0, True), (1, False)]
    assert isinstance(topics.errors["u"], UnknownTopicOrPartition)
    assert cluster.requests(MetadataRequest)[0].allow_auto_topic_creation is False


def test_an_id_that_is_not_known_is_said_to_be_so() -> None:
    cluster = FakeCluster()
    cluster.on(MetadataRequest, MetadataResponse(topics=[MetadataResponseTopic(100, None, ID)]))
    topics = run(ScriptedAdmin(cluster).describe_topics([ID]))
    with pytest.raises(UnknownTopicId, match=f"TopicId {ID} not found."):
        topics[ID]


def test_names_and_ids_may_be_mixed() -> None:
    cluster = FakeCluster()
    cluster.on(DescribeClusterRequest, BROKERS)
    cluster.on(DescribeTopicPartitionsRequest, paged.DescribeTopicPartitionsResponse(topics=[page("a", 0)]))
    cluster.on(MetadataRequest, MetadataResponse(topics=[MetadataResponseTopic(0, "b", ID)]))
    mixed: list[str | Uuid] = [ID, "a"]
    assert [topic.name for topic in run(ScriptedAdmin(cluster).describe_topics(mixed)).values()] == ["b", "a"]


def test_more_partitions_are_asked_for_by_their_total() -> None:
    cluster = FakeCluster()
    cluster.on(
        CreatePartitionsRequest, CreatePartitionsResponse(results=[CreatePartitionsTopicResult("a"), CreatePartitionsTopicResult("b")])
    )
    run(ScriptedAdmin(cluster).create_partitions({"a": 5, "b": NewPartitions.increase_to(3, [[1], [2]])})).all()
    first, second = cluster.requests(CreatePartitionsRequest)[0].topics
    assert (first.count, first.assignments) == (5, None)
    assert second.assignments is not None and [row.broker_ids for row in second.assignments] == [[1], [2]]
