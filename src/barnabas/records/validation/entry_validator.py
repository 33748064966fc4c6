# Compiled by mypyc: src/compiled.toml lists this module.
"""The validator for formats v0 and v1, where every record is an entry or is in a compressed wrapper.

`validator` calls it after it has checked the entries as a whole. Old clients are rare, so this module reads record by record. Only a batch
whose inner offsets and codec already match the topic keeps its bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from barnabas.records.batch import (
    CODEC_MASK,
    HEADER_SIZE_V2,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_V0,
    MAGIC_V1,
    MAGIC_V2,
    NO_TIMESTAMP,
    RECORD_OVERHEAD_V0,
    RECORD_OVERHEAD_V1,
    Batch,
    read_batches,
)
from barnabas.records.builder import write_u32_be
from barnabas.records.codecs.compression import NONE, PRODUCED_SIZE_MAX
from barnabas.records.reader import each_record
from barnabas.records.record import Record
from barnabas.records.validation.validation import Append, Validated, check_records, rebuild

_KEY_SIZE_AT_V1: Final = 26


def validate_entries(append: Append, entries: list[Batch], source_codec: i64, target_codec: i64) -> Validated:
    """Checks every record in `entries`, all of one old format, and converts them to the format and codec of the topic."""
    magic: i64 = entries[0].magic
    target_magic: i64 = append.rules.target_magic
    compressed: bool = source_codec != NONE or target_codec != NONE
    in_place: bool = magic == target_magic and source_codec == target_codec
    if compressed and target_magic == MAGIC_V0:
        in_place = False  # its inner offsets are absolute and must be rewritten
    temporary_bytes: i64 = 0
    tallies: list[Tally] = []
    for entry in entries:
        tally = Tally(magic)
        check_records(append, entry, tally.counted(each_record(append.data, entry, PRODUCED_SIZE_MAX)))
        tallies.append(tally)
        if compressed:
            temporary_bytes += header_size(target_magic, entry.attributes & CODEC_MASK) + tally.size
            if magic == MAGIC_V1 and not tally.is_in_order:
                in_place = False
    if not in_place:
        return rebuild(append, entries, target_codec, temporary_bytes)
    return _stamp(append, entries, tallies, temporary_bytes)


class Tally:
    """Totals over the records of an entry. There may be millions of records, so none is kept."""

    def __init__(self, magic: i64) -> None:
        self._overhead: i64 = LOG_OVERHEAD + _overhead(magic)
        self.count: i64 = 0
        self.size: i64 = 0
        self.greatest_timestamp: i64 = NO_TIMESTAMP
        # Some older clients number inner records wrongly; Kafka has always renumbered those and not rejected them.
        self.is_in_order: bool = True

    def counted(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if record.offset != self.count:
                self.is_in_order = False
            self.count += 1
            self.size += self._overhead + max(record.key_size, 0) + max(record.value_size, 0)
            if record.timestamp > self.greatest_timestamp:
                self.greatest_timestamp = record.timestamp
            yield record


def _stamp(append: Append, entries: list[Batch], tallies: list[Tally], temporary_bytes: i64) -> Validated:
    """Sets the offset of each entry (or of the one wrapper) and, in v1, the timestamp if the topic uses LogAppendTime."""
    rules = append.rules
    by_broker: bool = rules.timestamp_type == LOG_APPEND_TIME and rules.target_magic > MAGIC_V0
    out = BytesWriter()
    last_offset: i64 = append.base_offset - 1
    max_timestamp: i64 = NO_TIMESTAMP
    offset_of_max: i64 = -1
    for entry, tally in zip(entries, tallies, strict=True):
        last_offset += tally.count
        greatest: i64 = append.now_ms if by_broker else tally.greatest_timestamp
        if greatest > max_timestamp:
            max_timestamp = greatest
            offset_of_max = last_offset
        _stamp_entry(append, entry, last_offset, greatest, out)
    if entries[0].codec != NONE:
        offset_of_max = last_offset
    stamped = out.getvalue()
    return Validated(
        [stamped],
        len(stamped),
        read_batches(stamped),
        last_offset,
        max_timestamp,
        offset_of_max,
        append.log_append_time,
        False,
        0,
        temporary_bytes,
    )


def _stamp_entry(append: Append, entry: Batch, offset: i64, timestamp: i64, out: BytesWriter) -> None:
    write_i64_be(out, offset)
    timestamp_type: i64 = append.rules.timestamp_type
    if entry.magic == MAGIC_V0 or (entry.max_timestamp == timestamp and entry.timestamp_type == timestamp_type):
        out.write(append.data[entry.at + 8 : entry.end])
        return
    checked = BytesWriter()
    checked.append(entry.magic)
    checked.append((entry.attributes & CODEC_MASK) | (LOG_APPEND_TIME_BIT if timestamp_type == LOG_APPEND_TIME else 0))
    write_i64_be(checked, timestamp)
    checked.write(append.data[entry.at + _KEY_SIZE_AT_V1 : entry.end])
    body = checked.getvalue()
    write_i32_be(out, i32(entry.size - LOG_OVERHEAD))
    write_u32_be(out, zlib.crc32(body))
    out.write(body)


def header_size(magic: i64, codec: i64) -> i64:
    if magic >= MAGIC_V2:
        return HEADER_SIZE_V2
    if codec == NONE:
        return 0
    return LOG_OVERHEAD + _overhead(magic)


def _overhead(magic: i64) -> i64:
    return RECORD_OVERHEAD_V0 if magic == MAGIC_V0 else RECORD_OVERHEAD_V1
