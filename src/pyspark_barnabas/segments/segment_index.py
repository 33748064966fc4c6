"""Offset indexes of segment files, as the direct reader and the audit's planning use them: where a batch with an offset may begin.

An index is a help and never an authority: where it says nothing, or was not copied along, a segment is read from its beginning.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pyspark_barnabas.segments.file_store import FileStore
from pyspark_barnabas.segments.log_dirs import SMALL_FILE_BYTES_MAX, SegmentFiles

_ENTRY: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])


def read_index(store: FileStore, segment: SegmentFiles) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and positions of the offset index, as far as they rise: Kafka fills the file of an active segment up with zeros."""
    data = b"" if segment.index is None else store.read(segment.index, SMALL_FILE_BYTES_MAX)
    entries = np.frombuffer(data, dtype=_ENTRY, count=len(data) // _ENTRY.itemsize)
    offsets = entries["offset"].astype(np.int64) + segment.base_offset
    positions = entries["position"].astype(np.int64)
    rising = np.flatnonzero(np.diff(positions) <= 0)
    count = int(rising[0]) + 1 if len(rising) else len(positions)
    if count and positions[0] == 0 and offsets[0] == segment.base_offset and count == 1:
        count = 0  # nothing but zeros
    inside = positions[:count] < segment.size
    return offsets[:count][inside], positions[:count][inside]


def last_indexed_position(store: FileStore, segment: SegmentFiles) -> int:
    _, positions = read_index(store, segment)
    return int(positions[-1]) if len(positions) else 0


def position_before(store: FileStore, segment: SegmentFiles, offset: int) -> int:
    """Where a batch begins that is not behind the one with this offset."""
    if offset <= segment.base_offset:
        return 0
    offsets, positions = read_index(store, segment)
    # An entry names the last offset of the batch that begins at its position: what is wanted is there or behind.
    before = int(np.searchsorted(offsets, offset, side="left")) - 1
    return int(positions[before]) if before >= 0 else 0
