# Compiled by mypyc: src/compiled.toml lists this module.
"""Taking segments out of a log: for retention, for a truncation, and after compaction.

Segments leave the log in three steps. They disappear from its list of segments, their files are renamed to `.deleted`, and the host removes
the files after file.delete.delay.ms, because a reader may still hold a slice of one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.storage.directory import names
from barnabas.storage.segments.segment import Segment

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log

_log = logging.getLogger(__name__)


def delete_segments(log: Log, deletable: Sequence[Segment], reason: str, now_ms: int) -> int:
    """Deletes the oldest segments of a log and moves the log start offset behind them; returns how many."""
    if not deletable:
        return 0
    with log.on_disk("while deleting segments"):
        doomed = list(deletable)
        if len(doomed) == len(log.segments):
            log.roll(now_ms)  # a log always has a segment to append to
        following = log.segments.higher(doomed[-1].base_offset)
        if following is not None:
            log.increment_log_start_offset(following.base_offset, "segment deletion")
        _log.info("Deleting segments of %s at base offsets %s due to %s", log.partition, [s.base_offset for s in doomed], reason)
        remove_segments(log, doomed)
    return len(doomed)


def remove_segments(log: Log, doomed: Sequence[Segment]) -> None:
    """Removes segments with their producer snapshots.

    A truncation passes them from the end of the log inwards, so that a crash on the way leaves no hole.
    """
    for segment in doomed:
        log.segments.remove(segment.base_offset)
    for segment in doomed:
        segment.rename_suffix("", names.DELETED_SUFFIX)
    delete_files_later(log, doomed)
    delete_snapshots_of(log, doomed)


def delete_files_later(log: Log, doomed: Sequence[Segment]) -> None:
    log.durability.names_changed = True
    for segment in doomed:
        log.host.delete_later(partial(_delete_files, log, segment), log.config.file_delete_delay_ms)


def delete_snapshots_of(log: Log, doomed: Iterable[Segment]) -> None:
    for segment in doomed:
        delete = log.producers.mark_snapshot_for_deletion(segment.base_offset)
        if delete is not None:
            log.host.delete_later(delete, log.config.file_delete_delay_ms)


def _delete_files(log: Log, segment: Segment) -> None:
    segment.moved_to(log.directory)  # the directory may have been renamed since
    segment.delete()
