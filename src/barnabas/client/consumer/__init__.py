"""Reading records: `Consumer` blocks, `AsyncConsumer` is awaited.

A name is loaded when it is first used: others need a value of this package without the whole consumer.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "ARROW_SCHEMA": "fetching.arrow_fetch",
    "AsyncConsumer": "async_consumer",
    "CloseOptions": "options",
    "Consumer": "consumer",
    "ConsumerGroupMetadata": "group_metadata",
    "ConsumerInterceptor": "interceptors",
    "ConsumerRebalanceListener": "membership.rebalance_listener",
    "ConsumerRecord": "record",
    "ConsumerRecords": "record",
    "GroupMembershipOperation": "options",
    "OffsetAndMetadata": "offsets.offset_and_metadata",
    "OffsetAndTimestamp": "record",
    "SubscriptionPattern": "offsets.subscription_state",
    "TimestampType": "record",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
