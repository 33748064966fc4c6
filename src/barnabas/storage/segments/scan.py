# Compiled by mypyc: src/compiled.toml lists this module.
"""Reads a segment file batch by batch, in chunks.

Recovery, rebuilding of producer state and searches by time use this. A chunk is bounded, whatever length a damaged header claims. A batch
that is cut off by the end of the range ends the scan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.errors import CorruptRecord
from barnabas.records.batch import Batch, read_batches, read_intact_batches
from barnabas.storage.disk.files import AnyFile

CHUNK_BYTES: Final = 1024 * 1024
_HEADER_BYTES: Final = 17  # offset, length, leader epoch, magic: enough to compute the size of a batch


class Chunk(NamedTuple):
    """Whole batches read together. A batch is at `position + batch.at` in the file and at `batch.at` in `data`."""

    position: int
    data: bytes
    batches: list[Batch]


def scan(file: AnyFile, start: int, end: int, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """The batches between two positions of a file. Raises CorruptRecord at a damaged header, after yielding the batches before it."""
    position = start
    while position < end:
        data = file.pread(min(chunk_bytes, end - position), position)
        batches, damage = read_intact_batches(data)
        if not batches:
            if damage is not None:
                raise CorruptRecord(f"{damage}, at position {position} of {file.path}")
            needed = _whole_batch(data, end - position)
            if needed == 0:
                return
            data = file.pread(needed, position)
            batches = read_batches(data)
            if not batches:
                return
        yield Chunk(position, data, batches)
        position += batches[-1].at + batches[-1].size


def _whole_batch(data: bytes, available: int) -> int:
    """The size of a batch larger than a chunk, if the file holds all of it; else 0."""
    if len(data) < _HEADER_BYTES:
        return 0
    size = int.from_bytes(data[8:12], "big", signed=True) + 12
    return size if len(data) < size <= available else 0
