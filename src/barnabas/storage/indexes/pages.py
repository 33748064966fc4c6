# Compiled by mypyc: src/compiled.toml lists this module.
"""A cache of recently read pages of index files, shared by all indexes.

It replaces the memory mapping of Kafka's indexes, without the descriptors and stalls of that. The cache is bounded: the least recently used
page is dropped. A page is a copy of the file at the time of the read, so an index that truncates its file takes a new owner number.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from typing import Final

from barnabas.storage.disk.files import AnyFile

PAGE_BYTES: Final = 8192
PAGES_MAX: Final = 1024


class IndexPages:
    def __init__(self, max_pages: int = PAGES_MAX) -> None:
        if max_pages < 1:
            raise ValueError(f"max_pages must be at least 1, not {max_pages}")
        self.max_pages = max_pages
        self._pages: OrderedDict[tuple[int, int], bytes] = OrderedDict()  # in the order of last use
        self._owners = itertools.count()
        self._lock = threading.Lock()  # several logs may be recovered at once, each on its own thread

    def __len__(self) -> int:
        return len(self._pages)

    def new_owner(self) -> int:
        """A number that has no pages yet; the pages of an abandoned number are dropped when they are the least recently used."""
        return next(self._owners)

    def read(self, owner: int, file: AnyFile, number: int, page_bytes: int, at_least: int) -> bytes:
        """Page `number` of a file. It is read again if the copy is shorter than `at_least`: the last page grows with the file."""
        key = (owner, number)
        with self._lock:
            page = self._pages.get(key, b"")
            if len(page) >= at_least:
                self._pages.move_to_end(key)
                return page
        page = file.pread(page_bytes, number * page_bytes)
        with self._lock:
            self._pages[key] = page
            self._pages.move_to_end(key)
            if len(self._pages) > self.max_pages:
                self._pages.popitem(last=False)
        return page


shared_pages: Final = IndexPages()
