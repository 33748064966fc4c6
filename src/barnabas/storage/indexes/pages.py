# Compiled by mypyc: src/compiled.toml lists this module.
"""The pages of index files that were read lately, shared by all indexes.

Stands in for the page cache that Kafka's mapped indexes lean on, without their descriptors and stalls. Bounded: the page that was used
longest ago makes room. A page is a copy of what the file held when it was read, so an index that cuts its file takes a new owner number.
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
        self._lock = threading.Lock()  # several logs may be recovered at once, each in a thread of its own

    def __len__(self) -> int:
        return len(self._pages)

    def new_owner(self) -> int:
        """A number under which no page is known; the pages of an abandoned number age out."""
        return next(self._owners)

    def read(self, owner: int, file: AnyFile, number: int, page_bytes: int, at_least: int) -> bytes:
        """Page `number` of a file, read again where the copy is shorter than `at_least`: it was the last page and the file has grown."""
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
