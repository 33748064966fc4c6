# Compiled by mypyc: src/compiled.toml lists this module.
"""The aborted transactions whose markers are in one segment (`.txnindex`).

A read_committed fetch reads from it which transactions to skip. Most segments have none, so the first entry creates the file. Unlike the
other indexes it is not sparse: recovery must rebuild all of it, and a torn file must never count as complete.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from barnabas.errors import CorruptIndex
from barnabas.storage.disk.disk import is_shortage
from barnabas.storage.disk.files import AnyFile, AnyFiles

CURRENT_VERSION: Final = 0
LAYOUT: Final = struct.Struct(">hqqqq")
ENTRY_SIZE: Final = LAYOUT.size  # 34
CHUNK_BYTES: Final = 240 * ENTRY_SIZE


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def encode(self) -> bytes:
        return LAYOUT.pack(CURRENT_VERSION, *self)

    def __str__(self) -> str:
        return (
            f"AbortedTxn(version={CURRENT_VERSION}, producerId={self.producer_id}, firstOffset={self.first_offset},"
            f" lastOffset={self.last_offset}, lastStableOffset={self.last_stable_offset})"
        )


class TransactionIndex:
    def __init__(self, files: AnyFiles, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._files = files
        self._file: AnyFile | None = None
        self._closed = False
        self._pending: list[AbortedTxn] = []  # not written yet, for want of a descriptor
        self._looked = False  # whether the existence of the file was checked; later only `append` creates it
        self._last_offset: int | None = None

    @property
    def file(self) -> AnyFile | None:
        """The file to sync; None if it does not exist or was not used."""
        return self._file

    @property
    def size_in_bytes(self) -> int:
        file = self._existing()
        return (0 if file is None else file.size) + ENTRY_SIZE * len(self._pending)

    def append(self, txn: AbortedTxn) -> None:
        """Adds an entry. The marker is already in the log, so without a descriptor the entry stays in memory until the next append."""
        self._existing()
        if self._last_offset is not None and self._last_offset >= txn.last_offset:
            raise ValueError(
                f"The last offset of appended transactions must increase sequentially, but {txn.last_offset} is not greater than"
                f" current last offset {self._last_offset} of index {self.path}"
            )
        before, self._last_offset = self._last_offset, txn.last_offset
        self._pending.append(txn)
        try:
            self.flush()
        except OSError as error:
            if not is_shortage(error):
                self._pending.pop()
                self._last_offset = before
                raise

    def all(self) -> list[AbortedTxn]:
        return [*(txn for _, _, txn in self._walk()), *self._pending]

    def collect_aborted(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTxn], bool]:
        """The transactions that overlap with the offsets from `fetch_offset` up to but not including `upper_bound`, and whether these are
        all: if not, the next segment may hold the markers of more."""
        aborted = []
        for txn in chain((txn for _, _, txn in self._walk()), self._pending):
            if txn.last_offset >= fetch_offset and txn.first_offset < upper_bound:
                aborted.append(txn)
            if txn.last_stable_offset >= upper_bound:
                return aborted, True
        return aborted, False

    def truncate_to(self, offset: int) -> None:
        """Removes all transactions that end at this offset or later."""
        kept_last = None
        for file, position, txn in self._walk():
            if txn.last_offset >= offset:
                file.truncate(position)
                self._pending.clear()
                self._last_offset = kept_last
                return
            kept_last = txn.last_offset
        kept = [txn for txn in self._pending if txn.last_offset < offset]
        self._pending, self._last_offset = kept, kept[-1].last_offset if kept else kept_last

    def reset(self) -> None:
        """Empties the index before it is rebuilt, even if it is damaged."""
        file = self._existing()
        if file is not None:
            file.truncate(0)
        self._pending.clear()
        self._last_offset = None

    def sanity_check(self) -> None:
        for _, _, txn in self._walk():
            if txn.last_offset < self.base_offset:
                raise CorruptIndex(
                    f"Last offset of aborted transaction {txn} in index {self.path} is less than start offset {self.base_offset}"
                )

    def flush(self) -> None:
        """Writes the pending entries; there are none unless the process ran out of descriptors."""
        if not self._pending:
            return
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
        self._check_whole_entries(self._file)
        self._file.append_bytes(b"".join([txn.encode() for txn in self._pending]))
        self._pending.clear()

    def sync(self) -> None:
        """May run on any thread."""
        file = self._file
        if file is not None:
            file.sync()

    def renamed(self, path: str) -> None:
        self.path = path
        if self._file is not None:
            self._file.renamed(path)

    def close(self) -> None:
        self._closed = True
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def delete_if_exists(self) -> bool:
        self.close()
        return self._files.remove(self.path, missing_ok=True)

    def _existing(self) -> AnyFile | None:
        if self._closed:
            raise ValueError(f"{self.path} is closed")
        if not self._looked:
            if self._files.exists(self.path):
                self._file = self._files.open(self.path)
                self._last_offset = _last_offset(self._file)
            self._looked = True
        return self._file

    def _walk(self) -> Iterator[tuple[AnyFile, int, AbortedTxn]]:
        """Every transaction with its position."""
        file = self._existing()
        if file is None:
            return
        self._check_whole_entries(file)
        for start in range(0, file.size, CHUNK_BYTES):
            for position, (version, *fields) in enumerate(LAYOUT.iter_unpack(file.pread(CHUNK_BYTES, start))):
                if version > CURRENT_VERSION:
                    raise CorruptIndex(
                        f"Unexpected aborted transaction version {version} in transaction index {self.path},"
                        f" current version is {CURRENT_VERSION}"
                    )
                yield file, start + position * ENTRY_SIZE, AbortedTxn(*fields)

    def _check_whole_entries(self, file: AnyFile) -> None:
        if file.size % ENTRY_SIZE != 0:
            raise CorruptIndex(
                f"Transaction index file {self.path} is corrupt, found {file.size} bytes which is not a multiple of {ENTRY_SIZE}"
            )


def _last_offset(file: AnyFile) -> int | None:
    """The last offset of the last whole entry."""
    position = file.size - file.size % ENTRY_SIZE - ENTRY_SIZE
    if position < 0:
        return None
    last: int = LAYOUT.unpack(file.pread(ENTRY_SIZE, position))[3]
    return last
