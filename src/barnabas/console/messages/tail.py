"""The live tail: new messages as they are written, without end.

It follows a topic for a person who looks at it, so it shows at most some tens of messages a second and says how many it left out. If the
topic is faster than that, the tail jumps to the end instead of reading everything: a console costs the brokers little, however much is
written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from barnabas.client import AsyncConsumer
from barnabas.console.messages.browse import MessageQuery, bounds_of
from barnabas.console.messages.decoding import LIST_PARSE_BYTES_MAX, PARSE_BYTES_MAX, DecodedMessage, Decoder
from barnabas.console.messages.filters import AllOf, KeyFilter
from barnabas.console.messages.masks import Masks
from barnabas.console.messages.registry import CachedSchemaRegistry
from barnabas.console.messages.rows import LIST_SHOWN_BYTES_MAX
from barnabas.console.messages.scan import SCAN_SETTINGS, Examiner, Found
from barnabas.topic_partition import TopicPartition

T = TypeVar("T")

MESSAGES_A_STEP: Final = 50
STEP_S: Final = 0.5
STEP_WITH_FILTER_S: Final = 0.1
LAG_MAX: Final = 1000  # messages that the tail may be behind before it jumps to the end
LAG_WITH_FILTER_MAX: Final = 20_000
POLL_S: Final = 5.0

TAIL_SETTINGS: Final = {
    **SCAN_SETTINGS,
    "auto.offset.reset": "latest",
    "fetch.max.wait.ms": 500,
    "fetch.max.bytes": 1024 * 1024,
    "max.partition.fetch.bytes": 128 * 1024,
    "max.poll.records": 1000,
}


@dataclass(frozen=True)
class TailStep(Generic[T]):
    """New messages, oldest first. `left_out` were not shown: more than MESSAGES_A_STEP matched, or the tail jumped over them."""

    found: tuple[Found[T], ...]
    seen: int
    left_out: int


async def follow(
    consumer: AsyncConsumer[bytes, bytes],
    query: MessageQuery,
    make: Callable[[DecodedMessage], tuple[T, int]],
    *,
    masks: Masks,
    registry: CachedSchemaRegistry | None = None,
) -> AsyncGenerator[TailStep[T], None]:
    """Yields an empty step when it knows the ends of the partitions: messages after them are new. Then yields a step whenever there are new
    messages, and at least every POLL_S seconds. The consumer has TAIL_SETTINGS."""
    bounds = await bounds_of(consumer, query.topic, query.partitions)
    partitions = [TopicPartition(query.topic, partition) for partition in bounds.ends]
    chosen = query.filter
    if query.key is not None:
        chosen = KeyFilter(query.key) if chosen is None else AllOf([KeyFilter(query.key), chosen])
    decoder = Decoder(
        query.topic,
        masks=masks,
        key=query.key_reading,
        value=query.value_reading,
        registry=registry.decoder() if registry is not None else None,
        parse_bytes_max=PARSE_BYTES_MAX if chosen is not None and chosen.needs_values else LIST_PARSE_BYTES_MAX,
        shown_bytes_max=LIST_SHOWN_BYTES_MAX,
    )
    examiner: Examiner[T] = Examiner(decoder, chosen, make)
    await consumer.assign(partitions)
    for partition in partitions:
        consumer.seek(partition, bounds.ends[partition.partition])
    lag_max = LAG_MAX if chosen is None else LAG_WITH_FILTER_MAX
    yield TailStep((), 0, 0)
    while True:
        polled = await consumer.poll(POLL_S)
        records = sorted(polled, key=lambda record: record.timestamp)
        left_out = 0
        if chosen is None and len(records) > MESSAGES_A_STEP:
            left_out = len(records) - MESSAGES_A_STEP
            matches = await asyncio.to_thread(examiner.examine, records[-MESSAGES_A_STEP:])
        else:
            matches = await asyncio.to_thread(examiner.examine, records) if records else []
            left_out = max(0, len(matches) - MESSAGES_A_STEP)
            matches = matches[-MESSAGES_A_STEP:]
        seen = len(records)
        jumped = _jump(consumer, {partition: polled.next_offsets()[partition].offset for partition in polled.partitions()}, lag_max)
        yield TailStep(tuple(matches), seen + jumped, left_out + jumped)
        if records:
            await asyncio.sleep(STEP_S if chosen is None else STEP_WITH_FILTER_S)


def _jump(consumer: AsyncConsumer[bytes, bytes], positions: dict[TopicPartition, int], lag_max: int) -> int:
    """Seeks to the end where the tail is too far behind; the number of messages that are jumped over."""
    jumped = 0
    for partition, position in positions.items():
        lag = consumer.current_lag(partition)
        if lag is not None and lag > lag_max:
            consumer.seek(partition, position + lag)
            jumped += lag
    return jumped
