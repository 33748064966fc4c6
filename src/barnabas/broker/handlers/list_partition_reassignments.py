"""ListPartitionReassignments: the reassignments in progress, of the named partitions or of all.

Version 0.
Behaviour
- only the active controller serves it. Partitions that do not move, or do not exist, are left out.
Authorization: DESCRIBE on the cluster.
Errors, of the whole
- NOT_CONTROLLER; CLUSTER_AUTHORIZATION_FAILED, with the requested partitions, whether they exist or not, and no replicas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.errors import KafkaError
from barnabas.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas.security.errors import ClusterAuthorization
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.metadata.znodes.topics import ReplicaAssignment
    from barnabas.protocol.messages.list_partition_reassignments_request import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsTopics,
    )


def handle(broker: Broker, request: Request[ListPartitionReassignmentsRequest]) -> Reply[ListPartitionReassignmentsResponse]:
    topics = request.message.topics
    try:
        broker.access.require_on_cluster(request, AclOperation.DESCRIBE)
    except ClusterAuthorization as error:
        return Reply.now(request, ListPartitionReassignmentsResponse(0, error.code, str(error), _as_requested(topics or ())))
    requested = None if topics is None else {TopicPartition(topic.name, number) for topic in topics for number in topic.partition_indexes}
    try:
        moving = broker.admin.list_reassignments()
    except KafkaError as error:
        return Reply.now(request, ListPartitionReassignmentsResponse(0, error.code, str(error)))
    shown = ((partition, assignment) for partition, assignment in moving.items() if requested is None or partition in requested)
    return Reply.now(request, ListPartitionReassignmentsResponse(0, 0, None, _by_topic(shown)))


def _as_requested(topics: Iterable[ListPartitionReassignmentsTopics]) -> list[OngoingTopicReassignment]:
    return [
        OngoingTopicReassignment(topic.name, [OngoingPartitionReassignment(number) for number in topic.partition_indexes])
        for topic in topics
    ]


def _by_topic(moving: Iterable[tuple[TopicPartition, ReplicaAssignment]]) -> list[OngoingTopicReassignment]:
    topics: dict[str, OngoingTopicReassignment] = {}
    for (topic, number), assignment in sorted(moving, key=lambda item: item[0]):
        entry = topics.setdefault(topic, OngoingTopicReassignment(topic))
        replicas, adding, removing = assignment.replicas, assignment.adding_replicas, assignment.removing_replicas
        entry.partitions.append(OngoingPartitionReassignment(number, list(replicas), list(adding), list(removing)))
    return list(topics.values())
