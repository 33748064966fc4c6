"""Reads the leader epochs of a log from its batches, if its leader-epoch-checkpoint is lost or damaged."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from barnabas.errors import CorruptRecord
from barnabas.records.batch import MAGIC_V2, Batch
from barnabas.storage.leader_epochs import LeaderEpochCache
from barnabas.storage.segments.scan import scan
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segments import Segments

FIRST_BYTES: Final = 4096  # a larger first batch is read whole


def find_epochs(epochs: LeaderEpochCache, segments: Segments) -> None:
    """Fills the cache and writes its file. Epochs only grow, so a segment is read to its end only if the next one begins with another
    epoch; of all others only the first batch is read."""
    epochs.clear()
    listed = list(segments)
    firsts = [_first_batch(segment) for segment in listed]
    for segment, first, following in zip(listed, firsts, [*firsts[1:], None], strict=True):
        if first is None:
            continue
        _note(epochs, first)
        if following is None or following.leader_epoch != first.leader_epoch:
            with suppress(CorruptRecord):  # records behind damage are not served either
                for chunk in segment.chunks():
                    for batch in chunk.batches:
                        _note(epochs, batch)
    epochs.take_write().run()


def _first_batch(segment: Segment) -> Batch | None:
    with suppress(CorruptRecord):
        for chunk in scan(segment.file, 0, segment.size, FIRST_BYTES):
            return chunk.batches[0]
    return None


def _note(epochs: LeaderEpochCache, batch: Batch) -> None:
    if batch.magic >= MAGIC_V2 and batch.leader_epoch > epochs.latest_epoch:
        epochs.assign(int(batch.leader_epoch), int(batch.base_offset))
