"""Segments on a simulated disk."""

from __future__ import annotations

from barnabas.records.batch import read_batches
from barnabas.records.reader import records_of
from barnabas.simulation.disk import SimulatedFiles
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.segment import Segment, SegmentRead
from tests.unit.storage.logs import (
    NOW,
    batch,
    make_segment,
)


def put(segment: Segment, data: bytes) -> None:
    """Writes batches as one append."""
    segment.append([data], read_batches(data))


def filled(disk: SimulatedFiles, count: int, *, base_offset: int = 0, settings: LogConfig | None = None, size: int = 100) -> Segment:
    """So many batches of one record, one per append, a second apart."""
    segment = make_segment(disk, base_offset, settings)
    for n in range(count):
        put(segment, batch([b"%d" % (base_offset + n)], offset=base_offset + n, timestamp=NOW + 1000 * n, size=size))
    return segment


def reopened(disk: SimulatedFiles, base_offset: int = 0, settings: LogConfig | None = None) -> Segment:
    return make_segment(disk, base_offset, settings, create=False)


def offsets(read: SegmentRead | None) -> list[int]:
    assert read is not None
    return [] if read.records is None else [record.offset for record in records_of(read.records.read())]
