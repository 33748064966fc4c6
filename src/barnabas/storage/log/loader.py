"""Opens the directory of a log: completes or undoes what a crash interrupted, recovers segments, and returns a Log.

After a clean shutdown the loader reads only names and sizes. Otherwise it checks every segment past the recovery point batch by batch,
rebuilds its indexes, and cuts the log at the first damage. Flushed records are never cut.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from barnabas.errors import CorruptCheckpoint, CorruptIndex, SegmentOffsetOverflow
from barnabas.storage.directory import names
from barnabas.storage.directory.partition_metadata import PartitionMetadataFile
from barnabas.storage.disk.files import AnyFiles, DirEntry
from barnabas.storage.host import LogHost
from barnabas.storage.leader_epochs import LeaderEpochCache
from barnabas.storage.log.epoch_search import find_epochs
from barnabas.storage.log.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.producers.replay import rebuild_producer_state
from barnabas.storage.producers.state import ProducerStateConfig, ProducerStateManager
from barnabas.storage.segments.segment import OFFSET_MAX, Segment
from barnabas.storage.segments.segments import Segments
from barnabas.storage.segments.surgery import replace_segments, split_overflowed
from barnabas.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

MISSING_OFFSET_INDEX: Final = "Could not find offset index file"
MISSING_TIME_INDEX: Final = "Could not find time index file"

T = TypeVar("T")


def no_jitter(_: int) -> int:
    return 0


@dataclass
class LoadRequest:
    """What the log manager knows of a log before its directory is opened."""

    files: AnyFiles
    directory: str
    partition: TopicPartition
    config: LogConfig
    host: LogHost
    now_ms: int
    log_start_offset: int = 0
    recovery_point: int = 0
    clean_shutdown: bool = False
    holes_are_losses: bool = False  # a gap between unflushed segments is a lost tail, not the work of compaction
    producer_config: ProducerStateConfig = field(default_factory=ProducerStateConfig)
    jitter: Callable[[int], int] = no_jitter


def load_log(request: LoadRequest) -> Log:
    """Opens a log, recovering it as needed; a directory that does not exist becomes an empty log."""
    loader = _Loader(request)
    try:
        return loader.load()
    except BaseException:
        loader.segments.close_handlers()
        raise


class _Loader:
    def __init__(self, request: LoadRequest) -> None:
        self.request = request
        self.files = request.files
        self.directory = request.directory
        self.config = request.config
        self.now_ms = request.now_ms
        self.segments = Segments()
        self.to_repair: list[tuple[Segment, str]] = []  # segments whose indexes are missing or damaged, with the reason
        self.has_recovered = not request.clean_shutdown  # if so, the files may be in the page cache only

    def load(self) -> Log:
        request = self.request
        is_new = not self.files.exists(self.directory)
        self.files.make_dirs(self.directory)
        self.epochs, epochs_are_lost = self._leader_epochs()
        self.producers = self._producer_state()
        if not is_new:  # a new directory is empty, and listing it would cost time when ten thousand logs are created in a row
            self._finish_interrupted_swaps()
            self._load_segments()
        if self.directory.endswith(names.DELETE_DIR_SUFFIX):
            recovery_point = end = 0
            if not len(self.segments):
                self._add_segment(0)
        else:
            recovery_point, end = self._retry_on_overflow(self._recover)
            if epochs_are_lost:
                find_epochs(self.epochs, self.segments)
        start = max(request.log_start_offset, self.segments.first.base_offset)
        self.epochs.truncate_from_end(end)
        self.epochs.truncate_from_start(start)
        self.producers.remove_stray_snapshots(self.segments.base_offsets)
        rebuild_producer_state(self.producers, self.segments, start, end, self.now_ms, request.clean_shutdown)
        return Log(
            self.files,
            self.directory,
            request.partition,
            self.config,
            self.segments,
            self.producers,
            self.epochs,
            PartitionMetadataFile(self.files, f"{self.directory}/{names.PARTITION_METADATA}"),
            request.host,
            request.jitter,
            log_start_offset=start,
            recovery_point=recovery_point,
            log_end_offset=end,
            recovered=self.has_recovered,
            is_new=is_new or self.has_recovered,
            gaps_are_losses=request.holes_are_losses,
        )

    def _leader_epochs(self) -> tuple[LeaderEpochCache, bool]:
        """The cache, and whether its file was damaged: then the epochs are read from the batches."""
        path = f"{self.directory}/{names.LEADER_EPOCH_CHECKPOINT}"
        try:
            return LeaderEpochCache(self.files, path), False
        except CorruptCheckpoint as e:
            _log.error("%s. The leader epochs of %s are read from its batches, and the file is written again", e, self.request.partition)
            self.files.remove(path)
            return LeaderEpochCache(self.files, path), True

    def _producer_state(self) -> ProducerStateManager:
        return ProducerStateManager(self.files, self.directory, self.request.partition, self.request.producer_config)

    def _listing(self) -> list[DirEntry]:
        return [entry for entry in self.files.list_dir(self.directory) if not entry.is_dir]

    # -- files of an interrupted compaction or split

    def _finish_interrupted_swaps(self) -> None:
        swaps = self._remove_temporary_files()
        if not swaps:
            return
        low, high = self._swapped_range(swaps)
        for entry in self._listing():
            offset = names.offset_of(entry.name)
            if offset is not None and low <= offset < high and not entry.name.endswith(names.SWAP_SUFFIX):
                _log.info("Deleting segment file %s/%s that is compacted but has not been deleted yet", self.directory, entry.name)
                self.files.remove(f"{self.directory}/{entry.name}")
        # The .log of each segment first, as compaction does: after another crash the next load continues from there.
        for name in sorted(swaps, key=lambda name: not name.endswith(names.LOG_SUFFIX + names.SWAP_SUFFIX)):
            _log.info("Recovering file %s/%s by renaming", self.directory, name)
            self.files.rename(f"{self.directory}/{name}", f"{self.directory}/{name.removesuffix(names.SWAP_SUFFIX)}")
        self.files.sync_dir(self.directory)

    def _remove_temporary_files(self) -> list[str]:
        """Removes `.deleted` files, then `.swap` files of an incomplete set, then `.cleaned` files; returns the valid swaps."""
        cleaned: list[str] = []
        swaps: list[str] = []
        for entry in self._listing():
            if entry.name.endswith(names.DELETED_SUFFIX):
                self.files.remove(f"{self.directory}/{entry.name}")
            elif entry.name.endswith(names.CLEANED_SUFFIX):
                cleaned.append(entry.name)
            elif entry.name.endswith(names.SWAP_SUFFIX):
                swaps.append(entry.name)
        cleaned_offsets = [offset for name in cleaned if (offset := names.offset_of(name)) is not None]
        valid: list[str] = []
        for name in swaps:
            offset = names.offset_of(name)
            # A split renames from the last part to the first: a .cleaned below a .swap means that the set is incomplete.
            if offset is None or (cleaned_offsets and offset >= min(cleaned_offsets)):
                self.files.remove(f"{self.directory}/{name}")
            else:
                valid.append(name)
        for name in cleaned:
            self.files.remove(f"{self.directory}/{name}")
        return valid

    def _swapped_range(self, swaps: list[str]) -> tuple[int, int]:
        """The offsets that the swap files replace."""
        low, high = OFFSET_MAX, -1
        for name in swaps:
            base = names.offset_of(name)
            if base is None or not name.endswith(names.LOG_SUFFIX + names.SWAP_SUFFIX):
                continue
            segment = Segment(self.files, self.directory, base, self.config, self.now_ms, suffix=names.SWAP_SUFFIX, create=False)
            low, high = min(low, base), max(high, segment.next_offset())
            segment.close_handlers()
        return low, high

    # -- segments

    def _load_segments(self) -> None:
        listing = {entry.name for entry in self._listing()}
        for name in sorted(listing):
            offset = names.offset_of(name)
            if offset is None:
                continue
            if name.endswith(names.INDEX_SUFFIXES):
                if names.offset_prefix(offset) + names.LOG_SUFFIX not in listing:
                    _log.warning("Found an orphaned index file %s/%s, with no corresponding log file.", self.directory, name)
                    self.files.remove(f"{self.directory}/{name}")
            elif name.endswith(names.LOG_SUFFIX):
                self._load_segment(offset, listing)

    def _load_segment(self, base_offset: int, listing: set[str]) -> None:
        segment = self._open_segment(base_offset, create=False)
        self.segments.add(segment)
        fault = self._index_fault(segment, listing)
        if fault is not None:
            self.to_repair.append((segment, fault))

    def _index_fault(self, segment: Segment, listing: set[str]) -> str | None:
        prefix = names.offset_prefix(segment.base_offset)
        if prefix + names.INDEX_SUFFIX not in listing:
            return MISSING_OFFSET_INDEX
        if prefix + names.TIME_INDEX_SUFFIX not in listing:
            return MISSING_TIME_INDEX
        if prefix + names.TXN_INDEX_SUFFIX in listing:
            try:
                segment.txn_index.sanity_check()
            except CorruptIndex as e:
                return str(e)
        return None

    def _add_segment(self, base_offset: int) -> None:
        segment = self._open_segment(base_offset)
        segment.create_indexes()
        self.segments.add(segment)

    def _open_segment(self, base_offset: int, create: bool = True) -> Segment:
        jitter_ms = self.request.jitter(self.config.segment_jitter_ms_max)
        return Segment(self.files, self.directory, base_offset, self.config, self.now_ms, jitter_ms=jitter_ms, create=create)

    def _retry_on_overflow(self, action: Callable[[], T]) -> T:
        while True:
            try:
                return action()
            except SegmentOffsetOverflow as e:
                _log.info("Caught segment overflow error: %s. Split segment and retry.", e)
                self._split(e.base_offset)

    def _split(self, base_offset: int) -> None:
        old = self.segments.get(base_offset)
        assert old is not None, f"No segment of {self.directory} begins at the offset {base_offset} that overflowed"
        new = split_overflowed(old, self.directory, self.files, self.config, self.now_ms)
        gone = replace_segments(self.segments, new, [old], self.directory, self.files, self.request.host, self.config.file_delete_delay_ms)
        self.to_repair = [(segment, fault) for segment, fault in self.to_repair if segment is not old]
        self._delete_snapshots(gone)

    # -- recovery

    def _recover(self) -> tuple[int, int]:
        """Recovers unflushed and damaged segments; returns the new recovery point and the log end offset."""
        request = self.request
        unflushed = [] if request.clean_shutdown else self.segments.between(request.recovery_point, OFFSET_MAX)
        # In order, before the unflushed segments: the producer state of a segment is rebuilt from the segments before it.
        for segment, fault in self.to_repair:
            if segment not in unflushed:
                if fault in (MISSING_OFFSET_INDEX, MISSING_TIME_INDEX):
                    _log.error(
                        "%s corresponding to log file %s, recovering segment and rebuilding index files...", fault, segment.file.path
                    )
                else:
                    _log.warning(
                        "Found a corrupted index file corresponding to log file %s due to %s, recovering segment and rebuilding index "
                        "files...",
                        segment.file.path,
                        fault,
                    )
                self._recover_segment(segment)
        self._recover_unflushed(unflushed)
        if request.clean_shutdown and len(self.segments) and self.segments.active.is_torn:
            _log.error("Segment %s was damaged after a clean shutdown, recovering it", self.segments.active.file.path)
            self._recover_segment(self.segments.active)
        end = self._end_offset()
        self._note_lost_tail(end)
        if not len(self.segments):
            self._add_segment(request.log_start_offset)
        if request.clean_shutdown and end is not None:
            return end, end
        # Only a flush moves the recovery point forward: records that were read here may be in the page cache only.
        end = self.segments.active.next_offset() if end is None else end
        return min(request.recovery_point, end), end

    def _note_lost_tail(self, end: int | None) -> None:
        """After a clean shutdown the recovery point is the log end offset: a log that ends before it has lost records since."""
        expected = self.request.recovery_point
        if self.request.clean_shutdown and end is not None and end < expected:
            _log.error(
                "The log in %s ends at offset %d, but ended at %d when the broker was stopped: its last records are lost. Where another "
                "broker has a replica, they are copied from there if it leads; else restore the directory from a copy before anything is "
                "written to it",
                self.directory,
                end,
                expected,
            )

    def _recover_unflushed(self, unflushed: list[Segment]) -> None:
        for number, segment in enumerate(unflushed):
            _log.info("Recovering unflushed segment %d of %s (%d of %d)", segment.base_offset, self.directory, number + 1, len(unflushed))
            cut = self._recover_segment(segment)
            if cut or self._lost_its_tail(segment):
                doomed = unflushed[number + 1 :]
                if doomed:
                    _log.warning("Corruption found in segment %s: deleting the %d segments after it", segment.file.path, len(doomed))
                    self._delete(doomed)
                return

    def _lost_its_tail(self, segment: Segment) -> bool:
        """Whether records are missing between a segment and the next: after a power loss, of two unsynced files the later may survive."""
        following = self.segments.higher(segment.base_offset)
        if following is None or not self.request.holes_are_losses or self.config.compact:
            return False
        end = segment.next_offset()
        if end >= following.base_offset:
            return False
        _log.warning("Segment %s ends at offset %d but the next begins at %d", segment.file.path, end, following.base_offset)
        return True

    def _recover_segment(self, segment: Segment) -> int:
        """Recovers one segment with a separate producer state, built from the segments before it; returns the bytes cut off."""
        self.has_recovered = True
        producers = self._producer_state()
        rebuild_producer_state(producers, self.segments, self.request.log_start_offset, segment.base_offset, self.now_ms)
        following = self.segments.higher(segment.base_offset)
        cut = segment.recover(producers, self.epochs, OFFSET_MAX if following is None else following.base_offset)
        producers.take_snapshot()
        return cut

    def _end_offset(self) -> int | None:
        """The log end offset; None if no segment is left, or if all were deleted because they end before the log start offset."""
        if not len(self.segments):
            return None
        end = self.segments.active.next_offset()
        start = self.request.log_start_offset
        if end >= start:
            return end
        _log.warning(
            "Deleting all segments of %s because logEndOffset (%d) is smaller than logStartOffset (%d)", self.directory, end, start
        )
        self._delete(list(self.segments))
        self.epochs.clear_and_flush()
        self.producers.truncate_fully_and_start_at(start)
        return None

    def _delete(self, doomed: list[Segment]) -> None:
        for segment in reversed(doomed):  # from the end inwards, so that a crash on the way leaves no hole
            self.segments.remove(segment.base_offset)
            segment.rename_suffix("", names.DELETED_SUFFIX)
            self.request.host.delete_later(segment.delete, self.config.file_delete_delay_ms)
        self.files.sync_dir(self.directory)  # after a crash none may come back, because new records will have their offsets
        self._delete_snapshots(doomed)

    def _delete_snapshots(self, doomed: list[Segment]) -> None:
        for segment in doomed:
            delete = self.producers.mark_snapshot_for_deletion(segment.base_offset)
            if delete is not None:
                self.request.host.delete_later(delete, self.config.file_delete_delay_ms)
