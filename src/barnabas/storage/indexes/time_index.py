# Compiled by mypyc: src/compiled.toml lists this module.
"""Maps timestamps to offsets in one segment (`.timeindex`).

An entry of 12 bytes holds the largest timestamp so far and the offset of its batch, relative to the base offset: no record before that
offset has a larger timestamp. Timestamps rise strictly from entry to entry, although those of the records need not.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from barnabas.errors import CorruptIndex, IndexEntryOutOfOrder
from barnabas.records.batch import NO_TIMESTAMP
from barnabas.storage.indexes.index import Index

TIMESTAMP: Final = 0
OFFSET: Final = 1


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex(Index[TimestampOffset]):
    entry_size = 12
    layout = struct.Struct(">qi")
    _kind = "time index"
    _offset_column = OFFSET

    _last_entry = TimestampOffset(NO_TIMESTAMP, 0)

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; NO_TIMESTAMP and the base offset if there is none."""
        self.load()
        return self._last_entry

    @property
    def is_full(self) -> bool:
        """One slot is reserved for the largest timestamp, which is appended when the segment is rolled."""
        return self.entries >= self.max_entries - 1

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool = False) -> None:
        """Appends if the timestamp is larger than the last. The same entry again is skipped: a roll and a close both append it."""
        if not skip_full_check and self.is_full:
            raise ValueError(f"Attempt to append to a full time index (size = {self._entries}).")
        last = self.last_entry
        if self._entries and offset < last.offset:
            raise IndexEntryOutOfOrder(
                f"Attempt to append an offset ({offset}) to slot {self._entries} no larger than the last offset appended"
                f" ({last.offset}) to {self.path}"
            )
        if self._entries and timestamp < last.timestamp:
            raise ValueError(
                f"Attempt to append a timestamp ({timestamp}) to slot {self._entries} no larger than the last timestamp appended"
                f" ({last.timestamp}) to {self.path}"
            )
        if timestamp > last.timestamp:
            relative_offset = self._relative_offset(offset)
            self._last_entry = TimestampOffset(timestamp, offset)
            self._append(timestamp, relative_offset)

    def lookup(self, target: int) -> TimestampOffset:
        """The entry with the largest timestamp up to the target; NO_TIMESTAMP and the base offset if there is none."""
        slot = self._floor(TIMESTAMP, target)
        return TimestampOffset(NO_TIMESTAMP, self.base_offset) if slot < 0 else self._parse(self._raw(slot))

    def lookup_ceiling(self, target: int) -> TimestampOffset | None:
        """The entry with the smallest timestamp from the target on."""
        slot = self._ceiling(TIMESTAMP, target)
        return None if slot < 0 else self._parse(self._raw(slot))

    def sanity_check(self) -> None:
        last = self.last_entry
        about = f"Corrupt time index found, time index file ({self.path}) has non-zero size but the last"
        if self._entries and last.timestamp < self._raw(0)[TIMESTAMP]:
            raise CorruptIndex(f"{about} timestamp is {last.timestamp} which is less than the first timestamp {self._raw(0)[TIMESTAMP]}")
        if self._entries and last.offset < self.base_offset:
            raise CorruptIndex(f"{about} offset is {last.offset} which is less than the first offset {self.base_offset}")
        self._check_whole_entries("Time index file")
        if self._entries > 1:
            before = self._parse(self._raw(self._entries - 2))
            if last.timestamp <= before.timestamp or last.offset < before.offset:
                raise CorruptIndex(f"{about} entry {last} is not above the one before, {before}")

    def _parse(self, raw: tuple[int, int]) -> TimestampOffset:
        return TimestampOffset(raw[TIMESTAMP], self.base_offset + raw[OFFSET])

    def _last_entry_changed(self) -> None:
        if self._entries:
            self._last_entry = self._parse(self._raw(self._entries - 1))
        else:
            self._last_entry = TimestampOffset(NO_TIMESTAMP, self.base_offset)
