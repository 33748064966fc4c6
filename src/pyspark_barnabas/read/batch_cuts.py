"""Cuts runs of batches into pieces, and walks through files of batches, by batch headers alone.

It is between a fetch (or a file) and the decoder. A header has the number of records, the size, the compression and the last offset of its
batch. Pieces are cut so that each becomes an Arrow batch of a good size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from barnabas.records.batch import LOG_OVERHEAD, MAGIC_V2, Batch, read_intact_batches

ROWS_MAX: Final = 65_536
BYTES_MAX: Final = 4 * 1024 * 1024
COMPRESSED_FACTOR: Final = 4  # estimated decompressed bytes per compressed byte

CHUNK_BYTES: Final = 4 * 1024 * 1024
_HEADER_BYTES: Final = 17  # base offset, length, leader epoch, magic: enough to find the length of a batch

Cut = tuple[int, int]  # start and end of a piece


class ReadableFile(Protocol):
    name: str
    size: int

    def read_at(self, position: int, size: int) -> bytes: ...


class Chunk(NamedTuple):
    """Whole batches of a file, read together. A batch is at `position + batch.at` in the file and at `batch.at` in `data`."""

    position: int
    data: bytes
    batches: list[Batch]


class Damage(Exception):
    """A position in a file at which there is no valid batch."""

    def __init__(self, name: str, position: int, what: str, is_torn: bool = False) -> None:
        super().__init__(name, position, what, is_torn)
        self.is_torn = is_torn  # the file ends inside a batch, as it does while a broker writes it
        self.name = name
        self.position = position
        self.what = what

    def __str__(self) -> str:
        return f"{self.name} is damaged at position {self.position}: {self.what}"


def chunks(file: ReadableFile, start: int, end: int, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """The batches between two positions, some megabytes at a time. Raises Damage after the batches before it.

    A size in a damaged header that exceeds the file allocates nothing. Zeros at the end, from preallocated files, are the end.
    """
    position = start
    while position < end:
        data = file.read_at(position, min(chunk_bytes, end - position))
        batches, damage = read_intact_batches(data)
        if not batches:
            if damage is not None:
                if not any(data) and not any(file.read_at(position + len(data), end - position - len(data))):
                    return
                raise Damage(file.name, position, str(damage))
            size = LOG_OVERHEAD + int.from_bytes(data[8:12], "big", signed=True) if len(data) >= _HEADER_BYTES else 0
            if not len(data) < size <= end - position:
                raise Damage(file.name, position, f"the last batch is cut short, {end - position} bytes of it are there", is_torn=True)
            data = file.read_at(position, size)
            batches, damage = read_intact_batches(data)
            if not batches:
                raise Damage(file.name, position, str(damage or "the batch cannot be read"))
        yield Chunk(position, data, batches)
        position += batches[-1].at + batches[-1].size


def last_offset_of(file: ReadableFile, start: int = 0) -> int | None:
    """The last offset of the last whole batch after a position; None if there is no batch. Damage counts as the end."""
    last: int | None = None
    try:
        for chunk in chunks(file, start, file.size):
            last = chunk.batches[-1].last_offset
    except Damage:
        pass
    return last


def next_offset_and_cuts(batches: Iterable[Batch], first_offset: int, end_offset: int) -> tuple[int, list[Cut]]:
    """The offset after the last batch, at most `end_offset`; and the pieces that have records from `first_offset` on.

    A piece has at least one batch. Batches after `end_offset` are in no piece.
    """
    cuts: list[Cut] = []
    next_offset = first_offset
    start = end = rows = weight = 0
    for batch in batches:
        if batch.magic >= MAGIC_V2 and batch.base_offset >= end_offset:
            next_offset = max(first_offset, end_offset)
            break
        batch_rows = max(batch.count, 1)
        batch_weight = batch.size * COMPRESSED_FACTOR if batch.codec else batch.size
        if end > start and (rows + batch_rows > ROWS_MAX or weight + batch_weight > BYTES_MAX):
            cuts.append((start, end))
            start, rows, weight = end, 0, 0
        rows += batch_rows
        weight += batch_weight
        end = batch.at + batch.size
        next_offset = max(next_offset, min(batch.last_offset + 1, end_offset))
        if next_offset >= end_offset:
            break
    if end > start:
        cuts.append((start, end))
    return next_offset, cuts
