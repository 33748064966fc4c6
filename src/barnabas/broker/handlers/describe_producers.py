"""DescribeProducers: who has written to a partition lately with a producer id, and whose transaction is open in it.

Version 0.
Behaviour
- answered by the leader from its producer state: idempotent and transactional producers until they expire (producer.id.expiration.ms).
Errors, of a partition
- INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas import topic_name
from barnabas.broker.handlers.parts import Parts
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


def handle(broker: Broker, request: Request[DescribeProducersRequest]) -> DescribeProducersResponse:
    return DescribeProducersResponse(0, [_topic(broker, topic) for topic in request.message.topics])


def _topic(broker: Broker, topic: TopicRequest) -> TopicResponse:
    fault = _fault(topic.name, broker.metadata_cache)
    if fault is not None:
        refused = [PartitionResponse(partition, fault.code, str(fault)) for partition in topic.partition_indexes]
        return TopicResponse(topic.name, refused)
    return TopicResponse(topic.name, [_partition(broker, TopicPartition(topic.name, each)) for each in topic.partition_indexes])


def _fault(name: str, cache: MetadataCache) -> KafkaError | None:
    """What is wrong with a topic as a whole; only this is told in words."""
    fault = topic_name.fault_in(name)
    if fault is not None:
        return InvalidTopic(f"Topic name is invalid: {fault}")
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
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.last_timestamp,
                each.coordinator_epoch,
                each.current_txn_first_offset,
            )
            for each in producers
        ],
    )
