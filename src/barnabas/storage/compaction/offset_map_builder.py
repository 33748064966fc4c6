# Compiled by mypyc: src/compiled.toml lists this module.
"""The first pass of compaction: puts the keys of the dirty part of a log into the offset map, until it is full.

Records of aborted transactions and markers are left out: a value that was not committed must not supersede a committed one.
"""

from __future__ import annotations

from mypy_extensions import i64

from barnabas.records.batch import MAGIC_V2, Batch
from barnabas.records.crc import ensure_valid
from barnabas.records.reader import each_record, records_body
from barnabas.storage.compaction.cleaned_transactions import CleanedTransactions
from barnabas.storage.compaction.offset_map import SkimpyOffsetMap
from barnabas.storage.compaction.record_cursor import RecordCursor


class OffsetMapBuilder:
    def __init__(self, offsets: SkimpyOffsetMap, transactions: CleanedTransactions, first_dirty_offset: i64, keys_max: i64) -> None:
        self.offsets = offsets
        self.messages_read: i64 = 0
        self._transactions = transactions
        self._first_dirty_offset = first_dirty_offset
        self._keys_max = keys_max

    def add(self, data: bytes, batch: Batch) -> bool:
        """Adds the keys of a batch; returns False if the map became full before the end of the batch."""
        ensure_valid(data, batch)
        if self._transactions.can_discard(data, batch) or batch.is_control:
            self.messages_read += batch.count
        elif not (self._add_records(data, batch) if batch.magic >= MAGIC_V2 else self._add_legacy(data, batch)):
            return False
        self.offsets.latest_offset = batch.last_offset
        return True

    def _add_records(self, data: bytes, batch: Batch) -> bool:
        body, start, end = records_body(data, batch)
        cursor = RecordCursor(body, start, end)
        left: i64 = batch.count
        while left > 0:
            cursor.advance()
            if cursor.key_size >= 0 and not self._put(cursor.key, batch.base_offset + cursor.offset_delta):
                return False
            self.messages_read += 1
            left -= 1
        return True

    def _add_legacy(self, data: bytes, batch: Batch) -> bool:
        for record in each_record(data, batch):
            key = record.key
            if key is not None and not self._put(key, record.offset):
                return False
            self.messages_read += 1
        return True

    def _put(self, key: bytes, offset: i64) -> bool:
        if offset < self._first_dirty_offset:
            return True
        if self.offsets.size >= self._keys_max:
            return False
        self.offsets.put(key, offset)
        return True
