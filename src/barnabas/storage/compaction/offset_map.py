# Compiled by mypyc: src/compiled.toml lists this module.
"""A map from each key to its last offset in the dirty part of a log, by which compaction decides which records stay.

A key is represented by its MD5 digest, so a slot takes 24 bytes whatever the size of the key. The number of slots is fixed
(log.cleaner.dedupe.buffer.size). Two keys with one digest would count as one key; with 128 bits that does not happen by accident.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be, read_i64_be
from librt.vecs import extend, vec
from mypy_extensions import i64

try:
    from _md5 import md5  # type: ignore[import-not-found]  # takes half the time of hashlib's, which goes through OpenSSL
except ImportError:
    from hashlib import md5

BYTES_PER_ENTRY: Final = 24  # 16 of the digest and 8 of the offset
NOT_FOUND: Final = -1

# Slots are allocated in pages, when the first slot of a page is used: clearing 128 MB at once would block the event loop.
_PAGE_SLOTS: Final = 256
_WORDS: Final = 3  # of 64 bits in a slot: two for the digest, and the offset plus one, so that zero means empty

# The first probes take four bytes of the digest each; after them the map probes linearly.
_HASH_PROBES: Final = 13


class SkimpyOffsetMap:
    """Keys cannot be removed. `latest_offset` is the last offset of the log that was read into the map."""

    def __init__(self, slots: i64) -> None:
        if slots < 1:
            raise ValueError(f"An offset map needs at least one slot, not {slots}")
        self.slots = slots
        self.size: i64 = 0
        self.latest_offset: i64 = NOT_FOUND
        self._no_page = vec[i64]()
        self._blank_page = _blank_page()
        self._pages: list[vec[i64]] = []
        self.clear()

    def clear(self) -> None:
        self.size = 0
        self.latest_offset = NOT_FOUND
        self._pages = [self._no_page] * ((self.slots + _PAGE_SLOTS - 1) // _PAGE_SLOTS)

    @property
    def utilization(self) -> float:
        return int(self.size) / int(self.slots)

    def put(self, key: bytes, offset: i64) -> None:
        if self.size >= self.slots:
            raise ValueError(f"Attempted to add a new entry to a full offset map, entries: {self.size}, slots: {self.slots}")
        digest: bytes = md5(key).digest()
        slot: i64 = self._find(digest)
        page = self._pages[slot // _PAGE_SLOTS]
        if len(page) == 0:
            page = self._blank_page[:]
            self._pages[slot // _PAGE_SLOTS] = page
        at: i64 = slot % _PAGE_SLOTS * _WORDS
        if page[at + 2] == 0:
            page[at] = read_i64_be(digest, 0)
            page[at + 1] = read_i64_be(digest, 8)
            self.size += 1
        page[at + 2] = offset + 1
        self.latest_offset = offset

    def get(self, key: bytes) -> i64:
        """The offset last put for a key, or NOT_FOUND."""
        digest: bytes = md5(key).digest()
        slot: i64 = self._find(digest)
        if slot < 0:
            return NOT_FOUND
        page = self._pages[slot // _PAGE_SLOTS]
        if len(page) == 0:
            return NOT_FOUND
        return page[slot % _PAGE_SLOTS * _WORDS + 2] - 1

    def _find(self, digest: bytes) -> i64:
        """The slot that holds a digest, or the empty slot where it belongs; -1 if every slot holds another digest."""
        first: i64 = read_i64_be(digest, 0)
        second: i64 = read_i64_be(digest, 8)
        probe: i64 = 0
        attempt: i64 = 0
        while attempt < self.slots + _HASH_PROBES:
            if attempt < _HASH_PROBES:
                probe = i64(read_i32_be(digest, attempt)) & 0x7FFFFFFF
            else:
                probe += 1
            slot: i64 = probe % self.slots
            page = self._pages[slot // _PAGE_SLOTS]
            if len(page) == 0:
                return slot
            at: i64 = slot % _PAGE_SLOTS * _WORDS
            if page[at + 2] == 0 or (page[at] == first and page[at + 1] == second):
                return slot
            attempt += 1
        return NOT_FOUND


def _blank_page() -> vec[i64]:
    page = vec[i64]([0] * _WORDS, capacity=_PAGE_SLOTS * _WORDS)
    while len(page) < _PAGE_SLOTS * _WORDS:
        page = extend(page, page)
    return page
