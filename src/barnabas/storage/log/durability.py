# Compiled by mypyc: src/compiled.toml lists this module.
"""How much of a log survives a crash of the machine, and the flushes that make more of it durable.

Records are written to the page cache and synced later on a thread. A flush plan holds only files, so that it can run while appends go on.
All records below the recovery point are synced: recovery after a crash relies on that. It moves only after a plan has run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.leader_epochs import EpochWrite, LeaderEpochCache
from barnabas.storage.segments.segments import Segments

NEVER_MS: Final = -(2**61)  # before any monotonic time


class Syncable(Protocol):
    def sync(self) -> None: ...


class FlushPlan(NamedTuple):
    files: AnyFiles
    targets: Sequence[Syncable]
    snapshots: Sequence[str]  # producer snapshots that were written without a sync
    directory: str | None  # synced if it has new or deleted files
    parent: str | None  # synced if the directory is new
    epochs: EpochWrite | None  # written if the file lacks epochs of these records
    recovery_point: int  # all records below it are durable once the plan has run
    truncations: int  # how often the log was truncated before the plan was made: a later truncation makes the plan void

    def run(self) -> bool:
        """Returns whether everything is durable now. It is not if the directory was renamed meanwhile: then the next flush repeats it."""
        try:
            for target in self.targets:
                with suppress(ValueError):  # closed, because its segment was deleted meanwhile or the disk has failed
                    target.sync()
            for snapshot in self.snapshots:
                with suppress(FileNotFoundError):  # deleted meanwhile with its segment
                    self.files.sync_file(snapshot)
            if self.epochs is not None:
                self.epochs.run()
            if self.parent is not None:
                self.files.sync_dir(self.parent)
            if self.directory is not None:
                self.files.sync_dir(self.directory)
        except FileNotFoundError:
            return False
        return True


class Durability:
    """How far one log is synced, and what the next flush must sync besides new records.

    Deleted segments, and the tail that a truncation or recovery cut off the active segment, must not come back below the recovery point
    after a crash. So the next flush syncs the directory, and the cut segment is synced before another segment begins.
    """

    def __init__(self, recovery_point: int, recovered: bool, is_new: bool) -> None:
        self.recovery_point = recovery_point
        self.directory_is_new = is_new  # its name is not synced yet
        self.last_flush_ms = NEVER_MS
        self.names_changed = recovered
        self.active_was_cut = recovered
        self._truncations = 0

    @property
    def was_truncated(self) -> bool:
        return self._truncations > 0

    def plan(
        self,
        files: AnyFiles,
        directory: str,
        segments: Segments,
        snapshots: Callable[[], list[str]],
        epochs: LeaderEpochCache,
        below: int,
        log_end_offset: int,
    ) -> FlushPlan | None:
        """The plan that makes every record below an offset durable; None if all of them are."""
        if below <= self.recovery_point:
            return None
        unflushed = segments.between(self.recovery_point, below)
        names_changed = self.names_changed or any(segment.base_offset >= self.recovery_point for segment in unflushed)
        targets = [target for segment in unflushed for target in segment.sync_targets()]  # may fail, so nothing has changed before
        self.names_changed = False
        return FlushPlan(
            files,
            targets,
            snapshots(),
            directory if names_changed else None,
            directory.rpartition("/")[0] if self.directory_is_new else None,
            epochs.take_write() if epochs.is_dirty(below) else None,
            min(below, log_end_offset),
            self._truncations,
        )

    def flushed(self, plan: FlushPlan, active_base_offset: int, monotonic_ms: int) -> None:
        """A plan has run. It is void if the log was truncated meanwhile: other records may have those offsets now."""
        if plan.parent is not None:
            self.directory_is_new = False
        if plan.recovery_point > self.recovery_point and plan.truncations == self._truncations:
            self.recovery_point = plan.recovery_point
            self.active_was_cut = self.active_was_cut and plan.recovery_point <= active_base_offset
            self.last_flush_ms = monotonic_ms

    def not_flushed(self, plan: FlushPlan) -> None:
        self.names_changed = self.names_changed or plan.directory is not None

    def truncated(self, offset: int, active_was_cut: bool) -> None:
        self._truncations += 1
        self.active_was_cut = active_was_cut
        self.recovery_point = min(self.recovery_point, offset)
