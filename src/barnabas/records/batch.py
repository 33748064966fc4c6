# Compiled by mypyc: src/compiled.toml lists this module.
"""The header of one batch of any format.

A log, a produce request and a fetch response all consist of batches one after another. This module finds where each begins and ends and
reads its header, never its records. It is the innermost loop of the broker: appends, fetches, recovery and replication all use it.

Layout of format v2 (big endian; v0 and v1 share the first 12 bytes and the place of the magic byte):

     0  base offset      i64     21  attributes         i16     43  producer id      i64
     8  length           i32     23  last offset delta  i32     51  producer epoch   i16
    12  leader epoch     i32     27  base timestamp     i64     53  base sequence    i32
    16  magic            i8      35  max timestamp      i64     57  record count     i32
    17  crc-32c          u32                                    61  records
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from barnabas.errors import CorruptRecord

MAGIC_V0: Final = 0
MAGIC_V1: Final = 1
MAGIC_V2: Final = 2

LOG_OVERHEAD: Final = 12  # offset and length, before every entry of every format
MAGIC_AT: Final = 16  # the same in every format
HEADER_SIZE_V2: Final = 61
RECORD_OVERHEAD_V0: Final = 14
RECORD_OVERHEAD_V1: Final = 22

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

NO_TIMESTAMP_TYPE: Final = -1
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

SEQUENCE_MAX: Final = 2**31 - 1


class Batch:
    """A batch header, and the position of the batch in the bytes from which it was read.

    In formats v0 and v1 a "batch" is one entry: a single record, or a wrapper whose value holds compressed records. Its offset is that of
    its last record, so `base_offset` equals `last_offset`. `count` is -1 for a wrapper, whose records are counted only by decompressing.
    """

    def __init__(
        self,
        at: i64,
        size: i64,
        magic: i64,
        attributes: i64,
        crc: i64,
        base_offset: i64,
        last_offset: i64,
        leader_epoch: i64,
        base_timestamp: i64,
        max_timestamp: i64,
        producer_id: i64,
        producer_epoch: i64,
        base_sequence: i64,
        count: i64,
    ) -> None:
        self.at = at
        self.size = size
        self.magic = magic
        self.attributes = attributes
        self.crc = crc
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.leader_epoch = leader_epoch
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.count = count

    @property
    def end(self) -> i64:
        return self.at + self.size

    @property
    def next_offset(self) -> i64:
        return self.last_offset + 1

    @property
    def codec(self) -> i64:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> i64:
        if self.magic == MAGIC_V0:
            return NO_TIMESTAMP_TYPE
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.magic >= MAGIC_V2 and (self.attributes & TRANSACTIONAL_BIT) != 0

    @property
    def is_control(self) -> bool:
        return self.magic >= MAGIC_V2 and (self.attributes & CONTROL_BIT) != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def delete_horizon_ms(self) -> i64:
        """When the tombstones in this batch may be removed; -1 until compaction sets it (until then the field is the base timestamp)."""
        if self.magic >= MAGIC_V2 and self.attributes & DELETE_HORIZON_BIT:
            return self.base_timestamp
        return NO_TIMESTAMP

    @property
    def last_sequence(self) -> i64:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset - self.base_offset)


def increment_sequence(sequence: i64, increment: i64) -> i64:
    """Sequences wrap from 2**31 - 1 to 0."""
    total: i64 = sequence + increment
    if total > SEQUENCE_MAX:
        return total - SEQUENCE_MAX - 1
    return total


def entry_size(data: bytes, at: i64, end: i64) -> i64:
    """The size of the entry at `at`, log overhead included; 0 if the entry is not complete before `end`.

    Raises CorruptRecord for a length that no format allows or an unknown magic, before anything is allocated for it.
    """
    if at + LOG_OVERHEAD + 5 > end:  # the magic byte is needed too
        return 0
    length: i64 = i64(read_i32_be(data, at + 8))
    magic: i64 = data[at + MAGIC_AT]
    least: i64
    if magic == MAGIC_V2:
        least = HEADER_SIZE_V2 - LOG_OVERHEAD
    elif magic == MAGIC_V1:
        least = RECORD_OVERHEAD_V1
    elif magic == MAGIC_V0:
        least = RECORD_OVERHEAD_V0
    else:
        raise CorruptRecord(f"Invalid magic {magic} at byte {at} of the records")
    if length < least:
        raise CorruptRecord(f"Found record size {length} smaller than minimum record overhead ({least}) at byte {at} of the records")
    if at + LOG_OVERHEAD + length > end:
        return 0
    return LOG_OVERHEAD + length


def read_batch(data: bytes, at: i64, size: i64) -> Batch:
    """The header of the entry at `at`, with the size that `entry_size` returned."""
    base_offset: i64 = read_i64_be(data, at)
    magic: i64 = data[at + MAGIC_AT]
    if magic == MAGIC_V2:
        return Batch(
            at,
            size,
            magic,
            i64(read_i16_be(data, at + 21)),
            i64(read_i32_be(data, at + 17)) & 0xFFFFFFFF,
            base_offset,
            base_offset + i64(read_i32_be(data, at + 23)),
            i64(read_i32_be(data, at + 12)),
            read_i64_be(data, at + 27),
            read_i64_be(data, at + 35),
            read_i64_be(data, at + 43),
            i64(read_i16_be(data, at + 51)),
            i64(read_i32_be(data, at + 53)),
            i64(read_i32_be(data, at + 57)),
        )
    attributes: i64 = data[at + 17]
    timestamp: i64 = NO_TIMESTAMP
    if magic == MAGIC_V1:
        timestamp = read_i64_be(data, at + 18)
    return Batch(
        at,
        size,
        magic,
        attributes,
        i64(read_i32_be(data, at + 12)) & 0xFFFFFFFF,
        base_offset,
        base_offset,
        NO_LEADER_EPOCH,
        timestamp,
        timestamp,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        -1 if attributes & CODEC_MASK else 1,
    )


def each_batch(data: bytes) -> Iterator[Batch]:
    """As `read_batches`, one by one. Raises CorruptRecord at a damaged header, after yielding the batches before it."""
    end: i64 = len(data)
    at: i64 = 0
    while True:
        size: i64 = entry_size(data, at, end)
        if size == 0:
            return
        yield read_batch(data, at, size)
        at += size


def read_batches(data: bytes, start: i64 = 0, end: i64 = -1) -> list[Batch]:
    """Every complete batch in `data[start:end]`; an incomplete last one is left out, as readers of a fetch response must do."""
    batches, damage = read_intact_batches(data, start, end)
    if damage is not None:
        raise damage
    return batches


def read_intact_batches(data: bytes, start: i64 = 0, end: i64 = -1) -> tuple[list[Batch], CorruptRecord | None]:
    """The batches before the first damaged header, and the error for that header; None if no header is damaged."""
    stop: i64 = end if end >= 0 else len(data)
    batches: list[Batch] = []
    at: i64 = start
    while True:
        try:
            size = entry_size(data, at, stop)
        except CorruptRecord as damage:
            return batches, damage
        if size == 0:
            return batches, None
        batches.append(read_batch(data, at, size))
        at += size
