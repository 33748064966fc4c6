"""Which leader wrote what: the epochs of a partition and the offset at which each began.

A follower asks its leader where its own latest epoch ended and truncates there, instead of trusting a high watermark that may be stale. The
append path compares one integer, `latest_epoch`, and comes here only when a new leader has begun. Epochs and start offsets both grow
strictly; an entry that would break this removes those it contradicts.
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

    Changes stay in memory until the records they speak of are flushed: then the file is written with them, on the flush's thread, before
    the recovery point moves. Until then nothing relies on it. The epochs of records past the recovery point are found again in their
    batches; an epoch that begins at the log end has no records, and loading drops its entry whether or not it is there, for the next
    leader begins it again; entries too many do no harm, because loading truncates the cache to the log. So ten thousand partitions get
    their leaders without ten thousand waits for the disk.
    """

    def __init__(self, files: AnyFiles, path: str) -> None:
        self.files = files
        self.path = path
        self.latest_epoch = UNDEFINED_EPOCH  # a plain attribute: every append reads it
        self._entries: list[EpochEntry] = []
        self._on_disk: list[EpochEntry] = []
        self._writing = threading.Lock()  # a flush writes on its thread, and what is cleared at once is written on the loop
        self._last_taken = 0
        self._last_written = 0
        for line in read_checkpoint(files, path, 2):
            entry = EpochEntry(line.int32(0), line.int64(1))
            if entry.epoch < 0 or entry.start_offset < 0:
                raise CorruptCheckpoint(f"Received invalid partition leader epoch entry {entry} from {path} at line {line.number}")
            self._put(entry)
        self._on_disk = list(self._entries)

    # -- what it knows

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
        """The epoch before this one, -1 if none is known."""
        at = bisect_left(self._entries, epoch, key=_epoch)
        return self._entries[at - 1].epoch if at > 0 else UNDEFINED_EPOCH

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch that wrote an offset, -1 if it is older than all of them."""
        at = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[at - 1].epoch if at > 0 else UNDEFINED_EPOCH

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch up to the one asked for, and the offset where it ended; (-1, -1) where nothing can be said.

        The latest epoch is still being written, so it ends at the log end. An epoch older than all known ones is given back as asked and
        ends where the first known one begins: its data is gone, and the follower must be able to go on from there.
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
        """Notes that an epoch begins at an offset; False if it had begun before."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"Received invalid partition leader epoch entry EpochEntry(epoch={epoch}, startOffset={start_offset})")
        return self._put(EpochEntry(epoch, start_offset))

    def truncate_from_end(self, end_offset: int) -> None:
        """Forgets the epochs that begin at or after an offset."""
        if end_offset >= 0:
            self._replace(self._entries[: bisect_left(self._entries, end_offset, key=_start_offset)])

    def truncate_from_start(self, start_offset: int) -> None:
        """Forgets the epochs that ended at or before an offset; the one that wrote it now begins there."""
        at = bisect_right(self._entries, start_offset, key=_start_offset)
        if at > 0:
            self._replace([EpochEntry(self._entries[at - 1].epoch, start_offset), *self._entries[at:]])

    def clear(self) -> None:
        """Forgets everything; the file stays, for it is about to go with its directory."""
        self._entries = []
        self.latest_epoch = UNDEFINED_EPOCH

    def clear_and_flush(self) -> None:
        """At once: an entry that came back would vouch for records that it does not know."""
        self.clear()
        self.take_write().run()

    # -- the file

    def is_dirty(self, below: int) -> bool:
        """Whether the file does not tell the epochs of the records below an offset."""
        if self._entries == self._on_disk:
            return False
        return _below(self._entries, below) != _below(self._on_disk, below)

    def take_write(self) -> EpochWrite:
        """What writes the file as it should be now; to be run on any thread."""
        self._last_taken += 1
        return EpochWrite(self, self.path, list(self._entries), self._last_taken)

    def flush(self, below: int) -> None:
        """Writes the epochs of the records below an offset, where the file lacks them. A directory renamed away is no error."""
        if not self.is_dirty(below):
            return
        try:
            self.take_write().run()
        except FileNotFoundError:
            _log.warning("Failed to write to checkpoint file %s. This is ok if the topic/partition is being deleted", self.path)

    def write(self, path: str, entries: list[EpochEntry], number: int) -> None:
        """For EpochWrite. Writes come one after the other, and none that is older than what is there."""
        with self._writing:
            if number > self._last_written:
                write_checkpoint(self.files, path, (f"{epoch} {start_offset}" for epoch, start_offset in entries))
                self._on_disk, self._last_written = entries, number

    def moved_to(self, directory: str) -> None:
        """The directory of the log has another name now."""
        self.path = f"{directory}/{self.path.rpartition('/')[2]}"

    def _put(self, entry: EpochEntry) -> bool:
        latest = self.latest_entry
        if latest is not None and entry.epoch == latest.epoch and entry.start_offset >= latest.start_offset:
            return False
        kept = self._entries
        while kept and (kept[-1].epoch >= entry.epoch or kept[-1].start_offset >= entry.start_offset):
            removed = kept.pop()
            if removed.start_offset != entry.start_offset:  # else the removed epoch had written nothing
                _log.warning("New epoch entry %s caused truncation of conflicting entry %s in %s", entry, removed, self.path)
        kept.append(entry)
        self.latest_epoch = entry.epoch
        return True

    def _replace(self, entries: list[EpochEntry]) -> None:
        if entries != self._entries:
            self._entries = entries
            self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH


class EpochWrite(NamedTuple):
    """The file of a cache at one moment."""

    cache: LeaderEpochCache
    path: str
    entries: list[EpochEntry]
    number: int

    def run(self) -> None:
        self.cache.write(self.path, self.entries, self.number)


def _below(entries: list[EpochEntry], offset: int) -> list[EpochEntry]:
    return entries[: bisect_left(entries, offset, key=_start_offset)]
