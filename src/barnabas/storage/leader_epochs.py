"""The leader epochs of a partition and the offset at which each began.

A follower asks its leader where the follower's latest epoch ended and truncates there, because its high watermark may be stale. The append
path compares one integer, `latest_epoch`, and calls this module only when a new leader has begun. Epochs and start offsets both grow
strictly; a new entry removes the entries that contradict it.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import Final, NamedTuple

from barnabas.errors import CorruptCheckpoint
from barnabas.storage.directory.checkpoints import read_checkpoint, write_checkpoint
from barnabas.storage.disk.files import AnyFiles

_log = logging.getLogger(__name__)

UNDEFINED_EPOCH: Final = -1
UNDEFINED_EPOCH_OFFSET: Final = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


_epoch: Final = attrgetter("epoch")
_start_offset: Final = attrgetter("start_offset")


class LeaderEpochCache:
    """The epochs of one log, in memory and in its leader-epoch-checkpoint.

    A change stays in memory until its records are flushed: the flush writes the file on its thread, before the recovery point moves. Until
    then nothing relies on the file. Recovery reads the epochs of records past the recovery point from their batches. An epoch that begins
    at the log end has no records: loading drops its entry, and the next leader begins the epoch again. Superfluous entries do no harm,
    because loading truncates the cache to the log. So ten thousand partitions get their leaders without ten thousand waits for the disk.
    """

    def __init__(self, files: AnyFiles, path: str) -> None:
        self.files = files
        self.path = path
        self.latest_epoch = UNDEFINED_EPOCH  # a plain attribute: every append reads it
        self._entries: list[EpochEntry] = []
        self._on_disk: list[EpochEntry] = []
        self._writing = threading.Lock()  # flushes write on threads, `clear_and_flush` on the event loop
        self._last_taken = 0
        self._last_written = 0
        for line in read_checkpoint(files, path, 2):
            entry = EpochEntry(line.int32(0), line.int64(1))
            if entry.epoch < 0 or entry.start_offset < 0:
                raise CorruptCheckpoint(f"Received invalid partition leader epoch entry {entry} from {path} at line {line.number}")
            self._put(entry)
        self._on_disk = list(self._entries)

    # -- lookups

    @property
    def entries(self) -> list[EpochEntry]:
        return list(self._entries)

    @property
    def earliest_entry(self) -> EpochEntry | None:
        return self._entries[0] if self._entries else None

    @property
    def latest_entry(self) -> EpochEntry | None:
        return self._entries[-1] if self._entries else None

    def epoch_entry(self, epoch: int) -> EpochEntry | None:
        at = bisect_left(self._entries, epoch, key=_epoch)
        return self._entries[at] if at < len(self._entries) and self._entries[at].epoch == epoch else None

    def previous_epoch(self, epoch: int) -> int:
        """The epoch before the given one, -1 if there is none in the cache."""
        at = bisect_left(self._entries, epoch, key=_epoch)
        return self._entries[at - 1].epoch if at > 0 else UNDEFINED_EPOCH

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch in which an offset was written, -1 if the offset is older than all epochs in the cache."""
        at = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[at - 1].epoch if at > 0 else UNDEFINED_EPOCH

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch up to the requested one, and the offset where it ended; (-1, -1) if that is unknown.

        The latest epoch is still being written, so it ends at the log end offset. An epoch older than all in the cache is returned as
        requested and ends where the first in the cache begins: its records are deleted, and the follower must be able to go on from there.
        """
        if requested_epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if requested_epoch == self.latest_epoch:
            return requested_epoch, log_end_offset
        higher = bisect_right(self._entries, requested_epoch, key=_epoch)
        if higher == len(self._entries):
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        epoch = self._entries[higher - 1].epoch if higher > 0 else requested_epoch
        return epoch, self._entries[higher].start_offset

    # -- changes

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Adds the start offset of an epoch; returns False if the epoch had begun before."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"Received invalid partition leader epoch entry EpochEntry(epoch={epoch}, startOffset={start_offset})")
        return self._put(EpochEntry(epoch, start_offset))

    def truncate_from_end(self, end_offset: int) -> None:
        """Removes the epochs that begin at or after an offset."""
        if end_offset >= 0:
            self._replace(self._entries[: bisect_left(self._entries, end_offset, key=_start_offset)])

    def truncate_from_start(self, start_offset: int) -> None:
        """Removes the epochs that ended at or before an offset; the epoch that wrote it now begins there."""
        at = bisect_right(self._entries, start_offset, key=_start_offset)
        if at > 0:
            self._replace([EpochEntry(self._entries[at - 1].epoch, start_offset), *self._entries[at:]])

    def clear(self) -> None:
        """Removes all entries from memory, not from the file."""
        self._entries = []
        self.latest_epoch = UNDEFINED_EPOCH

    def clear_and_flush(self) -> None:
        """Removes all entries, also from the file: after a crash an old entry would give records the wrong epoch."""
        self.clear()
        self.take_write().run()

    # -- the file

    def is_dirty(self, below: int) -> bool:
        """Whether the file lacks changes to the epochs of the records below an offset."""
        if self._entries == self._on_disk:
            return False
        return _below(self._entries, below) != _below(self._on_disk, below)

    def take_write(self) -> EpochWrite:
        """A write of the present entries to the file, to be run on any thread."""
        self._last_taken += 1
        return EpochWrite(self, self.path, list(self._entries), self._last_taken)

    def flush(self, below: int) -> None:
        """Writes the file if it lacks epochs of the records below an offset. It is no error if the directory was renamed."""
        if not self.is_dirty(below):
            return
        try:
            self.take_write().run()
        except FileNotFoundError:
            _log.warning("Failed to write to checkpoint file %s. This is ok if the topic/partition is being deleted", self.path)

    def write(self, path: str, entries: list[EpochEntry], number: int) -> None:
        """For EpochWrite. Writes are done one after the other; an older one than the last is skipped."""
        with self._writing:
            if number > self._last_written:
                write_checkpoint(self.files, path, (f"{epoch} {start_offset}" for epoch, start_offset in entries))
                self._on_disk, self._last_written = entries, number

    def moved_to(self, directory: str) -> None:
        """The directory of the log was renamed."""
        self.path = f"{directory}/{self.path.rpartition('/')[2]}"

    def _put(self, entry: EpochEntry) -> bool:
        latest = self.latest_entry
        if latest is not None and entry.epoch == latest.epoch and entry.start_offset >= latest.start_offset:
            return False
        kept = self._entries
        while kept and (kept[-1].epoch >= entry.epoch or kept[-1].start_offset >= entry.start_offset):
            removed = kept.pop()
            if removed.start_offset != entry.start_offset:  # if equal, no record was written in the removed epoch
                _log.warning("New epoch entry %s caused truncation of conflicting entry %s in %s", entry, removed, self.path)
        kept.append(entry)
        self.latest_epoch = entry.epoch
        return True

    def _replace(self, entries: list[EpochEntry]) -> None:
        if entries != self._entries:
            self._entries = entries
            self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH


class EpochWrite(NamedTuple):
    """The content of the file at one moment."""

    cache: LeaderEpochCache
    path: str
    entries: list[EpochEntry]
    number: int

    def run(self) -> None:
        self.cache.write(self.path, self.entries, self.number)


def _below(entries: list[EpochEntry], offset: int) -> list[EpochEntry]:
    return entries[: bisect_left(entries, offset, key=_start_offset)]
