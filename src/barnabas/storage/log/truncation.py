# Compiled by mypyc: src/compiled.toml lists this module.
"""Dropping the newest records of a log, when a follower finds that its leader does not have them.

The directory is synced before new records are appended. If a removed segment came back after a crash, when other records have its offsets,
nothing would tell which of the two is right.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.storage.log.rolling import replace_active
from barnabas.storage.log.segment_removal import remove_segments
from barnabas.storage.producers.replay import rebuild_producer_state

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log

_log = logging.getLogger(__name__)


def truncate_to(log: Log, offset: int, now_ms: int) -> bool:
    """Drops every record from `offset` on; returns whether there was any."""
    if offset < 0:
        raise ValueError(f"Cannot truncate partition {log.partition} to a negative offset ({offset}).")
    log.check_open()
    with log.on_disk(f"while truncating log to offset {offset}"):
        end = log.log_end_offset
        if offset >= end:
            _log.info("Truncating %s to %d has no effect as the largest offset in the log is %d", log.partition, offset, end - 1)
            # This replica may have been leader and have noted an epoch without writing in it: the entry conflicts with the new leader's.
            log.epochs.truncate_from_end(end)
            return False
        _log.info("Truncating %s to offset %d", log.partition, offset)
        if log.segments.first.base_offset > offset:
            truncate_fully_and_start_at(log, offset, now_ms, None)
            return True
        remove_segments(log, log.segments.from_base(offset + 1)[::-1])
        log.files.sync_dir(log.directory)
        log.segments.active.truncate_to(offset, now_ms)
        log.reset_end(offset, active_was_cut=True)
        log.epochs.truncate_from_end(offset)
        log.log_start_offset = min(offset, log.log_start_offset)
        rebuild_producer_state(log.producers, log.segments, log.log_start_offset, offset, now_ms)
        log.update_visible_offsets()
    return True


def truncate_fully_and_start_at(log: Log, offset: int, now_ms: int, log_start_offset: int | None) -> None:
    """Empties the log; the next record gets `offset`."""
    log.check_open()
    with log.on_disk("while truncating the entire log"):
        _log.info("Truncating all of %s, to start at offset %d", log.partition, offset)
        remove_segments(log, list(log.segments)[-2::-1])
        replace_active(log, offset, now_ms)
        log.files.sync_dir(log.directory)
        log.reset_end(offset, active_was_cut=False)
        log.epochs.clear_and_flush()
        log.producers.truncate_fully_and_start_at(offset)
        log.log_start_offset = offset if log_start_offset is None else log_start_offset
        rebuild_producer_state(log.producers, log.segments, log.log_start_offset, offset, now_ms)
        log.move_high_watermark_to_end()
