"""Consumers: `Consumer` blocks, `AsyncConsumer` is for asyncio.

A name is loaded at its first use, because other packages need single values of this package without the whole consumer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.client.lazy_names import lazy_getattr

if TYPE_CHECKING:
    from barnabas.client.consumer.async_consumer import AsyncConsumer
    from barnabas.client.consumer.consumer import Consumer
    from barnabas.client.consumer.fetching.arrow_fetch import ARROW_SCHEMA
    from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
    from barnabas.client.consumer.interceptors import ConsumerInterceptor
    from barnabas.client.consumer.membership.rebalance_listener import ConsumerRebalanceListener
    from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
    from barnabas.client.consumer.offsets.subscription_state import SubscriptionPattern
    from barnabas.client.consumer.options import CloseOptions, GroupMembershipOperation
    from barnabas.client.consumer.record import ConsumerRecord, ConsumerRecords, OffsetAndTimestamp, TimestampType

__all__ = [
    "ARROW_SCHEMA",
    "AsyncConsumer",
    "CloseOptions",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerInterceptor",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerRecords",
    "GroupMembershipOperation",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "SubscriptionPattern",
    "TimestampType",
]

_PLACES = {
    "ARROW_SCHEMA": "barnabas.client.consumer.fetching.arrow_fetch",
    "AsyncConsumer": "barnabas.client.consumer.async_consumer",
    "CloseOptions": "barnabas.client.consumer.options",
    "Consumer": "barnabas.client.consumer.consumer",
    "ConsumerGroupMetadata": "barnabas.client.consumer.group_metadata",
    "ConsumerInterceptor": "barnabas.client.consumer.interceptors",
    "ConsumerRebalanceListener": "barnabas.client.consumer.membership.rebalance_listener",
    "ConsumerRecord": "barnabas.client.consumer.record",
    "ConsumerRecords": "barnabas.client.consumer.record",
    "GroupMembershipOperation": "barnabas.client.consumer.options",
    "OffsetAndMetadata": "barnabas.client.consumer.offsets.offset_and_metadata",
    "OffsetAndTimestamp": "barnabas.client.consumer.record",
    "SubscriptionPattern": "barnabas.client.consumer.offsets.subscription_state",
    "TimestampType": "barnabas.client.consumer.record",
}


__getattr__ = lazy_getattr(__name__, _PLACES)
