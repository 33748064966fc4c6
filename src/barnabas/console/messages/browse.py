"""Opens a scan for what a visitor asks for: which topic and partitions, from where, in which direction, with which filter.

Offsets are asked for when the scan begins. The scan ends at the end offsets of that moment, so that it ends at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, get_args

from barnabas.client import AsyncConsumer
from barnabas.client.producer.partitioners import partition_for_key
from barnabas.console.messages.cursor import Cursor
from barnabas.console.messages.decoding import (
    LIST_PARSE_BYTES_MAX,
    PARSE_BYTES_MAX,
    SHOWN_BYTES_MAX,
    DecodedMessage,
    Decoder,
    RawRecord,
    Reading,
)
from barnabas.console.messages.filters import AllOf, Filter, KeyFilter
from barnabas.console.messages.masks import Masks
from barnabas.console.messages.registry import CachedSchemaRegistry
from barnabas.console.messages.scan import SCAN_SETTINGS, Examiner, Scan, ScanRange
from barnabas.errors import KafkaError, UnknownTopicOrPartition
from barnabas.topic_partition import TopicPartition

T = TypeVar("T")

Start = Literal["newest", "beginning", "offset", "time"]
STARTS: Final[tuple[Start, ...]] = get_args(Start)
Isolation = Literal["read_uncommitted", "read_committed"]

TIMEOUT_S: Final = 5.0
PARTITIONS_MAX: Final = 1000
_FETCH_BYTES_MAX: Final = 2 * 1024 * 1024
_PARTITION_FETCH_BYTES_MAX: Final = 256 * 1024
_PARTITION_FETCH_BYTES_MIN: Final = 32 * 1024


@dataclass(frozen=True)
class MessageQuery:
    """What a visitor asks for. An offset below zero counts from the end of each partition. `partitions` is empty for all of them.

    With a key, only the partition that Kafka's partitioner gives this key is read, unless `partitions` names others.
    """

    topic: str
    start: Start = "newest"
    offset: int = 0
    timestamp_ms: int = 0
    partitions: frozenset[int] = frozenset()
    key: bytes | None = None
    filter: Filter | None = None
    isolation: Isolation = "read_uncommitted"
    key_reading: Reading = "auto"
    value_reading: Reading = "auto"
    cursor: Cursor | None = None

    @property
    def is_backwards(self) -> bool:
        """Whether the newest messages come first."""
        return self.start == "newest"

    def consumer_settings(self) -> dict[str, object]:
        """Those of the consumer that reads for this query."""
        return {**SCAN_SETTINGS, "isolation.level": self.isolation}


@dataclass(frozen=True)
class Bounds:
    """The partitions of a topic with the offsets of their first messages and their ends; those without a leader are apart."""

    begins: dict[int, int]
    ends: dict[int, int]
    without_leader: tuple[int, ...]
    partition_count: int


class KeyIsMasked(ValueError):
    """Keys of this topic are masked: a search by key would tell whether a key is there."""


async def bounds_of(consumer: AsyncConsumer[bytes, bytes], topic: str, partitions: frozenset[int] = frozenset()) -> Bounds:
    """The bounds of these partitions, or of all. Raises UnknownTopicOrPartition."""
    infos = await consumer.partitions_for(topic, TIMEOUT_S)
    if not infos:
        raise UnknownTopicOrPartition(f"There is no topic {topic!r}, or you may not see it")
    chosen = [info for info in infos if not partitions or info.partition in partitions]
    unknown = sorted(partitions - {info.partition for info in infos})
    if unknown:
        raise UnknownTopicOrPartition(f"The topic {topic} has no partition {unknown[0]}: it has {len(infos)}, from 0 on")
    chosen.sort(key=lambda info: info.partition)
    if len(chosen) > PARTITIONS_MAX:
        raise KafkaError(f"{topic} has {len(chosen)} partitions; at most {PARTITIONS_MAX} can be merged: choose some of them")
    readable = [TopicPartition(topic, info.partition) for info in chosen if info.leader is not None]
    begins, ends = await asyncio.gather(consumer.beginning_offsets(readable, TIMEOUT_S), consumer.end_offsets(readable, TIMEOUT_S))
    return Bounds(
        {partition.partition: begin for partition, begin in begins.items()},
        {partition.partition: max(end, begins.get(partition, 0)) for partition, end in ends.items()},
        tuple(info.partition for info in chosen if info.leader is None),
        len(infos),
    )


async def open_scan(
    consumer: AsyncConsumer[bytes, bytes],
    query: MessageQuery,
    make: Callable[[DecodedMessage], tuple[T, int]],
    *,
    masks: Masks,
    registry: CachedSchemaRegistry | None = None,
    parse_bytes_max: int | None = None,
    shown_bytes_max: int = SHOWN_BYTES_MAX,
) -> Scan[T]:
    """A scan for the query, with the masks of the topic. The consumer has the settings of the query and is closed by the caller."""
    chosen = query.filter
    partitions = query.partitions
    if query.key is not None:
        if masks.for_topic(query.topic).key:
            raise KeyIsMasked("Keys of this topic are masked, so it cannot be searched by key")
        if not partitions:
            infos = await consumer.partitions_for(query.topic, TIMEOUT_S)
            partitions = frozenset((int(partition_for_key(query.key, len(infos))),)) if infos else frozenset()
        chosen = KeyFilter(query.key) if chosen is None else AllOf([KeyFilter(query.key), chosen])
    bounds = await bounds_of(consumer, query.topic, partitions)
    starts = await _starts(consumer, query, bounds)
    ranges: list[ScanRange[T]] = [
        ScanRange(partition, bounds.begins[partition], bounds.ends[partition], start) for partition, start in sorted(starts.items())
    ]
    needs_values = chosen is not None and chosen.needs_values
    decoder = Decoder(
        query.topic,
        masks=masks,
        key=query.key_reading,
        value=query.value_reading,
        registry=registry.decoder() if registry is not None else None,
        parse_bytes_max=parse_bytes_max or (PARSE_BYTES_MAX if needs_values else LIST_PARSE_BYTES_MAX),
        shown_bytes_max=shown_bytes_max,
    )
    scan: Scan[T] = Scan(
        consumer,
        query.topic,
        ranges,
        Examiner(decoder, chosen, make),
        backwards=query.is_backwards,
        looked_before=query.cursor.looked if query.cursor is not None else 0,
    )
    scan.notes += [f"Partition {partition} has no leader and cannot be read" for partition in bounds.without_leader]
    return scan


def fetch_settings(partition_count: int) -> dict[str, object]:
    """The sizes of fetches for so many partitions: each of them gets an answer in the first fetches."""
    size = max(_PARTITION_FETCH_BYTES_MIN, min(_PARTITION_FETCH_BYTES_MAX, _FETCH_BYTES_MAX // max(partition_count, 1)))
    return {"max.partition.fetch.bytes": size}


async def _starts(consumer: AsyncConsumer[bytes, bytes], query: MessageQuery, bounds: Bounds) -> dict[int, int]:
    """The first position of each partition, within its bounds. Partitions that are not in a cursor are done."""
    if query.cursor is not None:
        positions = query.cursor.positions
        return {
            partition: min(max(positions[partition], begin), bounds.ends[partition])
            for partition, begin in bounds.begins.items()
            if partition in positions
        }
    if query.start == "newest":
        return dict(bounds.ends)
    if query.start == "beginning":
        return dict(bounds.begins)
    if query.start == "offset":
        return {
            partition: min(max(query.offset if query.offset >= 0 else bounds.ends[partition] + query.offset, begin), bounds.ends[partition])
            for partition, begin in bounds.begins.items()
        }
    times = {TopicPartition(query.topic, partition): query.timestamp_ms for partition in bounds.begins}
    offsets = await consumer.offsets_for_times(times, TIMEOUT_S)
    return {
        partition.partition: bounds.ends[partition.partition] if first is None else min(first.offset, bounds.ends[partition.partition])
        for partition, first in offsets.items()
    }


async def read_one(consumer: AsyncConsumer[bytes, bytes], topic: str, partition: int, offset: int) -> RawRecord | None:
    """The message at this offset; None if there is none: deleted, compacted, or not yet written."""
    records = await read_offsets(consumer, topic, [(partition, offset)])
    return records.get((partition, offset))


async def read_offsets(
    consumer: AsyncConsumer[bytes, bytes], topic: str, places: Sequence[tuple[int, int]], *, bytes_max: int | None = None
) -> dict[tuple[int, int], RawRecord]:
    """The messages at these places (partition, offset), as far as they are there, in few fetches. With more than `bytes_max` bytes of
    values together it raises an error."""
    offsets_by_partition: dict[int, list[int]] = {}
    for partition, offset in places:
        offsets_by_partition.setdefault(partition, []).append(offset)
    bounds = await bounds_of(consumer, topic, frozenset(offsets_by_partition))
    records: dict[tuple[int, int], RawRecord] = {}
    for partition, offsets in offsets_by_partition.items():
        if partition not in bounds.begins:
            raise KafkaError(f"Partition {partition} of {topic} has no leader and cannot be read now")
        inside = sorted(offset for offset in set(offsets) if bounds.begins[partition] <= offset < bounds.ends[partition])
        await _read_partition(consumer, TopicPartition(topic, partition), inside, records, bytes_max)
    return records


async def _read_partition(
    consumer: AsyncConsumer[bytes, bytes],
    partition: TopicPartition,
    offsets: list[int],
    records: dict[tuple[int, int], RawRecord],
    bytes_max: int | None,
) -> None:
    await consumer.assign([partition])
    loop = asyncio.get_running_loop()
    selected = set(offsets)
    for offset in offsets:
        if (partition.partition, offset) in records:
            continue
        consumer.seek(partition, offset)
        deadline = loop.time() + TIMEOUT_S
        position = offset
        while position <= offset:
            if loop.time() >= deadline:
                raise KafkaError(f"{partition} did not answer within {TIMEOUT_S:.0f} s")
            polled = await consumer.poll(0.25)
            for record in polled.records(partition):
                if record.offset in selected:
                    records[partition.partition, record.offset] = record
            if bytes_max is not None and sum(len(record.value or b"") for record in records.values()) > bytes_max:
                raise KafkaError(f"The selected messages have more than {bytes_max} bytes together: select fewer")
            following = polled.next_offsets().get(partition)
            position = following.offset if following is not None else position
