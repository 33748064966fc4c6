"""AlterPartitionReassignments: moves partitions to other brokers, or takes that back.

Versions 0 and 1.
Behaviour
- only the active controller answers it, and at once: the moving takes its time, ListPartitionReassignments shows how far it is.
- of a partition that is asked for twice, the last counts.
Version notes
- 1: may forbid that the number of replicas changes.
Errors, of the whole
- NOT_CONTROLLER.
Errors, of a partition
- UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, NO_REASSIGNMENT_IN_PROGRESS (nothing to take back).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.errors import KafkaError
from barnabas.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest, ReassignableTopic


async def handle(broker: Broker, request: Request[AlterPartitionReassignmentsRequest]) -> AlterPartitionReassignmentsResponse:
    message = request.message
    if not message.topics:
        return AlterPartitionReassignmentsResponse()
    allow_change = message.allow_replication_factor_change
    targets = {TopicPartition(topic.name, each.partition_index): each.replicas for topic in message.topics for each in topic.partitions}
    try:
        outcomes = await broker.admin.alter_reassignments(targets, allow_change)
    except KafkaError as error:
        return AlterPartitionReassignmentsResponse(0, allow_change, error.code, str(error))
    return AlterPartitionReassignmentsResponse(0, allow_change, 0, None, [_topic(topic, outcomes) for topic in message.topics])


def _topic(topic: ReassignableTopic, outcomes: Mapping[TopicPartition, KafkaError | None]) -> ReassignableTopicResponse:
    return ReassignableTopicResponse(
        topic.name,
        [_partition(each.partition_index, outcomes[TopicPartition(topic.name, each.partition_index)]) for each in topic.partitions],
    )


def _partition(number: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(number, 0, None)
    return ReassignablePartitionResponse(number, error.code, str(error) or None)
