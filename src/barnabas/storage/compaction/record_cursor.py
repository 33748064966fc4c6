# Compiled by mypyc: src/compiled.toml lists this module.
"""Walks the records of a v2 batch for compaction: where each begins and ends, its key, and whether it has a value.

The cursor creates no object per record and does not parse headers, which compaction copies unchanged. Every position it reports is inside
its record.
"""

from __future__ import annotations

from mypy_extensions import i64

from barnabas.errors import CorruptRecord
from barnabas.records.codecs.varint import read_varint, read_varlong


class RecordCursor:
    """Begins before the first record; `advance` moves to the next, which must exist."""

    def __init__(self, body: bytes, start: i64, end: i64) -> None:
        self.body = body
        self.end = end  # of the last record
        self.record_at: i64 = start  # the position of the record's size field
        self.record_end: i64 = start
        self.timestamp_delta: i64 = 0
        self.offset_delta: i64 = 0
        self.content_at: i64 = start  # the position of the key size, from where no field depends on the batch
        self.key_at: i64 = start
        self.key_size: i64 = -1
        self.has_value: bool = False
        self._at: i64 = start

    @property
    def key(self) -> bytes:
        return self.body[self.key_at : self.key_at + self.key_size]

    def advance(self) -> None:
        self.record_at = self._at = self.record_end
        self.record_end = self.end
        size: i64 = self._varint()
        if size < 1 or size > self.end - self._at:
            raise CorruptRecord(f"A record of {size} bytes does not fit in the {self.end - self._at} bytes left of its batch")
        self.record_end = self._at + size
        self._at += 1  # attributes, which are not used in this format
        self.timestamp_delta = self._varlong()
        self.offset_delta = self._varint()
        self.content_at = self._at
        self.key_size = self._varint()
        self.key_at = self._at
        if self.key_size > 0:
            self._at += self.key_size
        value_size: i64 = self._varint()
        self.has_value = value_size >= 0
        if value_size > self.record_end - self._at:
            raise CorruptRecord(f"A value of {value_size} bytes does not fit in the {self.record_end - self._at} bytes left of its record")

    def _varint(self) -> i64:
        at: i64 = self._at
        if at >= self.record_end:
            raise CorruptRecord("A record ends before its fields do")
        byte: i64 = self.body[at]
        if byte < 0x80:  # as nearly always
            self._at = at + 1
            return (byte >> 1) ^ -(byte & 1)
        value, self._at = read_varint(self.body, at)
        return value

    def _varlong(self) -> i64:
        at: i64 = self._at
        if at >= self.record_end:
            raise CorruptRecord("A record ends before its fields do")
        byte: i64 = self.body[at]
        if byte < 0x80:
            self._at = at + 1
            return (byte >> 1) ^ -(byte & 1)
        value, self._at = read_varlong(self.body, at)
        return value
