"""Kafka clients: a producer, a consumer and an admin client, each for asyncio and as a blocking class.

    from barnabas.client import Producer, Consumer, Admin

This package exports the names that most programs need. `client.producer`, `client.consumer`, `client.admin`, `client.serialization` and
`client.errors` export all of them. A name is loaded at its first use, so that a producer does not load the consumer's modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.client.lazy_names import lazy_getattr

if TYPE_CHECKING:
    from barnabas.client.admin import Admin, AsyncAdmin, ConfigResource, NewPartitions, NewTopic, OffsetSpec
    from barnabas.client.cluster import Cluster, Node, PartitionInfo
    from barnabas.client.config.config_names import AdminClientConfig, ConsumerConfig, ProducerConfig
    from barnabas.client.consumer import (
        AsyncConsumer,
        Consumer,
        ConsumerGroupMetadata,
        ConsumerRebalanceListener,
        ConsumerRecord,
        ConsumerRecords,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        SubscriptionPattern,
    )
    from barnabas.client.errors import ConfigException, KafkaError
    from barnabas.client.metrics.metrics import Metric, MetricName
    from barnabas.client.producer import AsyncProducer, Delivery, Producer, ProducerRecord, RecordMetadata
    from barnabas.topic_partition import TopicPartition

__all__ = [
    "Producer",
    "AsyncProducer",
    "ProducerRecord",
    "RecordMetadata",
    "Delivery",
    "Consumer",
    "AsyncConsumer",
    "ConsumerRecord",
    "ConsumerRecords",
    "ConsumerGroupMetadata",
    "ConsumerRebalanceListener",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "SubscriptionPattern",
    "Admin",
    "AsyncAdmin",
    "NewTopic",
    "NewPartitions",
    "ConfigResource",
    "OffsetSpec",
    "TopicPartition",
    "Cluster",
    "Node",
    "PartitionInfo",
    "KafkaError",
    "ConfigException",
    "ProducerConfig",
    "ConsumerConfig",
    "AdminClientConfig",
    "Metric",
    "MetricName",
]

_PLACES = {
    **dict.fromkeys(("Producer", "AsyncProducer", "ProducerRecord", "RecordMetadata", "Delivery"), "barnabas.client.producer"),
    **dict.fromkeys(
        (
            "Consumer",
            "AsyncConsumer",
            "ConsumerRecord",
            "ConsumerRecords",
            "ConsumerGroupMetadata",
            "ConsumerRebalanceListener",
            "OffsetAndMetadata",
            "OffsetAndTimestamp",
            "SubscriptionPattern",
        ),
        "barnabas.client.consumer",
    ),
    **dict.fromkeys(("Admin", "AsyncAdmin", "NewTopic", "NewPartitions", "ConfigResource", "OffsetSpec"), "barnabas.client.admin"),
    **dict.fromkeys(("Cluster", "Node", "PartitionInfo"), "barnabas.client.cluster"),
    **dict.fromkeys(("Metric", "MetricName"), "barnabas.client.metrics.metrics"),
    **dict.fromkeys(("KafkaError", "ConfigException"), "barnabas.client.errors"),
    **dict.fromkeys(("ProducerConfig", "ConsumerConfig", "AdminClientConfig"), "barnabas.client.config.config_names"),
    "TopicPartition": "barnabas.topic_partition",
}


__getattr__ = lazy_getattr(__name__, _PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
