# Compiled by mypyc: src/compiled.toml lists this module.
"""Starting a new active segment of a log.

A log rolls when its active segment is full or too old, and before retention deletes the last segment. The log always has one segment to
append to: the new segment exists before the old one is closed or deleted.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.errors import KafkaError
from barnabas.storage.directory import names
from barnabas.storage.log.segment_removal import delete_files_later
from barnabas.storage.segments.segment import Segment

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log

_log = logging.getLogger(__name__)


def roll(log: Log, now_ms: int, expected_next_offset: int) -> Segment:
    """Closes the active segment and starts a new one at the log end offset, or at `expected_next_offset` if that is higher."""
    log.check_open()
    with log.on_disk("while rolling log segment"):
        base = max(expected_next_offset, log.log_end_offset)
        active = log.segments.active
        if base in log.segments:
            if active.base_offset != base or active.size:
                raise KafkaError(f"Trying to roll a new log segment for {log.partition} with start offset {base} while it already exists")
            _log.warning("Rolling %s at offset %d again: the active segment is empty but one of its indexes is full", log.partition, base)
            segment = replace_active(log, base, now_ms)
        else:
            if base < active.base_offset:
                raise KafkaError(f"Trying to roll a new log segment for {log.partition} with start offset {base} below the active one")
            _remove_leftovers(log, base)
            active.close_indexes()
            if log.durability.active_was_cut:
                active.flush()
                log.durability.active_was_cut = False
            segment = _new_segment(log, base, now_ms)
        log.producers.update_map_end_offset(base)
        log.producers.take_snapshot(sync=False)
        log.pull_high_watermark_to_end()
        log.host.flush_later(log, base)
        _log.info("Rolled new log segment of %s at offset %d", log.partition, base)
    return segment


def replace_active(log: Log, base_offset: int, now_ms: int) -> Segment:
    """Adds an empty active segment, then removes the old one."""
    old = log.segments.active
    if old.base_offset == base_offset:
        old.rename_suffix("", names.DELETED_SUFFIX)
    segment = _new_segment(log, base_offset, now_ms)
    if old.base_offset != base_offset:
        log.segments.remove(old.base_offset)
        old.rename_suffix("", names.DELETED_SUFFIX)
    delete_files_later(log, [old])
    return segment


def _new_segment(log: Log, base_offset: int, now_ms: int) -> Segment:
    jitter_ms = log.jitter(log.config.segment_jitter_ms_max)
    segment = Segment(log.files, log.directory, base_offset, log.config, now_ms, jitter_ms=jitter_ms)
    segment.create_indexes()
    log.segments.add(segment)
    return segment


def _remove_leftovers(log: Log, base_offset: int) -> None:
    for kind in names.SEGMENT_SUFFIXES:
        path = names.segment_file(log.directory, base_offset, kind)
        if log.files.exists(path):
            _log.warning("Newly rolled segment file %s already exists; deleting it first", path)
            log.files.remove(path)
