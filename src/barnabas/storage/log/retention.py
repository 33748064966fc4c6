"""Which old segments a log may delete, and why.

These functions change nothing; `segment_removal` deletes. Segments are deleted from the oldest on, up to the first that must stay and never
beyond the high watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log
    from barnabas.storage.segments.segment import Segment

Breach = Callable[["Segment", "Segment | None"], bool]


def breaches(log: Log, now_ms: int) -> Iterator[tuple[str, list[Segment]]]:
    """Each reason with the segments to delete for it. The caller deletes them before it takes the next reason."""
    yield f"log start offset {log.log_start_offset} breach", deletable(log, _before_log_start(log))
    if log.config.delete:
        if 0 <= log.config.retention_bytes <= log.size:
            yield f"log retention size {log.config.retention_bytes} breach", deletable(log, _over_size(log))
        if log.config.retention_ms >= 0:
            yield f"log retention time {log.config.retention_ms}ms breach", deletable(log, _too_old(log, now_ms))


def deletable(log: Log, breach: Breach) -> list[Segment]:
    oldest: list[Segment] = []
    segments = list(log.segments)
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        upper_bound = following.base_offset if following else log.log_end_offset
        empty_active = following is None and segment.size == 0
        if log.high_watermark < upper_bound or empty_active or not breach(segment, following):
            break
        oldest.append(segment)
    return oldest


def _before_log_start(log: Log) -> Breach:
    return lambda _, following: following is not None and following.base_offset <= log.log_start_offset


def _too_old(log: Log, now_ms: int) -> Breach:
    return lambda segment, _: now_ms - segment.largest_timestamp > log.config.retention_ms


def _over_size(log: Log) -> Breach:
    excess = log.size - log.config.retention_bytes

    def breach(segment: Segment, _: Segment | None) -> bool:
        nonlocal excess
        if excess - segment.size < 0:
            return False
        excess -= segment.size
        return True

    return breach
