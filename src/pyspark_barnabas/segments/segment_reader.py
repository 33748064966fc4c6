"""The direct reader: `format("barnabas").option("logDirs", …)` reads segment files without a broker.

For backfills, audits and recovery. The rows are those that a broker would send: none below the log start offset, no control records, and
with read_committed none of aborted or open transactions. A task reads ahead while it decodes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from barnabas.errors import KafkaError
from barnabas.records.batch import MAGIC_V2, Batch
from barnabas.records.columns.columns import decode
from pyspark_barnabas import values
from pyspark_barnabas.error_first import error_first
from pyspark_barnabas.read.arrow_rows import COLUMNS, HEADERS, RowMaker
from pyspark_barnabas.read.batch_cuts import Chunk, Damage, chunks, next_offset_and_cuts
from pyspark_barnabas.read.filters import OFFSET, TIMESTAMP, pushed
from pyspark_barnabas.read.read_errors import CorruptLogError
from pyspark_barnabas.schema import record_schema, wanted_columns
from pyspark_barnabas.segments.log_dirs import find_partitions
from pyspark_barnabas.segments.log_transactions import overlapping
from pyspark_barnabas.segments.segment_options import SegmentOptions
from pyspark_barnabas.segments.segment_ranges import SegmentGroup, plan

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_log: Final = logging.getLogger(__name__)


class SegmentGroupPartition(InputPartition):
    """The partition that Spark passes to a task: one group of pieces."""

    def __init__(self, group: SegmentGroup) -> None:
        super().__init__(group)

    @property
    def group(self) -> SegmentGroup:
        group: SegmentGroup = self.value
        return group


def segment_schema(options: Mapping[str, str]) -> StructType:
    """The columns of a read with these options."""
    decoder = values.decoder(options)
    return record_schema(SegmentOptions.of(options).headers, None if decoder is None else decoder.schema())


class SegmentReader(DataSourceReader):
    """Plans on the driver, reads on executors."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = SegmentOptions.of(options)
        self._decoder = values.decoder(options, schema)
        full = record_schema(self._options.headers, None if self._decoder is None else self._decoder.schema())
        self._columns_read = tuple(wanted_columns(schema, full))
        self.record_filter = self._options.record_filter

    @error_first()
    def partitions(self) -> list[InputPartition]:
        logs = find_partitions(self._options.log_dirs, self._options.wants)
        groups = plan(logs, self._options, self.record_filter)
        return [SegmentGroupPartition(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with error_first():  # a generator: errors are raised when it is consumed
            yield from self._rows(partition)

    def _rows(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, SegmentGroupPartition):
            return  # the empty partition that Spark creates if there is nothing to read
        for rows in read_group(
            partition.group, self._columns(), check_crc=self._options.check_crc, skip_damage=not self._options.fail_on_data_loss
        ):
            kept = self.record_filter.rows(rows) if self.record_filter.in_rows else rows
            if self._decoder is not None and kept.num_rows:
                kept = self._decoder.decode(kept)
            if kept.num_rows:
                yield kept if tuple(kept.schema.names) == self._columns_read else kept.select(list(self._columns_read))

    def _columns(self) -> tuple[str, ...]:
        """The columns to decode: all for a decoder; otherwise those of the query and of the filter."""
        if self._decoder is not None:
            return (*COLUMNS, HEADERS) if self._options.headers else COLUMNS
        looked_at = {one.column for one in self.record_filter.in_rows}
        return (*self._columns_read, *(name for name in (OFFSET, TIMESTAMP) if name in looked_at and name not in self._columns_read))


class FilteringSegmentReader(SegmentReader):
    """The reader for sessions in which Spark pushes filters down to Python sources."""

    @error_first()
    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Accepts the filters that it can apply to every record, and returns the others."""
        self.record_filter, rest = pushed(self.record_filter, filters)
        return rest


def read_group(
    group: SegmentGroup, columns: tuple[str, ...] = COLUMNS, *, check_crc: bool = True, skip_damage: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of a group, in offset order."""
    maker = RowMaker(group.topic, group.partition, columns)
    decoder = _Decoder(group, HEADERS in columns, check_crc, skip_damage)
    for chunk in _read_ahead(group, skip_damage):
        if chunk.batches[0].magic >= MAGIC_V2 and chunk.batches[0].base_offset >= group.end_offset:
            return
        if chunk.batches[-1].last_offset >= group.first_offset:
            for records in decoder.records(chunk):
                if records.num_rows:
                    yield maker.rows(records)


def _cuts(chunk: Chunk, group: SegmentGroup, *, whole: bool) -> list[tuple[int, int]]:
    last = chunk.batches[-1]
    if whole:  # an aborted transaction is listed from its first batch to its marker
        return [(0, int(last.at + last.size))]
    return next_offset_and_cuts(chunk.batches, group.first_offset, group.end_offset)[1]


class _Decoder:
    """Decodes the chunks of a group."""

    def __init__(self, group: SegmentGroup, headers: bool, check_crc: bool, skip_damage: bool) -> None:
        self._group = group
        self._headers = headers
        self._check_crc = check_crc
        self._skip_damage = skip_damage

    def records(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        group = self._group
        aborted = self._aborted(chunk.batches)
        for start, stop in _cuts(chunk, group, whole=bool(aborted)):
            try:
                yield self._decode(chunk.data[start:stop], aborted)
            except KafkaError as error:
                if not self._skip_damage:
                    raise CorruptLogError(
                        f"{group.topic}-{group.partition} in {group.store.uri} is damaged between offsets {chunk.batches[0].base_offset} "
                        f"and {chunk.batches[-1].last_offset}: {error}. To read all other batches, set the option 'failOnDataLoss' to "
                        "'false'."
                    ) from error
                yield from self._intact(chunk, start, stop)

    def _intact(self, chunk: Chunk, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Decodes batch by batch and skips the damaged ones."""
        for batch in chunk.batches:
            if not start <= batch.at < stop:
                continue
            try:
                yield self._decode(chunk.data[batch.at : batch.at + batch.size], self._aborted([batch]))
            except KafkaError as error:
                _log.warning("Skipping the damaged batch at offset %d of %s: %s", batch.base_offset, self._group, error)

    def _aborted(self, batches: Sequence[Batch]) -> list[tuple[int, int]] | None:
        if self._group.aborted is None:
            return None
        aborted = overlapping(self._group.aborted, int(batches[0].base_offset), int(batches[-1].last_offset))
        return [(transaction.producer_id, transaction.first_offset) for transaction in aborted]

    def _decode(self, data: bytes, aborted: list[tuple[int, int]] | None) -> pa.RecordBatch:
        group = self._group
        return decode(
            data,
            first_offset=group.first_offset,
            end_offset=group.end_offset,
            headers=self._headers,
            check_crc=self._check_crc,
            aborted=aborted,
        ).records


def _read_ahead(group: SegmentGroup, skip_damage: bool) -> Iterator[Chunk]:
    """The chunks of all pieces; the next chunk is read while the caller uses the current one."""
    source = _chunks(group, skip_damage)
    with ThreadPoolExecutor(1, "barnabas-segments") as pool:
        following = pool.submit(next, source, None)
        while (chunk := following.result()) is not None:
            following = pool.submit(next, source, None)
            yield chunk


def _chunks(group: SegmentGroup, skip_damage: bool) -> Iterator[Chunk]:
    for piece in group.pieces:
        with group.store.open(piece.path) as file:
            try:
                yield from chunks(file, piece.start, piece.end)
            except Damage as damage:
                if piece.is_tail and damage.is_torn:
                    continue  # the log is being written to, or was when it was copied
                if not skip_damage:
                    raise CorruptLogError(f"{damage}. To read what comes after, set the option 'failOnDataLoss' to 'false'.") from damage
                _log.warning("Skipping the rest of a segment: %s", damage)
