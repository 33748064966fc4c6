# Compiled by mypyc: src/compiled.toml lists this module.
"""Converts records from one message format to another.

A broker converts down for consumers that support only older formats (as Kafka's RecordsUtil), and up for producers that send them. Offsets,
keys, values and codecs are kept. Fields that an older format lacks are dropped: headers, control batches, producer fields and, in v0,
timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mypy_extensions import i64

from barnabas.errors import InvalidRecord, UnsupportedCompressionType
from barnabas.records.batch import CREATE_TIME, LOG_APPEND_TIME, MAGIC_V2, NO_TIMESTAMP, Batch, read_batches
from barnabas.records.builder import OFFSET_DELTA_MAX, BatchBuilder
from barnabas.records.codecs.compression import NONE, ZSTD
from barnabas.records.reader import each_record
from barnabas.records.record import Record


def down_convert(data: bytes, to_magic: int, first_offset: int = 0) -> bytes:
    """Every whole batch of `data` in a format no newer than `to_magic`.

    A consumer that fetches from the middle of an uncompressed v2 batch gets no record below `first_offset`: before v2 each such record is
    a separate batch, and some clients rely on the first being the one they requested.
    """
    converted: list[bytes] = []
    for batch in read_batches(data):
        converted.append(down_convert_batch(data, batch, to_magic, first_offset))
    return b"".join(converted)


def down_convert_batch(data: bytes, batch: Batch, to_magic: int, first_offset: int = 0) -> bytes:
    """One batch for `down_convert`; empty if the older format can express nothing of it."""
    if to_magic < MAGIC_V2:
        if batch.is_control:
            return b""
        if batch.codec == ZSTD:
            raise UnsupportedCompressionType("Down-conversion of zstandard-compressed batches is not supported")
    if batch.magic <= to_magic:
        return data[batch.at : batch.end]
    records = each_record(data, batch)
    return _rebuild(_from(records, first_offset) if batch.codec == NONE else records, batch, to_magic)


def up_convert(data: bytes, to_magic: int = MAGIC_V2) -> bytes:
    """Every whole batch of `data` in a format no older than `to_magic`; records without a timestamp still have none.

    A compressed wrapper becomes one batch. Plain entries are joined, because a batch for each would be mostly header.
    """
    converted: list[bytes] = []
    for run in _runs(read_batches(data), to_magic):
        first = run[0]
        if first.magic >= to_magic:
            converted.append(data[first.at : first.end])
            continue
        converted.append(_rebuild(_records_of(data, run), first, to_magic))
    return b"".join(converted)


def convert(records: Iterable[Record], builder: BatchBuilder) -> bytes:
    """The records as the batch of a new `builder`, with new offsets from its base offset on, as a leader assigns them."""
    offset: i64 = builder.base_offset
    for record in records:
        _append(builder, record, offset)
        offset += 1
    return builder.build()


def _from(records: Iterator[Record], first_offset: i64) -> Iterator[Record]:
    for record in records:
        if record.offset >= first_offset:
            yield record


def _records_of(data: bytes, batches: list[Batch]) -> Iterator[Record]:
    for batch in batches:
        yield from each_record(data, batch)


def _rebuild(records: Iterator[Record], source: Batch, magic: i64) -> bytes:
    """One batch of format `magic` with the codec and the timestamp type of `source`, every record at its old offset; empty without records.

    A small batch may decompress into millions of records, so only one of them is in memory at a time.
    """
    first = next(records, None)
    if first is None:
        return b""
    log_append_time: i64 = source.max_timestamp if source.timestamp_type == LOG_APPEND_TIME else NO_TIMESTAMP
    builder = BatchBuilder(
        magic,
        source.codec,
        first.offset,
        timestamp_type=LOG_APPEND_TIME if source.timestamp_type == LOG_APPEND_TIME else CREATE_TIME,
        log_append_time=log_append_time,
    )
    try:
        _append(builder, first, first.offset)
        for record in records:
            _append(builder, record, record.offset)
    except ValueError as error:  # offsets that do not grow, or a negative timestamp
        raise InvalidRecord(f"Cannot convert the batch at offset {source.base_offset} to format v{magic}: {error}") from error
    return builder.build()


def _append(builder: BatchBuilder, record: Record, offset: i64) -> None:
    if builder.magic >= MAGIC_V2:
        builder.append_record(record, offset)
    else:
        builder.append_at(offset, record.timestamp, record.key, record.value)


def _runs(batches: list[Batch], to_magic: i64) -> Iterator[list[Batch]]:
    """Groups of batches that become one: neighbouring plain entries with the same timestamp type; any other batch is alone."""
    run: list[Batch] = []
    for batch in batches:
        if run and not _joins(run, batch, to_magic):
            yield run
            run = []
        run.append(batch)
    if run:
        yield run


def _joins(run: list[Batch], batch: Batch, to_magic: i64) -> bool:
    first = run[0]
    if first.magic >= to_magic or first.codec != NONE or batch.codec != NONE or batch.magic != first.magic:
        return False
    if batch.last_offset <= run[-1].last_offset or batch.last_offset - first.last_offset > OFFSET_DELTA_MAX:
        return False
    if batch.timestamp_type != first.timestamp_type:
        return False
    return batch.timestamp_type != LOG_APPEND_TIME or batch.max_timestamp == first.max_timestamp
