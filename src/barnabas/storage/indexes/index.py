# Compiled by mypyc: src/compiled.toml lists this module.
"""The base of the offset index and the time index of a segment: fixed-size entries in rising order, in Kafka's format.

There is no mmap: its flush holds the GIL, access to a cold page stalls the loop, and each map keeps a descriptor. Instead the newest
entries are in memory, and older ones are read by page. The file is opened at first use. An index is a hint: it holds nothing that is not in
the log, and a lost or doubtful index is rebuilt from the log.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import ClassVar, Final, Generic, TypeVar

from barnabas.errors import CorruptIndex, IndexOffsetOverflow
from barnabas.storage.disk.disk import is_shortage
from barnabas.storage.disk.files import AnyFile, AnyFiles
from barnabas.storage.indexes.pages import PAGE_BYTES, IndexPages, shared_pages

INDEX_SIZE_MAX: Final = 10 * 1024 * 1024  # segment.index.bytes
WARM_BYTES: Final = 8192
RELATIVE_OFFSET_MAX: Final = 2**31 - 1
FILE_SIZE_MAX: Final = 2**31 - 1  # Kafka maps an index with 32-bit positions

# Entries are collected in memory and written in chunks. A crash may lose the last of them, which does no harm: after a crash, recovery
# rebuilds the indexes of all segments past the recovery point. A clean shutdown writes all entries.
PENDING_BYTES_MAX: Final = 1024
TAIL_BYTES_MAX: Final = 2 * WARM_BYTES
SCAN_BYTES: Final = 64 * 1024

KEY: Final = 0  # the column that lookups search; the other column is the value

Entry = TypeVar("Entry")


class Index(ABC, Generic[Entry]):
    """An index file of one segment.

    A file is exactly as long as its entries. Kafka fills the file of an active segment with zeros, which are trimmed on load. So nothing is
    resized when a segment becomes active or is rolled: `max_size` is a limit, not a file size.
    """

    entry_size: ClassVar[int]
    layout: ClassVar[struct.Struct]

    def __init__(
        self,
        files: AnyFiles,
        path: str,
        base_offset: int,
        max_size: int = INDEX_SIZE_MAX,
        writable: bool = True,
        pages: IndexPages | None = None,
    ) -> None:
        if max_size < self.entry_size:
            raise ValueError(f"Invalid max index size: {max_size}")
        self.path = path
        self.base_offset = base_offset
        self.max_size = max_size
        self.writable = writable
        self._files = files
        self._pages = shared_pages if pages is None else pages
        self._owner = -1
        self._file: AnyFile | None = None
        self._closed = False
        self._entries = 0
        self._length = 0  # of the file when it was loaded
        self._written = 0  # bytes of entries in the file
        self._tail = bytearray()  # the newest entries, written or not
        self._tail_at = 0  # the position in the file where the tail begins
        self._tail_keys = array("q")  # the first fields of its entries, for lookups near the log end

    # -- entries

    @property
    def entries(self) -> int:
        self.load()
        return self._entries

    @property
    def max_entries(self) -> int:
        return self.max_size // self.entry_size if self.writable else self.entries

    @property
    def is_full(self) -> bool:
        return self.entries >= self.max_entries

    @property
    def size_in_bytes(self) -> int:
        return self.entries * self.entry_size

    @property
    def file(self) -> AnyFile | None:
        """The file to sync; None before the first use, when there is nothing to sync."""
        return self._file

    def can_append_offset(self, offset: int) -> bool:
        return 0 <= offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def entry(self, n: int) -> Entry:
        if not 0 <= n < self.entries:
            raise ValueError(f"Attempt to fetch the {n}th entry from {self._kind} {self.path}, which has size {self._entries}")
        return self._parse(self._raw(n))

    @abstractmethod
    def sanity_check(self) -> None:
        """Raises CorruptIndex where Kafka does, and where the last entry is not in order."""

    # -- loading

    def load(self) -> None:
        """Opens the file, creates it if it is missing, and reads the last entry. Every other method does this first."""
        if self._file is not None:
            return
        file = self._open()
        if file.size > FILE_SIZE_MAX:
            raise CorruptIndex(f"{self._kind.capitalize()} file {self.path} is corrupt, found {file.size} bytes")
        self._length = file.size
        self._file = file
        try:
            self._cut(_count_entries(file, self.entry_size))
        except OSError:
            self._file = None
            raise

    def _open(self) -> AnyFile:
        if self._closed:
            raise ValueError(f"{self.path} is closed")
        return self._files.open(self.path, create=self.writable, writable=self.writable)

    # -- changing

    def truncate_to(self, offset: int) -> None:
        """Removes all entries with this offset or a larger one."""
        column = self._offset_column
        target = offset - self.base_offset
        slot = self._floor(column, target)
        while slot >= 0 and self._raw(slot)[column] >= target:
            slot -= 1
        self._truncate_to_entries(slot + 1)

    def truncate(self) -> None:
        """Removes all entries, even of a file that cannot be loaded."""
        if self._file is None:
            self._file = self._open()
        self._truncate_to_entries(0)

    def reset(self) -> None:
        """Empties the index before it is rebuilt."""
        self.truncate()

    def trim_to_valid_size(self) -> None:
        """Writes all entries to the file and drops them from memory. Called when the segment is rolled."""
        self._truncate_to_entries(self.entries)

    def resize(self, max_size: int) -> None:
        """Sets a new limit. Entries beyond it stay, and the index is then full."""
        if max_size < self.entry_size:
            raise ValueError(f"Invalid max index size: {max_size}")
        self.max_size = max_size

    def flush(self) -> None:
        """Writes the entries that are in memory only. They are durable after `sync`."""
        pending_at = self._written - self._tail_at
        if self._file is not None and pending_at < len(self._tail):
            self._file.write_at(self._tail[pending_at:], self._written)
            self._written = self._tail_at + len(self._tail)

    def sync(self) -> None:
        """Makes flushed entries durable; may run on any thread."""
        file = self._file
        if file is not None:
            file.sync()

    def renamed(self, path: str) -> None:
        self.path = path
        if self._file is not None:
            self._file.renamed(path)

    def close(self, discard: bool = False) -> None:
        """Writes pending entries, unless `discard`: the disk has failed, or the file is about to be deleted."""
        if not discard:
            self.flush()
        self._closed = True
        self._tail, self._tail_keys = bytearray(), array("q")
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def delete_if_exists(self) -> bool:
        self.close(discard=True)
        return self._files.remove(self.path, missing_ok=True)

    def _truncate_to_entries(self, entries: int) -> None:
        self.flush()
        self._cut(entries)
        self._length = self._written

    def _cut(self, entries: int) -> None:
        """Truncates the file at once: an entry must not outlive its batch, neither in the file nor in a page."""
        assert self._file is not None
        size = entries * self.entry_size
        if self.writable and self._file.size > size:
            self._file.truncate(size)
        self._entries = entries
        self._written = self._tail_at = size
        self._tail, self._tail_keys = bytearray(), array("q")
        self._owner = self._pages.new_owner()
        self._last_entry_changed()

    def _append(self, first: int, second: int) -> None:
        self._tail += self.layout.pack(first, second)
        self._tail_keys.append(first)
        self._entries += 1
        if self._tail_at + len(self._tail) - self._written >= PENDING_BYTES_MAX:
            try:
                self.flush()
            except OSError as error:
                if not is_shortage(error):
                    raise
                return  # the batch is already in the log; its entry stays in memory until there is a descriptor again
            if len(self._tail) > TAIL_BYTES_MAX:
                self._drop_cold_tail()

    def _drop_cold_tail(self) -> None:
        """Drops old entries from memory, down to the warm section: otherwise the index of a segment of 1 GB would take 2 MB."""
        cold = len(self._tail) - WARM_BYTES // self.entry_size * self.entry_size
        del self._tail[:cold]
        del self._tail_keys[: cold // self.entry_size]
        self._tail_at += cold

    def _relative_offset(self, offset: int) -> int:
        if not self.can_append_offset(offset):
            raise IndexOffsetOverflow(f"Integer overflow for offset: {offset} ({self.path})")
        return offset - self.base_offset

    # -- reading

    def _floor(self, column: int, target: int) -> int:
        entries = self.entries
        keys = self._tail_keys
        if keys and column == KEY:
            if keys[0] <= target:
                return entries - len(keys) + bisect_right(keys, target) - 1
            entries -= len(keys)
        return floor_slot(self._raw, entries, WARM_BYTES // self.entry_size, column, target)

    def _ceiling(self, column: int, target: int) -> int:
        slot = self._floor(column, target)
        if slot >= 0 and self._raw(slot)[column] == target:
            return slot
        return slot + 1 if slot + 1 < self._entries else -1

    def _raw(self, n: int) -> tuple[int, int]:
        """The two fields of an entry as stored in the file."""
        at = n * self.entry_size - self._tail_at
        fields: tuple[int, int] = self.layout.unpack_from(self._tail, at) if at >= 0 else self._raw_from_page(n)
        return fields

    def _raw_from_page(self, n: int) -> tuple[int, int]:
        assert self._file is not None
        entry_size = self.entry_size
        per_page = PAGE_BYTES // entry_size
        number = n // per_page
        at = (n - number * per_page) * entry_size
        page = self._pages.read(self._owner, self._file, number, per_page * entry_size, at + entry_size)
        if len(page) < at + entry_size:
            raise CorruptIndex(f"{self._kind.capitalize()} file {self.path} ends before entry {n} of {self._entries}")
        fields: tuple[int, int] = self.layout.unpack_from(page, at)
        return fields

    def _check_whole_entries(self, text: str) -> None:
        if self._length % self.entry_size != 0:
            raise CorruptIndex(
                f"{text} {self.path} is corrupt, found {self._length} bytes which is neither positive nor a multiple of {self.entry_size}"
            )

    # -- differences of the two kinds

    _kind: ClassVar[str]
    _offset_column: ClassVar[int]

    @abstractmethod
    def _parse(self, raw: tuple[int, int]) -> Entry: ...

    @abstractmethod
    def _last_entry_changed(self) -> None:
        """Called after a load or a truncation: the last entry is no longer the one that was appended last."""


def floor_slot(entry_at: Callable[[int], tuple[int, int]], entries: int, warm_entries: int, column: int, target: int) -> int:
    """The slot of the largest entry that is not above the target, -1 if there is none.

    Lookups of followers and consumers near the log end find the last entries. A plain binary search would start at the first entry and read
    pages in between: of 13 pages it reads 0, 6, 9, 11, 12; of 14 it reads 0, 7, 10, 12, 13. Pages 7 and 10 have not been used for long, so
    the first lookup after the file grew by a page would wait for the device. So the last 8192 bytes are searched first.
    """
    if entries == 0:
        return -1
    first_warm = max(0, entries - 1 - warm_entries)
    if entry_at(first_warm)[column] < target:
        return _binary_search(entry_at, column, target, first_warm, entries - 1)
    if entry_at(0)[column] > target:
        return -1
    return _binary_search(entry_at, column, target, 0, first_warm)


def _binary_search(entry_at: Callable[[int], tuple[int, int]], column: int, target: int, low: int, high: int) -> int:
    while low < high:
        middle = (low + high + 1) >> 1
        value = entry_at(middle)[column]
        if value > target:
            high = middle - 1
        elif value < target:
            low = middle
        else:
            return middle
    return low


def _count_entries(file: AnyFile, entry_size: int) -> int:
    """The entries before the zeros with which Kafka fills an active index. A single one of zeros counts: timestamp 0, base offset."""
    whole = file.size // entry_size
    return whole if whole <= 1 else min(whole, -(-_used_bytes(file) // entry_size))


def _used_bytes(file: AnyFile) -> int:
    """The position where the zeros at the end begin, searched back from the end: garbage would mislead a binary search."""
    end = file.size
    while end > 0:
        start = max(0, end - SCAN_BYTES)
        used = len(file.pread(end - start, start).rstrip(b"\0"))
        if used:
            return start + used
        end = start
    return 0
