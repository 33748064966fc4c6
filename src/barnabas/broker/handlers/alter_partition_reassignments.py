"""AlterPartitionReassignments: starts to move partitions to other brokers, or cancels a move.

Versions 0 and 1.
Behaviour
- only the active controller serves it. It responds when the moves are recorded; ListPartitionReassignments shows those in progress.
- if a partition is named twice, the last entry counts.
Authorization: ALTER on the cluster.
Version notes
- 1: may forbid that the number of replicas changes.
Errors, of the whole
- NOT_CONTROLLER; CLUSTER_AUTHORIZATION_FAILED, which each partition has, too.
Errors, of a partition
- UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, NO_REASSIGNMENT_IN_PROGRESS (nothing to cancel).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.errors import KafkaError
from barnabas.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.security.errors import ClusterAuthorization
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest, ReassignableTopic


def handle(broker: Broker, request: Request[AlterPartitionReassignmentsRequest]) -> Reply[AlterPartitionReassignmentsResponse]:
    return Reply.awaiting(request, _reassign(broker, request))


async def _reassign(broker: Broker, request: Request[AlterPartitionReassignmentsRequest]) -> AlterPartitionReassignmentsResponse:
    message = request.message
    try:
        broker.access.require_on_cluster(request, AclOperation.ALTER)
    except ClusterAuthorization as error:
        return _denied(message, error)
    if not message.topics:
        return AlterPartitionReassignmentsResponse()
    allow_change = message.allow_replication_factor_change
    targets = {
        TopicPartition(topic.name, partition.partition_index): partition.replicas
        for topic in message.topics
        for partition in topic.partitions
    }
    try:
        outcomes = await broker.admin.alter_reassignments(targets, allow_change)
    except KafkaError as error:
        return AlterPartitionReassignmentsResponse(0, allow_change, error.code, str(error))
    return AlterPartitionReassignmentsResponse(0, allow_change, 0, None, [_topic(topic, outcomes) for topic in message.topics])


def _denied(message: AlterPartitionReassignmentsRequest, error: ClusterAuthorization) -> AlterPartitionReassignmentsResponse:
    topics = [
        ReassignableTopicResponse(topic.name, [_partition(partition.partition_index, error) for partition in topic.partitions])
        for topic in message.topics
    ]
    return AlterPartitionReassignmentsResponse(0, message.allow_replication_factor_change, error.code, str(error), topics)


def _topic(topic: ReassignableTopic, outcomes: Mapping[TopicPartition, KafkaError | None]) -> ReassignableTopicResponse:
    return ReassignableTopicResponse(
        topic.name,
        [
            _partition(partition.partition_index, outcomes[TopicPartition(topic.name, partition.partition_index)])
            for partition in topic.partitions
        ],
    )


def _partition(number: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(number, 0, None)
    return ReassignablePartitionResponse(number, error.code, str(error) or None)
