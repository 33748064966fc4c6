"""What all pages about messages share: the masks, the registry and the consumer of a visit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from barnabas.client.consumer.async_consumer import AsyncConsumer
from barnabas.console.failures import NotThere
from barnabas.console.messages.browse import MessageQuery, fetch_settings, read_one
from barnabas.console.messages.decoding import PARSE_BYTES_MAX, SHOWN_BYTES_MAX, DecodedMessage, Decoder, RawRecord
from barnabas.console.messages.masks import Masks
from barnabas.console.messages.places import SCANS, close_later
from barnabas.console.messages.query_text import ARGUMENTS, QueryError, parse_query
from barnabas.console.messages.registry import CachedSchemaRegistry, shared_registry
from barnabas.console.web.visit import Visit

_PARTITIONS_UNKNOWN: Final = 32  # for the size of fetches, before the first sample


def masks_of(visit: Visit) -> Masks:
    """The masks of console.toml."""
    return Masks(visit.config.masks)


def registry_of(visit: Visit) -> CachedSchemaRegistry | None:
    """The schema registry of the cluster, if it has one."""
    return shared_registry(visit.cluster.config.registry)


def new_consumer(visit: Visit, settings: Mapping[str, object]) -> AsyncConsumer[bytes, bytes]:
    """A consumer with the rights of the visitor. Close it with `close_later`, or use `consumer_of`."""
    return visit.cluster.consumer(**{name.replace(".", "_"): value for name, value in settings.items()})


def query_settings(visit: Visit, query: MessageQuery) -> dict[str, object]:
    """The consumer's settings for a query. Fetches are smaller for more partitions. It waits for no sample of the cluster."""
    last = visit.cluster.snapshots.last
    topic = last.topics.get(query.topic) if last is not None else None
    known = len(topic.partitions) if topic is not None else _PARTITIONS_UNKNOWN
    count = len(query.partitions) or (1 if query.key is not None else known)
    return {**query.consumer_settings(), **fetch_settings(count)}


@asynccontextmanager
async def consumer_of(visit: Visit, settings: Mapping[str, object]) -> AsyncIterator[AsyncConsumer[bytes, bytes]]:
    """A consumer for one scan, when there is a place for one more."""
    async with SCANS:
        consumer = new_consumer(visit, settings)
        try:
            yield consumer
        finally:
            await asyncio.shield(close_later(consumer))


def place_of(visit: Visit) -> tuple[int, int]:
    """The partition and offset in the path of one message. Raises NotThere."""
    partition, offset = visit.path("partition"), visit.path("offset")
    if not all(text.isascii() and text.isdecimal() for text in (partition, offset)) or len(partition) > 9 or len(offset) > 18:
        raise NotThere("The address of a message ends with its partition and offset, for example /0/1000")
    return int(partition), int(offset)


async def message_of(visit: Visit, topic: str, place: tuple[int, int], *, shown_bytes_max: int = SHOWN_BYTES_MAX) -> DecodedMessage:
    """One message, decoded as the address says. Raises NotThere."""
    query = MessageQuery(topic, partitions=frozenset((place[0],)))
    async with consumer_of(visit, query_settings(visit, query)) as consumer:
        record = await read_one(consumer, topic, *place)
    if record is None:
        raise NotThere(f"There is no message at offset {place[1]} of partition {place[0]} of {topic}: it was deleted, or not yet written")
    return decoded(visit, topic, record, shown_bytes_max=shown_bytes_max)


def decoded(visit: Visit, topic: str, record: RawRecord, *, shown_bytes_max: int = SHOWN_BYTES_MAX) -> DecodedMessage:
    """The message of a record, with the readings of the address."""
    try:
        query = parse_query(topic, lambda name: visit.argument(name) if name in ("keys", "values") else "", 0)
    except QueryError:
        query = MessageQuery(topic)
    registry = registry_of(visit)
    return DecodedMessage(
        record,
        Decoder(
            topic,
            masks=masks_of(visit),
            key=query.key_reading,
            value=query.value_reading,
            registry=registry.decoder() if registry is not None else None,
            parse_bytes_max=PARSE_BYTES_MAX,
            shown_bytes_max=shown_bytes_max,
        ),
    )


def asked(visit: Visit) -> dict[str, Any]:
    """The arguments of the address that say what is asked for, to fill the form and for links."""
    return {name: visit.argument(name) for name in ARGUMENTS}
