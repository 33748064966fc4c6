"""Encodes rows into record batches: collected until there are enough, sorted by partition, encoded column by column.

It is between `rows` and `send`. It keeps the order of rows within a partition, assigns the sequence numbers of each partition, and never
creates a Python object for a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, increment_sequence
from barnabas.records.codecs.compression import NONE
from barnabas.records.columns.columns import encode
from barnabas.topic_partition import TopicPartition
from pyspark_barnabas.write.partitioning import StickyPlaces, places
from pyspark_barnabas.write.rows import Rows, rows_of

GATHERED_BYTES: Final = 8 * 1024 * 1024  # bytes of rows that are sorted and encoded together
GATHERED_ROWS: Final = 131_072


@dataclass(frozen=True, slots=True)
class ProducerFields:
    """The producer id and epoch of the records: none, of an idempotent producer, or of a transaction."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH
    transactional: bool = False

    @property
    def is_idempotent(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class Compression:
    codec: int = NONE
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Encoded:
    """One encoded record batch."""

    partition: TopicPartition
    data: bytes
    count: int


Topology = Callable[[str], tuple[int, list[int]]]  # the number of partitions of a topic, and those with a leader


class Encoder:
    """`topology` may wait for the broker; `now_ms` is the clock, `random` the source of randomness."""

    def __init__(
        self,
        producer: ProducerFields,
        compression: Compression,
        batch_size: int,
        topology: Topology,
        now_ms: Callable[[], int],
        random: Callable[[int], int],
    ) -> None:
        self._producer = producer
        self._compression = compression
        self._batch_size = batch_size
        self._topology = topology
        self._now_ms = now_ms
        self._random = random
        self._sequences: dict[TopicPartition, int] = {}
        self._sticky: dict[str, StickyPlaces] = {}

    def encode(self, batch: pa.RecordBatch, topic: str | None) -> Iterator[Encoded]:
        """Encodes the rows of an Arrow batch; `topic` is None if each row has its own."""
        rows = rows_of(batch, topic)
        if not len(rows):
            return
        if topic is not None:
            yield from self._encode_topic(topic, rows)
            return
        assert rows.topics is not None
        for name in pc.unique(rows.topics).to_pylist():
            yield from self._encode_topic(name, _taken(rows, _rows_where(rows.topics, name)))

    def _encode_topic(self, topic: str, rows: Rows) -> Iterator[Encoded]:
        partition_count, available = self._topology(topic)
        sticky = self._sticky.get(topic)
        if sticky is None:
            candidates = available or list(range(partition_count))
            sticky = self._sticky[topic] = StickyPlaces(candidates, self._batch_size, self._random(len(candidates)))
        placed = places(rows.partitions, rows.keys, rows.values, partition_count, sticky)
        if placed.min() == placed.max():
            yield from self._encode_partition(TopicPartition(topic, int(placed[0])), rows)
            return
        order = np.argsort(placed.astype(np.uint16) if partition_count <= 2**16 else placed, kind="stable")  # small numbers sort faster
        sorted_rows = _taken(rows, pa.array(order))
        sorted_places = placed[order]
        starts = np.flatnonzero(np.diff(sorted_places, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            yield from self._encode_partition(TopicPartition(topic, int(sorted_places[start])), _slice(sorted_rows, int(start), int(end)))

    def _encode_partition(self, partition: TopicPartition, rows: Rows) -> Iterator[Encoded]:
        producer = self._producer
        sequence = self._sequences.get(partition, 0) if producer.is_idempotent else NO_SEQUENCE
        batches = encode(
            rows.keys,
            rows.values,
            rows.timestamps,
            rows.headers,
            now_ms=self._now_ms(),
            codec=self._compression.codec,
            level=self._compression.level,
            batch_size=self._batch_size,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=producer.transactional,
        )
        if producer.is_idempotent:
            self._sequences[partition] = increment_sequence(sequence, len(rows))
        for data in batches:
            yield Encoded(partition, data, int.from_bytes(data[_COUNT], "big"))


_COUNT: Final = slice(57, 61)  # the position of the record count in a v2 batch


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combines Spark's small Arrow batches, so that each partition gets enough rows at a time."""
    waiting: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        rows += batch.num_rows
        if size >= GATHERED_BYTES or rows >= GATHERED_ROWS:
            yield _joined(waiting)
            waiting, size, rows = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).combine_chunks()
    combined = table.to_batches()
    return combined[0] if combined else batches[0]


def _rows_where(topics: pa.Array, name: str) -> pa.Array:
    return pa.array(np.flatnonzero(pc.equal(topics, name).to_numpy(zero_copy_only=False)))


def _taken(rows: Rows, indices: pa.Array) -> Rows:
    def take(column: pa.Array | None) -> pa.Array | None:
        return None if column is None else column.take(indices)

    return Rows(take(rows.keys), rows.values.take(indices), None, take(rows.partitions), take(rows.timestamps), take(rows.headers))


def _slice(rows: Rows, start: int, end: int) -> Rows:
    def cut(column: pa.Array | None) -> pa.Array | None:
        return None if column is None else column.slice(start, end - start)

    return Rows(cut(rows.keys), rows.values.slice(start, end - start), None, None, cut(rows.timestamps), cut(rows.headers))
