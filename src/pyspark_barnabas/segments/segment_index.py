"""Offset indexes of segment files, for the planning of the direct reader and the audit: a position at or before the batch of an offset.

An index only saves reading: if it has no entry or was not copied, a segment is read from its beginning.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pyspark_barnabas.segments.file_store import FileStore
from pyspark_barnabas.segments.log_dirs import SMALL_FILE_BYTES_MAX, SegmentFiles

_ENTRY: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])


def read_index(store: FileStore, segment: SegmentFiles) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and positions of the offset index, up to the first that does not rise: Kafka fills the index of an active segment with
    zeros."""
    data = b"" if segment.index is None else store.read(segment.index, SMALL_FILE_BYTES_MAX)
    entries = np.frombuffer(data, dtype=_ENTRY, count=len(data) // _ENTRY.itemsize)
    offsets = entries["offset"].astype(np.int64) + segment.base_offset
    positions = entries["position"].astype(np.int64)
    rising = np.flatnonzero(np.diff(positions) <= 0)
    count = int(rising[0]) + 1 if len(rising) else len(positions)
    if count and positions[0] == 0 and offsets[0] == segment.base_offset and count == 1:
        count = 0  # only zeros
    inside = positions[:count] < segment.size
    return offsets[:count][inside], positions[:count][inside]


def last_indexed_position(store: FileStore, segment: SegmentFiles) -> int:
    _, positions = read_index(store, segment)
    return int(positions[-1]) if len(positions) else 0


def position_before(store: FileStore, segment: SegmentFiles, offset: int) -> int:
    """The start of a batch at or before the batch with this offset."""
    if offset <= segment.base_offset:
        return 0
    offsets, positions = read_index(store, segment)
    # An entry has the last offset of the batch at its position: the offset is in that batch or after it.
    before = int(np.searchsorted(offsets, offset, side="left")) - 1
    return int(positions[before]) if before >= 0 else 0
