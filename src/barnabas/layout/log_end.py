"""Finds the log end offset without opening the log for writing: from the last batch of the last segment, near the last index entry."""

from __future__ import annotations

from typing import Final

from barnabas.errors import CorruptRecord
from barnabas.storage.directory import names
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.segments.scan import scan

_ENTRY_BYTES: Final = 8  # of an offset index: relative offset, position
_INDEX_BYTES_MAX: Final = 64 * 1024 * 1024


def read_log_end_offset(files: AnyFiles, directory: str) -> int:
    """The end offset of a log that was closed cleanly. Damage ends the log before it."""
    bases = sorted(
        offset
        for entry in files.list_dir(directory)
        if entry.name.endswith(names.LOG_SUFFIX) and (offset := names.offset_of(entry.name)) is not None
    )
    if not bases:
        return 0
    file = files.open(names.segment_file(directory, bases[-1], names.LOG_SUFFIX), writable=False)
    end = bases[-1]
    try:
        for chunk in scan(file, _last_indexed(files, directory, bases[-1], file.size), file.size):
            end = chunk.batches[-1].next_offset
    except CorruptRecord:
        pass
    finally:
        file.close()
    return end


def _last_indexed(files: AnyFiles, directory: str, base: int, size: int) -> int:
    """The position of a batch near the end of the segment; 0 without a usable index."""
    path = names.segment_file(directory, base, names.INDEX_SUFFIX)
    if not files.exists(path):
        return 0
    index = files.read_bytes(path, _INDEX_BYTES_MAX)
    last = len(index) - len(index) % _ENTRY_BYTES - _ENTRY_BYTES
    position = int.from_bytes(index[last + 4 : last + 8], "big") if last >= 0 else 0
    return position if position < size else 0
