"""DescribeProducers: the active producers of partitions, and the start offsets of their open transactions.

Version 0.
Behaviour
- the leader serves it from its producer state: idempotent and transactional producers until they expire (producer.id.expiration.ms).
Authorization: READ on each topic. A denied topic has the error TOPIC_AUTHORIZATION_FAILED whether it exists or not.
Errors, of a partition
- INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas import topic_name
from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest

PARTS: Final = Parts(("topics", "partition_indexes"), ("topics", "partitions"))


def handle(broker: Broker, request: Request[DescribeProducersRequest]) -> Reply[DescribeProducersResponse]:
    return Reply.now(request, DescribeProducersResponse(0, [_topic(broker, request, topic) for topic in request.message.topics]))


def _topic(broker: Broker, request: Request[DescribeProducersRequest], topic: TopicRequest) -> TopicResponse:
    error, message = _topic_error(broker, request, topic.name)
    if error is not ErrorCode.NONE:
        return TopicResponse(topic.name, [PartitionResponse(partition, error, message) for partition in topic.partition_indexes])
    return TopicResponse(topic.name, [_partition(broker, TopicPartition(topic.name, index)) for index in topic.partition_indexes])


def _topic_error(broker: Broker, request: Request[DescribeProducersRequest], name: str) -> tuple[ErrorCode, str]:
    """The error of a topic as a whole, with its message. The errors of a single partition have none."""
    fault = topic_name.fault_in(name)
    if fault is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}"
    error = ErrorCode.NONE
    if not broker.access.allows(request, AclOperation.READ, ResourceType.TOPIC, name):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif not broker.metadata_cache.contains(name):
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return error, error.message


def _partition(broker: Broker, partition: TopicPartition) -> PartitionResponse:
    try:
        producers = broker.replica_manager.active_producers(partition)
    except KafkaError as error:
        return PartitionResponse(partition.partition, error.code)
    return PartitionResponse(
        partition.partition,
        active_producers=[
            ProducerState(
                producer.producer_id,
                producer.producer_epoch,
                producer.last_sequence,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.current_txn_first_offset,
            )
            for producer in producers
        ],
    )
