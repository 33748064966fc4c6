"""Writes messages to a real broker and reads them as the console does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from barnabas.client import AsyncConsumer, AsyncProducer
from barnabas.console.messages.browse import MessageQuery, open_scan
from barnabas.console.messages.cursor import Cursor
from barnabas.console.messages.decoding import DecodedMessage
from barnabas.console.messages.masks import Masks
from barnabas.testing import EmbeddedBroker

T = TypeVar("T")
# partition, timestamp, key, value
Given = tuple[int, int, bytes | None, bytes | None]
LONG_S = 60.0  # a look that ends by itself


def produce(broker: EmbeddedBroker, topic: str, given: Iterable[Given], **settings: Any) -> None:
    """Sends the messages in their order."""

    async def send() -> None:
        async with AsyncProducer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5, **settings}) as producer:
            for partition, timestamp, key, value in given:
                await producer.send(topic, value, key, partition=partition, timestamp=timestamp)

    asyncio.run(send())


def looked(
    broker: EmbeddedBroker,
    query: MessageQuery,
    limit: int,
    *,
    make: Callable[[DecodedMessage], tuple[T, int]],
    masks: Masks | None = None,
    time_s: float = LONG_S,
) -> tuple[list[T], Cursor | None, list[str]]:
    """What one page shows, the cursor to look further, and the notes."""

    async def look(consumer: AsyncConsumer[bytes, bytes]) -> tuple[list[T], Cursor | None, list[str]]:
        scan = await open_scan(consumer, query, make, masks=masks or Masks())
        matches = await scan.look(limit, time_s)
        return [one.item for one in matches], scan.cursor(), scan.notes

    return with_consumer(broker, query, look)


def with_consumer(broker: EmbeddedBroker, query: MessageQuery, work: Callable[[AsyncConsumer[bytes, bytes]], Awaitable[T]]) -> T:
    """Runs the work with a consumer that has the settings of the query."""

    async def run() -> T:
        async with AsyncConsumer({"bootstrap.servers": broker.bootstrap_servers, **query.consumer_settings()}) as consumer:
            return await work(consumer)

    return asyncio.run(run())


def number(message: DecodedMessage) -> tuple[int, int]:
    """The value as a number: what most tests send."""
    return int(message.record.value or b"-1"), 1
