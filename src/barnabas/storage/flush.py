"""Making written data durable, off the event loop.

A plan names files and nothing else, so that a thread can run it while the log goes on being written.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from barnabas.storage.files import AnyFiles


class Syncable(Protocol):
    def sync(self) -> None: ...


class FlushPlan(NamedTuple):
    files: AnyFiles
    targets: Sequence[Syncable]
    snapshots: Sequence[str]  # producer snapshots that were written without a sync
    directory: str | None  # synced too when it has new files
    recovery_point: int  # everything below it is durable once the plan has run
    truncations: int  # how often the log had been truncated when the plan was made: one more, and the plan says nothing

    def run(self) -> bool:
        """True if all of it is durable now. Not so if the directory was renamed under the plan: then the next flush sees to it."""
        try:
            for target in self.targets:
                with suppress(ValueError):  # closed: its segment has been deleted meanwhile, or the disk has failed
                    target.sync()
            for snapshot in self.snapshots:
                with suppress(FileNotFoundError):  # deleted meanwhile, with its segment
                    self.files.sync_file(snapshot)
            if self.directory is not None:
                self.files.sync_dir(self.directory)
        except FileNotFoundError:
            return False
        return True
