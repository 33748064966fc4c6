"""DescribeProducers: the active producers of partitions, and the start offsets of their open transactions.

Version 0.
Behaviour
- the leader serves it from its producer state: idempotent and transactional producers until they expire (producer.id.expiration.ms).
Errors, of a partition
- INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas import topic_name
from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.errors import InvalidTopic, KafkaError, UnknownTopicOrPartition
from barnabas.protocol.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.topics.metadata_cache import MetadataCache
    from barnabas.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest

PARTS: Final = Parts(("topics", "partition_indexes"), ("topics", "partitions"))


def handle(broker: Broker, request: Request[DescribeProducersRequest]) -> Reply[DescribeProducersResponse]:
    return Reply.now(request, DescribeProducersResponse(0, [_topic(broker, topic) for topic in request.message.topics]))


def _topic(broker: Broker, topic: TopicRequest) -> TopicResponse:
    error = _topic_error(topic.name, broker.metadata_cache)
    if error is not None:
        refused = [PartitionResponse(partition, error.code, str(error)) for partition in topic.partition_indexes]
        return TopicResponse(topic.name, refused)
    return TopicResponse(topic.name, [_partition(broker, TopicPartition(topic.name, index)) for index in topic.partition_indexes])


def _topic_error(name: str, cache: MetadataCache) -> KafkaError | None:
    """The error of a topic as a whole. Only these errors have a message."""
    error = topic_name.fault_in(name)
    if error is not None:
        return InvalidTopic(f"Topic name is invalid: {error}")
    return None if cache.contains(name) else UnknownTopicOrPartition("This server does not host this topic-partition.")


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
