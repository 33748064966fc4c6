"""Topics, their partitions and what is known of the cluster."""

from __future__ import annotations

from barnabas.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.api_versions_request import ApiVersionsRequest
from barnabas.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from barnabas.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.security.operations import AclOperation
from barnabas.uuid import Uuid
from tests.integration.security.matrix.case import SUPER_USER, ZOOKEEPER_KAFKA, Case, Cell, on_cluster, on_topic
from tests.integration.security.matrix.names import MISSING, MISSING_ID, OTHER, TOPIC

_TOPICS = (TOPIC, OTHER, MISSING)
_AUTO_CREATION = 4  # the versions of Metadata from which these fields exist
_TOPIC_OPERATIONS = 8
_CLUSTER_OPERATIONS = range(8, 11)
_ALL_IS_NULL = 1
_STATES = 6  # of DeleteTopics
_CLIENT_INFORMATION = 3
_TIMEOUT_MS = 30_000


def _metadata(cell: Cell, topics: list[MetadataRequestTopic] | None, *, creates: bool = False) -> MetadataRequest:
    version = cell.version
    return MetadataRequest(
        [] if topics is None and version < _ALL_IS_NULL else topics,
        creates or version < _AUTO_CREATION,
        version in _CLUSTER_OPERATIONS,
        version >= _TOPIC_OPERATIONS,
    )


def _named(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(Uuid.ZERO, name) for name in names]


def _by_id(cell: Cell) -> list[MetadataRequestTopic]:
    ids = cell.world.topic_ids
    return [MetadataRequestTopic(ids.get(name, MISSING_ID), None) for name in _TOPICS]


def _create_topics(cell: Cell) -> CreateTopicsRequest:
    # TOPIC exists, which only those may know who may create or describe it.
    return CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in (cell.own, TOPIC)], _TIMEOUT_MS)


def _deleted(cell: Cell) -> tuple[str, ...]:
    return (cell.own, MISSING) if cell.user == SUPER_USER else (cell.own, OTHER, MISSING)


def _delete_topics(cell: Cell) -> DeleteTopicsRequest:
    if cell.version >= _STATES:
        return DeleteTopicsRequest([DeleteTopicState(name) for name in _deleted(cell)], timeout_ms=_TIMEOUT_MS)
    return DeleteTopicsRequest(topic_names=list(_deleted(cell)), timeout_ms=_TIMEOUT_MS)


def _delete_by_id(cell: Cell) -> DeleteTopicsRequest:
    ids = [cell.world.topic_ids.get(name, MISSING_ID) for name in _deleted(cell)]
    return DeleteTopicsRequest([DeleteTopicState(None, topic_id) for topic_id in ids], timeout_ms=_TIMEOUT_MS)


def _create_partitions(cell: Cell) -> CreatePartitionsRequest:
    return CreatePartitionsRequest([CreatePartitionsTopic(name, 2, None) for name in _TOPICS], _TIMEOUT_MS, True)


def _elect(cell: Cell) -> ElectLeadersRequest:
    return ElectLeadersRequest(0, [TopicPartitions(name, [0]) for name in _TOPICS], _TIMEOUT_MS)


def _reassign(cell: Cell) -> AlterPartitionReassignmentsRequest:
    """Cancels a reassignment where there is none, so that nothing changes."""
    topics = [ReassignableTopic(name, [ReassignablePartition(0, None)]) for name in _TOPICS]
    return AlterPartitionReassignmentsRequest(_TIMEOUT_MS, topics=topics)


def _reassignments(cell: Cell) -> ListPartitionReassignmentsRequest:
    return ListPartitionReassignmentsRequest(_TIMEOUT_MS, [ListPartitionReassignmentsTopics(name, [0]) for name in _TOPICS])


def _api_versions(cell: Cell) -> ApiVersionsRequest:
    return ApiVersionsRequest("matrix", "1") if cell.version >= _CLIENT_INFORMATION else ApiVersionsRequest()


