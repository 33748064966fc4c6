"""The partition of each row, for a whole column at once: from the row, by its key, or sticky.

The partitions are those of the producer (`barnabas.client.producer.partitioners`): keys by Kafka's murmur2 over all partitions, rows
without a key sticky, so that they fill batches. The functions do not wait; the caller passes the source of randomness.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_barnabas.errors import SchemaError

Numbers = npt.NDArray[np.int64]

_SEED: Final = 0x9747B28C
_M: Final = np.uint32(0x5BD1E995)
_RECORD_OVERHEAD: Final = 12


class StickyPlaces:
    """The partitions of rows without a key: one after the other in a given order, each for `batch_size` bytes."""

    def __init__(self, available: list[int], batch_size: int, start: int) -> None:
        self._available = np.array(available, dtype=np.int64)
        self._batch_size = max(batch_size, 1)
        self._produced = 0
        self._start = start

    def place(self, sizes: Numbers) -> Numbers:
        """The partition of each row, by the rows' sizes in bytes."""
        ends = self._produced + np.cumsum(sizes + _RECORD_OVERHEAD)
        turns = (ends - (sizes + _RECORD_OVERHEAD)) // self._batch_size
        if len(ends):
            self._produced = int(ends[-1])
        chosen: Numbers = self._available[(self._start + turns) % len(self._available)]
        return chosen


def places(partitions: pa.Array | None, keys: pa.Array | None, values: pa.Array, partition_count: int, sticky: StickyPlaces) -> Numbers:
    """The partition of each row of one topic."""
    count = len(values)
    placed = np.full(count, -1, dtype=np.int64)
    if partitions is not None:
        placed = partitions.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).copy()
        given = _valid(partitions)
        wrong = given & ((placed < 0) | (placed >= partition_count))
        if wrong.any():
            raise SchemaError(
                f"partition {int(placed[wrong][0])} present in the data, but the topic has partitions 0 to {partition_count - 1} only."
            )
    open_rows = placed < 0
    if keys is not None and open_rows.any():
        by_key = open_rows & _valid(keys)
        if by_key.any():
            rows = np.flatnonzero(by_key)
            some = keys if len(rows) == count else keys.take(pa.array(rows))
            placed[rows] = (murmur2(some) & np.uint32(0x7FFFFFFF)).astype(np.int64) % partition_count
            open_rows &= ~by_key
    if open_rows.any():
        rows = np.flatnonzero(open_rows)
        placed[rows] = sticky.place(_sizes(values)[rows])
    return placed


def murmur2(column: pa.Array) -> npt.NDArray[np.uint32]:
    """Kafka's murmur2 of each byte string of a column without nulls; one iteration for each four bytes of the longest string."""
    content, starts, sizes = _bytes_of(column)
    count = len(sizes)
    hashes = (np.uint32(_SEED) ^ sizes.astype(np.uint32)).astype(np.uint32)
    words = sizes >> 2
    order = np.argsort(-words, kind="stable") if count and words.min() != words.max() else None
    if order is not None:
        hashes, starts, sizes, words = hashes[order], starts[order], sizes[order], words[order]
    with np.errstate(over="ignore"):
        hashes = _mix_words(hashes, content, starts, words)
        hashes = _mix_rest(hashes, content, starts, sizes)
        hashes ^= hashes >> np.uint32(13)
        hashes *= _M
        hashes ^= hashes >> np.uint32(15)
    if order is None:
        return hashes
    unsorted = np.empty_like(hashes)
    unsorted[order] = hashes
    return unsorted


def _mix_words(hashes: npt.NDArray[np.uint32], content: npt.NDArray[np.uint8], starts: Numbers, words: Numbers) -> npt.NDArray[np.uint32]:
    """Mixes the whole 4-byte words of all rows; the longest rows are first."""
    longest = int(words[0]) if len(words) else 0
    if longest == 0:
        return hashes
    at_any_byte = np.ndarray(shape=(len(content) - 3,), dtype="<u4", buffer=content, strides=(1,))
    active = len(words)
    for word in range(longest):
        if words[active - 1] <= word:
            active = int(np.searchsorted(-words, -word, side="left"))
        k = at_any_byte[starts[:active] + 4 * word] * _M
        k ^= k >> np.uint32(24)
        k *= _M
        hashes[:active] = (hashes[:active] * _M) ^ k
    return hashes


def _mix_rest(hashes: npt.NDArray[np.uint32], content: npt.NDArray[np.uint8], starts: Numbers, sizes: Numbers) -> npt.NDArray[np.uint32]:
    """Mixes the one to three bytes after the whole words."""
    left = sizes & 3
    ends = starts + (sizes & ~np.int64(3))
    for number in (3, 2, 1):
        rows = np.flatnonzero(left >= number)
        if len(rows):
            hashes[rows] ^= content[ends[rows] + (number - 1)].astype(np.uint32) << np.uint32(8 * (number - 1))
    rows = np.flatnonzero(left >= 1)
    if len(rows):
        hashes[rows] *= _M
    return hashes


def _bytes_of(column: pa.Array) -> tuple[npt.NDArray[np.uint8], Numbers, Numbers]:
    """The content of a binary or string column, with the start and the length of each row."""
    array = column.cast(pa.large_binary())
    _, offsets_buffer, content = array.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64, count=len(array) + 1, offset=8 * array.offset)
    octets = np.frombuffer(content, dtype=np.uint8) if content is not None and content.size else np.zeros(0, dtype=np.uint8)
    return octets, offsets[:-1], np.diff(offsets)


def _sizes(values: pa.Array) -> Numbers:
    return _bytes_of(values)[2] if values.null_count < len(values) else np.zeros(len(values), dtype=np.int64)


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    if array.null_count == 0:
        return np.ones(len(array), dtype=np.bool_)
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid
