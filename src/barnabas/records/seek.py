# Compiled by mypyc: src/compiled.toml lists this module.
"""Finds the batch that contains an offset, without decoding records.

Every fetch uses this loop: the index gives a position before the batch, and the loop walks headers from there.
"""

from __future__ import annotations

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from barnabas.errors import CorruptRecord
from barnabas.records.batch import HEADER_SIZE_V2, LOG_OVERHEAD, MAGIC_AT, MAGIC_V2, RECORD_OVERHEAD_V0


def seek_offset(data: bytes, target: i64, remaining: i64) -> tuple[i64, i64, i64]:
    """Walks the headers in `data` to the first batch whose last offset is at least `target`.

    `data` need not hold whole batches, only headers: `remaining` is the number of bytes of the file from the start of `data` on.
    Returns (position in data, batch size, last offset). A size of 0 means not found yet: the caller reads on at that position, unless
    it leaves no room for another batch.
    """
    at: i64 = 0
    held: i64 = len(data)
    while at + MAGIC_AT < held:
        length: i64 = i64(read_i32_be(data, at + 8))
        if length < RECORD_OVERHEAD_V0:
            raise CorruptRecord(f"Found record size {length} smaller than minimum record overhead ({RECORD_OVERHEAD_V0})")
        size: i64 = LOG_OVERHEAD + length
        if at + size > remaining:
            return remaining, 0, -1
        last_offset: i64 = read_i64_be(data, at)
        if data[at + MAGIC_AT] == MAGIC_V2:
            if at + HEADER_SIZE_V2 > held:
                return at, 0, -1
            last_offset += i64(read_i32_be(data, at + 23))
        if last_offset >= target:
            return at, size, last_offset
        at += size
    return at, 0, -1
