"""Converts fetched batches for consumers that know only message format v0 or v1, one slice at a time.

Used for Fetch responses up to version 3. It must not block the loop for a whole fetch. The result is not larger than what was read, except
for the first batch: without it the consumer would never make progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.errors import CorruptRecord, InvalidRecord, UnsupportedCompressionType
from barnabas.records.batch import MAGIC_V0, MAGIC_V1, read_intact_batches
from barnabas.records.conversion import down_convert_batch

SLICE_BYTES: Final = 128 * 1024  # of what was read, between two slices

# The beginning of a batch that is longer than the response. A consumer reports a message that is larger than its fetch size; with no bytes
# at all it would fetch the same offset for ever.
OVERFLOW: Final = (-1).to_bytes(8, "big", signed=True) + (61).to_bytes(4, "big")


def magic_for(version: int) -> int | None:
    """The newest message format that a Fetch of this version may have; None means any."""
    if version <= 1:
        return MAGIC_V0
    return MAGIC_V1 if version <= 3 else None


class DownConversion:
    """`converted` is the result after `slices()` has run to its end, with a pause after each slice. `slices()` raises
    UnsupportedCompressionType, or the error in the data, for the first batch only: batches before a bad one are delivered first."""

    def __init__(self, data: bytes, magic: int, first_offset: int) -> None:
        self._data = data
        self._magic = magic
        self._first_offset = first_offset
        self._pieces: list[bytes] = []
        self.records = 0  # how many were converted
        self.temporary_bytes = 0  # the size of the converted batches

    @property
    def converted(self) -> bytes:
        if self._pieces or not self._data:
            return b"".join(self._pieces)
        return OVERFLOW

    def slices(self) -> Iterator[None]:
        batches, damage = read_intact_batches(self._data)
        if not batches and damage is not None:
            raise damage
        size = 0
        since_pause = 0
        for batch in batches:
            try:
                piece = down_convert_batch(self._data, batch, self._magic, self._first_offset)
            except (UnsupportedCompressionType, CorruptRecord, InvalidRecord):
                if self._pieces:
                    return
                raise
            if self._pieces and size + len(piece) > len(self._data):
                return
            if piece:
                if batch.magic > self._magic:
                    self.records += max(0, batch.count)
                    self.temporary_bytes += len(piece)
                self._pieces.append(piece)
                size += len(piece)
            since_pause += batch.size
            if since_pause >= SLICE_BYTES:
                since_pause = 0
                yield
