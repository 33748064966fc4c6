"""Producers: `Producer` blocks, `AsyncProducer` is for asyncio.

A name is loaded at its first use, because other packages need the settings of this package without the whole producer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.client.lazy_names import lazy_getattr

if TYPE_CHECKING:
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

_PLACES = {
    "AsyncProducer": "barnabas.client.producer.async_producer",
    "Delivery": "barnabas.client.producer.batch",
    "Partitioner": "barnabas.client.producer.partitioners",
    "Producer": "barnabas.client.producer.producer",
    "ProducerInterceptor": "barnabas.client.producer.interceptors",
    "ProducerRecord": "barnabas.client.producer.record",
    "RecordMetadata": "barnabas.client.producer.record",
    "RoundRobinPartitioner": "barnabas.client.producer.partitioners",
    "TransactionAborted": "barnabas.client.errors",
}


__getattr__ = lazy_getattr(__name__, _PLACES)