CASES = (
    Case("ApiVersions", (0, 4), _api_versions),
    Case(
        "Metadata",
        (0, 1, 4, 8, 10, 13),
        lambda cell: _metadata(cell, _named(TOPIC, OTHER, *([MISSING] if cell.version >= _AUTO_CREATION else []))),
        lambda cell: [on_topic(AclOperation.DESCRIBE, TOPIC)],
    ),
    Case("Metadata by id", (12, 13), lambda cell: _metadata(cell, _by_id(cell)), lambda cell: [on_topic(AclOperation.DESCRIBE, TOPIC)]),
    Case(
        "Metadata of all topics",
        (0, 1, 8, 13),
        lambda cell: _metadata(cell, None),
        lambda cell: [on_topic(AclOperation.DESCRIBE, TOPIC)],
        lists_everything=True,
    ),
    Case(
        "Metadata with operations",
        (8, 10, 13),
        lambda cell: _metadata(cell, _named(TOPIC)),
        lambda cell: [on_topic(AclOperation.READ, TOPIC), on_topic(AclOperation.ALTER_CONFIGS, TOPIC), on_cluster(AclOperation.ALTER)],
    ),
    Case(  # the new topic has no leader yet, which 4.2.0 calls an unknown topic
        "Metadata that creates a topic",
        (0, 4, 12),
        lambda cell: _metadata(cell, _named(cell.own), creates=True),
        lambda cell: [on_topic(AclOperation.DESCRIBE, cell.own), on_topic(AclOperation.CREATE, cell.own)],
        kafka=ZOOKEEPER_KAFKA,
    ),
    Case(
        "Metadata that creates a topic by a permission of the cluster",
        (4, 12),
        lambda cell: _metadata(cell, _named(cell.own), creates=True),
        lambda cell: [on_topic(AclOperation.DESCRIBE, cell.own), on_cluster(AclOperation.CREATE)],
        kafka=ZOOKEEPER_KAFKA,
    ),
    Case(
        "DescribeTopicPartitions",
        (0,),
        lambda cell: DescribeTopicPartitionsRequest([TopicRequest(name) for name in _TOPICS]),
        lambda cell: [on_topic(AclOperation.DESCRIBE, TOPIC)],
    ),
    Case(
        "DescribeTopicPartitions of all topics",
        (0,),
        lambda cell: DescribeTopicPartitionsRequest(),
        lambda cell: [on_topic(AclOperation.DESCRIBE, TOPIC)],
        lists_everything=True,
    ),
    Case(
        "CreateTopics",
        (0, 2, 5, 7),
        _create_topics,
        lambda cell: [on_topic(AclOperation.CREATE, cell.own), on_topic(AclOperation.DESCRIBE_CONFIGS, cell.own)],
    ),
    Case("CreateTopics by a permission of the cluster", (2, 7), _create_topics, lambda cell: [on_cluster(AclOperation.CREATE)]),
    Case(
        "CreateTopics that exist",
        (2, 7),
        lambda cell: CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1), CreatableTopic(OTHER, 1, 1)], _TIMEOUT_MS),
        lambda cell: [on_topic(AclOperation.DESCRIBE, TOPIC)],
    ),
    Case(
        "DeleteTopics",
        (0, 1, 5, 6),
        _delete_topics,
        lambda cell: [on_topic(AclOperation.DELETE, cell.own)],
        lambda cell: [cell.own],
    ),
    Case(
        "DeleteTopics that may be described",
        (1, 6),
        _delete_topics,
        lambda cell: [on_topic(AclOperation.DESCRIBE, cell.own)],
        lambda cell: [cell.own],
    ),
    Case(
        "DeleteTopics by id",
        (6,),
        _delete_by_id,
        lambda cell: [on_topic(AclOperation.DELETE, cell.own)],
        lambda cell: [cell.own],
    ),
    Case(
        "DeleteTopics by id that may be described",
        (6,),
        _delete_by_id,
        lambda cell: [on_topic(AclOperation.DESCRIBE, cell.own)],
        lambda cell: [cell.own],
    ),
    Case("CreatePartitions", (0, 3), _create_partitions, lambda cell: [on_topic(AclOperation.ALTER, TOPIC)]),
    Case("ElectLeaders", (0, 1, 2), _elect, lambda cell: [on_cluster(AclOperation.ALTER)]),
    Case("AlterPartitionReassignments", (0, 1), _reassign, lambda cell: [on_cluster(AclOperation.ALTER)]),
    Case("ListPartitionReassignments", (0,), _reassignments, lambda cell: [on_cluster(AclOperation.DESCRIBE)]),
    Case(
        "DescribeCluster",
        (0, 1, 2),
        lambda cell: DescribeClusterRequest(True),
        lambda cell: [on_cluster(AclOperation.DESCRIBE), on_cluster(AclOperation.ALTER)],
    ),
)
