"""Replaces segments of a log by others, so that a crash at any moment leaves the old or the new ones, never a mixture.

Compaction turns many segments into one; splitting turns one into many. Both write `.cleaned` files, rename them to `.swap` when they are
complete, rename the originals to `.deleted`, and only then remove the suffix `.swap`. The loader handles each suffix by this order.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from barnabas.errors import CorruptRecord
from barnabas.records import legacy
from barnabas.records.batch import MAGIC_V2, Batch
from barnabas.storage.directory import names
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.host import LogHost
from barnabas.storage.log_config import LogConfig
from barnabas.storage.segments.scan import CHUNK_BYTES
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segments import Segments

_log = logging.getLogger(__name__)


def new_cleaned_segment(files: AnyFiles, directory: str, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
    """An empty segment with the suffix `.cleaned`. Files of an earlier attempt are removed."""
    for kind in names.SEGMENT_SUFFIXES:
        files.remove(names.segment_file(directory, base_offset, kind, names.CLEANED_SUFFIX), missing_ok=True)
    segment = Segment(files, directory, base_offset, config, now_ms, suffix=names.CLEANED_SUFFIX)
    segment.create_indexes()
    return segment


def replace_segments(
    segments: Segments, new: Sequence[Segment], old: Sequence[Segment], directory: str, files: AnyFiles, host: LogHost, delete_delay_ms: int
) -> list[Segment]:
    """Replaces `old` by `new` (all `.cleaned` and flushed); returns the old segments whose base offset no new one has."""
    replaced = [segment for segment in old if segments.get(segment.base_offset) is segment]
    # Last first: if only some become .swap, a .cleaned file with a lower offset shows the loader that the set is incomplete.
    for segment in sorted(new, key=lambda s: s.base_offset, reverse=True):
        segment.rename_suffix(names.CLEANED_SUFFIX, names.SWAP_SUFFIX)
    files.sync_dir(directory)
    for segment in new:
        segments.add(segment)
    kept = {segment.base_offset for segment in new}
    for segment in replaced:
        if segment.base_offset not in kept:
            segments.remove(segment.base_offset)
        segment.rename_suffix("", names.DELETED_SUFFIX)
        host.delete_later(segment.delete, delete_delay_ms)
    for segment in new:
        segment.rename_suffix(names.SWAP_SUFFIX, "")
    files.sync_dir(directory)
    return [segment for segment in replaced if segment.base_offset not in kept]


def split_overflowed(segment: Segment, directory: str, files: AnyFiles, config: LogConfig, now_ms: int) -> list[Segment]:
    """Copies a segment into several, so that every offset fits into 31 bits relative to its base offset. All are `.cleaned`."""
    _log.info("Splitting overflowed segment %s", segment)
    parts: list[Segment] = []
    try:
        for data, batch in _sound_batches(segment):
            if not parts or not parts[-1].fits(int(batch.last_offset)):
                first = batch.base_offset if batch.magic >= MAGIC_V2 else legacy.base_offset(data, batch)
                parts.append(new_cleaned_segment(files, directory, int(first), config, now_ms))
            parts[-1].append([memoryview(data)[batch.at : batch.end]], [batch])
        _copy_rest(segment, parts[-1], sum(part.size for part in parts))
        for part in parts:
            part.close_indexes()
            part.flush()
            files.set_modified_ms(part.file.path, segment.modified_ms)
    except BaseException:
        for part in parts:
            part.delete()
        raise
    return parts


def _sound_batches(segment: Segment) -> Iterator[tuple[bytes, Batch]]:
    """Batches with the bytes that contain them, up to the first that is damaged or whose offsets do not rise."""
    last_offset = -1
    try:
        for chunk in segment.chunks():
            for batch in chunk.batches:
                if batch.base_offset <= last_offset:
                    return
                last_offset = int(batch.last_offset)
                yield chunk.data, batch
    except CorruptRecord as e:
        _log.warning("Found invalid messages in log segment %s: %s", segment.file.path, e)


def _copy_rest(segment: Segment, last: Segment, position: int) -> None:
    """Copies the bytes behind the last whole batch too: recovery must find them, cut them off, and know that the log was damaged."""
    while position < segment.size:
        rest = segment.file.pread(CHUNK_BYTES, position)
        last.file.append_bytes(rest)
        position += len(rest)
