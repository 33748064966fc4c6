"""Sending records: `Producer` blocks, `AsyncProducer` is awaited."""

from barnabas.client.errors import TransactionAborted
from barnabas.client.producer.async_producer import AsyncProducer
from barnabas.client.producer.batch import Delivery
from barnabas.client.producer.interceptors import ProducerInterceptor
from barnabas.client.producer.partitioners import Partitioner, RoundRobinPartitioner
from barnabas.client.producer.producer import Producer
from barnabas.client.producer.record import ProducerRecord, RecordMetadata

__all__ = [
    "AsyncProducer",
    "Delivery",
    "Partitioner",
    "Producer",
    "ProducerInterceptor",
    "ProducerRecord",
    "RecordMetadata",
    "RoundRobinPartitioner",
    "TransactionAborted",
]
