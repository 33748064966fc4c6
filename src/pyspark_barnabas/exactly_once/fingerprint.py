"""A checksum of a set of rows that does not depend on their order or their tasks, to recognise a replayed batch.

It is the sum modulo 2**64 of a hash of each row over its topic, key and value; timestamps may differ between runs. It finds mistakes, and
is no protection against an attacker. Short contents are hashed a word at a time for all rows together, long ones one by one.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]

SHORT_MAX: Final = 256  # above this size a checksum in C is faster than numpy
ROWS_TOGETHER: Final = 8192  # sized for the processor's cache

_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_MASK: Final = 2**64 - 1
_PHI: Final = 0x9E3779B97F4A7C15


def fingerprint(batch: pa.RecordBatch, topic: str | None) -> int:
    total = 0
    for start in range(0, batch.num_rows, ROWS_TOGETHER):
        total += _fingerprint(batch.slice(start, ROWS_TOGETHER), topic)
    return total & _MASK


def _fingerprint(batch: pa.RecordBatch, topic: str | None) -> int:
    columns = {name.lower(): batch.column(index) for index, name in enumerate(batch.schema.names)}
    with np.errstate(over="ignore"):
        if topic is None:
            hashes = _hashes(columns["topic"])
        else:
            hashes = _hashes(pa.array([topic])).repeat(batch.num_rows)
        for name in ("key", "value"):
            column = columns.get(name)
            if column is not None:
                hashes = _mixed(hashes) + _hashes(column)
        return int(_mixed(hashes).sum(dtype=np.uint64))


def _hashes(column: pa.Array) -> Hashes:
    if column.null_count == len(column):
        return np.full(len(column), _NULL, dtype=np.uint64)
    array = column.cast(pa.large_binary())
    _, offsets_buffer, content = array.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64, count=len(array) + 1, offset=8 * array.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    used = memoryview(content)[first:last] if last > first else memoryview(b"")
    starts, sizes = offsets[:-1] - first, np.diff(offsets)
    hashes = sizes.astype(np.uint64)
    short = np.flatnonzero(sizes <= SHORT_MAX)
    if len(short) == len(sizes):
        hashes = _hash_words(hashes, used, starts, sizes)
    else:
        hashes[short] = _hash_words(hashes[short], used, starts[short], sizes[short])
        for row in np.flatnonzero(sizes > SHORT_MAX).tolist():
            start = int(starts[row])
            hashes[row] ^= np.uint64(crc32(used[start : start + int(sizes[row])]) << 32)
    if array.null_count:
        hashes[array.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _hash_words(hashes: Hashes, content: memoryview, starts: Numbers, sizes: Numbers) -> Hashes:
    """The sum of the words of a row, each multiplied by the weight of its position."""
    if len(sizes) == 0 or int(sizes.max()) == 0:
        return hashes
    if int(sizes.min()) == int(sizes.max()) and len(content) == len(sizes) * int(sizes[0]):
        return hashes + _sums_of_equal(content, int(sizes[0]))
    return hashes + _sums(content, starts, sizes)


def _sums_of_equal(content: memoryview, size: int) -> Hashes:
    """For rows of equal size without gaps, such as numbers and identifiers."""
    rows: npt.NDArray[np.uint8] = np.frombuffer(content, dtype=np.uint8).reshape(-1, size)
    words = (size + 7) >> 3
    if size & 7:
        padded = np.zeros((len(rows), 8 * words), dtype=np.uint8)
        padded[:, :size] = rows
        rows = padded
    sums: Hashes = np.einsum("ij,j->i", rows.view("<u8"), _WEIGHTS[:words])  # in one pass, without an intermediate array
    return sums


def _sums(content: memoryview, starts: Numbers, sizes: Numbers) -> Hashes:
    """Eight bytes of each row at a time; the longest rows are first, so that rows with more words are a slice."""
    order = np.argsort(-sizes, kind="stable")
    starts, sizes = starts[order], sizes[order]
    sums = np.zeros(len(sizes), dtype=np.uint64)
    at_any_byte = np.ndarray(shape=(len(content) + 1,), dtype="<u8", buffer=bytes(content) + bytes(8), strides=(1,))
    for word in range((int(sizes[0]) + 7) >> 3):
        at = 8 * word
        active, whole = (int(np.searchsorted(-sizes, -limit, side="left")) for limit in (at, at + 7))
        read = at_any_byte[starts[:active] + at]
        left = (sizes[whole:active] - at).astype(np.uint64)
        read[whole:] &= np.uint64(_MASK) >> (np.uint64(64) - left * np.uint64(8))
        read *= _WEIGHTS[word]
        sums[:active] += read
    unsorted = np.empty_like(sums)
    unsorted[order] = sums
    return unsorted


def _mixed(hashes: Hashes) -> Hashes:
    """Spreads each number over all 64 bits, one to one."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


def _weights() -> Hashes:
    """Fixed pseudo-random odd numbers."""
    with np.errstate(over="ignore"):
        return _mixed(np.arange(1, SHORT_MAX // 8 + 1, dtype=np.uint64) * np.uint64(_PHI)) | np.uint64(1)


_WEIGHTS: Final = _weights()
