# Compiled by mypyc: src/compiled.toml lists this module.
"""Maps offsets to positions in the log file of one segment (`.index`).

An entry of 8 bytes holds the last offset of a batch, relative to the base offset, and the position where the batch starts. The index is
sparse, one entry per index.interval.bytes, so a lookup returns the position from which to walk.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from barnabas.errors import CorruptIndex, IndexEntryOutOfOrder
from barnabas.storage.indexes.index import Index

POSITION_MAX: Final = 2**31 - 1
OFFSET: Final = 0
POSITION: Final = 1


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class OffsetIndex(Index[OffsetPosition]):
    entry_size = 8
    layout = struct.Struct(">ii")
    _kind = "index"
    _offset_column = OFFSET

    _last_offset = 0

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset if there is none."""
        self.load()
        return self._last_offset

    def append(self, offset: int, position: int) -> None:
        if self.is_full:
            raise ValueError(f"Attempt to append to a full index (size = {self._entries}).")
        if self._entries and offset <= self._last_offset:
            raise IndexEntryOutOfOrder(
                f"Attempt to append an offset {offset} to position {self._entries} no larger than the last offset appended"
                f" ({self._last_offset}) to {self.path}"
            )
        relative_offset = self._relative_offset(offset)
        if not 0 <= position <= POSITION_MAX:
            raise ValueError(f"Attempt to append position {position} to index {self.path}")
        self._last_offset = offset
        self._append(relative_offset, position)

    def lookup(self, target: int) -> OffsetPosition:
        """The entry with the largest offset up to the target, or the start of the segment."""
        slot = self._floor(OFFSET, target - self.base_offset)
        return OffsetPosition(self.base_offset, 0) if slot < 0 else self._parse(self._raw(slot))

    def lookup_ceiling(self, target: int) -> OffsetPosition | None:
        """The entry with the smallest offset from the target on."""
        slot = self._ceiling(OFFSET, target - self.base_offset)
        return None if slot < 0 else self._parse(self._raw(slot))

    def fetch_upper_bound(self, start: OffsetPosition, fetch_size: int) -> OffsetPosition | None:
        """The first entry that a fetch of this size from `start` cannot reach: at or after its end."""
        slot = self._ceiling(POSITION, start.position + fetch_size)
        return None if slot < 0 else self._parse(self._raw(slot))

    def sanity_check(self) -> None:
        if self.entries and self.last_offset < self.base_offset:
            raise CorruptIndex(
                f"Corrupt index found, index file {self.path} has non-zero size but the last offset is {self._last_offset}"
                f" which is less than the base offset {self.base_offset}"
            )
        self._check_whole_entries("Index file")
        if self._entries > 1 and self.entry(self._entries - 2).offset >= self._last_offset:
            raise CorruptIndex(
                f"Corrupt index found, index file {self.path}: the last offset {self._last_offset} is not above the one before"
            )

    def _parse(self, raw: tuple[int, int]) -> OffsetPosition:
        return OffsetPosition(self.base_offset + raw[OFFSET], raw[POSITION])

    def _last_entry_changed(self) -> None:
        self._last_offset = self.base_offset + (self._raw(self._entries - 1)[OFFSET] if self._entries else 0)
