"""Which part of a log can be compacted, and how dirty the log is.

These functions change nothing; the cleaner manager compares their results for all logs and picks one.

    log start offset ── clean ──▶ first dirty offset ── dirty ──▶ first uncleanable offset ── not yet ──▶ log end offset
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from barnabas.storage.log.log import Log
from barnabas.storage.segments.segment import Segment

_log = logging.getLogger(__name__)


class OffsetsToClean(NamedTuple):
    """The dirty range, up to but not including `first_uncleanable_offset`. `reset` says that the checkpoint was outside the log."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    reset: bool


class LogToClean(NamedTuple):
    log: Log
    first_dirty_offset: int
    first_uncleanable_offset: int  # the base offset of a segment: segments are cleaned whole
    clean_bytes: int
    cleanable_bytes: int
    compaction_delay_ms: int  # how long ago max.compaction.lag.ms ran out; 0 if it has not

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    def cleanable_ratio(self) -> float:
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def is_due(self) -> bool:
        """Whether the log is dirty enough, or holds records that max.compaction.lag.ms says must be compacted."""
        if self.cleanable_bytes > 0 and self.compaction_delay_ms > 0:
            return True
        return self.cleanable_ratio > self.log.config.min_cleanable_dirty_ratio


def log_to_clean(log: Log, offsets: OffsetsToClean, now_ms: int) -> LogToClean:
    first_dirty = offsets.first_dirty_offset
    uncleanable = next(iter(_closed_segments(log, offsets.first_uncleanable_offset)), log.active_segment).base_offset
    return LogToClean(
        log,
        first_dirty,
        uncleanable,
        clean_bytes=sum(segment.size for segment in log.segments.between(-1, first_dirty)),
        cleanable_bytes=sum(segment.size for segment in log.segments.between(min(first_dirty, uncleanable), uncleanable)),
        compaction_delay_ms=_compaction_delay_ms(log, first_dirty, now_ms),
    )


def offsets_to_clean(log: Log, checkpoint: int | None, now_ms: int) -> OffsetsToClean:
    first_dirty, reset = _first_dirty_offset(log, checkpoint)
    # Not cleaned: the active segment, open transactions, records above the high watermark, and records younger than min.compaction.lag.ms.
    bounds = [log.last_stable_offset, log.active_segment.base_offset]
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        bounds += [s.base_offset for s in _closed_segments(log, first_dirty) if s.largest_timestamp > now_ms - lag_ms][:1]
    return OffsetsToClean(first_dirty, max(first_dirty, min(bounds)), reset)


def _first_dirty_offset(log: Log, checkpoint: int | None) -> tuple[int, bool]:
    start = log.log_start_offset
    if checkpoint is None:
        return start, False
    if checkpoint < start:
        if not log.config.delete:  # with delete, retention moves the log start offset all the time
            _log.warning(
                "Resetting first dirty offset of %s to log start offset %d since the checkpointed offset %d is invalid.",
                log.partition,
                start,
                checkpoint,
            )
        return start, True
    if checkpoint > log.log_end_offset:
        _log.warning(
            "The last checkpoint dirty offset for partition %s is %d, which is larger than the log end offset %d. "
            "Resetting to the log start offset %d.",
            log.partition,
            checkpoint,
            log.log_end_offset,
            start,
        )
        return start, True
    return checkpoint, False


def _compaction_delay_ms(log: Log, first_dirty_offset: int, now_ms: int) -> int:
    clean_until_ms = now_ms - log.config.max_compaction_lag_ms
    if clean_until_ms <= 0:
        return 0
    timestamps = [segment.first_timestamp for segment in _closed_segments(log, first_dirty_offset)]
    earliest = min((timestamp for timestamp in timestamps if timestamp > 0), default=clean_until_ms)
    return max(0, clean_until_ms - earliest)


def _closed_segments(log: Log, offset: int) -> list[Segment]:
    """The segments from the one that contains an offset up to the active one, without it."""
    return log.segments.between(offset, log.active_segment.base_offset)
