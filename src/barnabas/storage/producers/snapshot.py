# Compiled by mypyc: src/compiled.toml lists this module.
"""Producer snapshots: the state of all producers of a partition at one offset, in the file named after it.

    version i16 = 1 | CRC-32C of the rest u32 | count i32 | count × (producer id i64, epoch i16, last sequence i32, last offset i64,
    offset delta i32, timestamp i64, coordinator epoch i32, first offset of the open transaction i64)

A snapshot only saves reading the log again. A damaged snapshot is deleted, and the state is rebuilt from an older one. So a snapshot is
used only if its checksum and its length are right.
"""

from __future__ import annotations

import errno
from bisect import bisect_left, insort
from collections.abc import Callable, Collection
from typing import Final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, read_i64_be, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from barnabas.errors import CorruptSnapshot
from barnabas.records.crc import crc32c
from barnabas.storage.directory import names
from barnabas.storage.disk.files import AnyFiles
from barnabas.storage.producers.entry import BatchMetadata, ProducerStateEntry

SNAPSHOT_VERSION: Final = 1
SNAPSHOT_BYTES_MAX: Final = 256 * 1024 * 1024  # over five million producers in one partition

_CHECKED_FROM: Final = 6
_HEADER_SIZE: Final = 10
_ENTRY_SIZE: Final = 46


def encode_snapshot(entries: Collection[ProducerStateEntry]) -> bytes:
    body = BytesWriter()
    write_i32_be(body, i32(len(entries)))
    for entry in entries:
        write_i64_be(body, entry.producer_id)
        write_i16_be(body, i16(entry.producer_epoch))
        write_i32_be(body, i32(entry.last_sequence))
        write_i64_be(body, entry.last_data_offset)
        write_i32_be(body, i32(entry.last_offset_delta))
        write_i64_be(body, entry.last_timestamp)
        write_i32_be(body, i32(entry.coordinator_epoch))
        write_i64_be(body, entry.current_txn_first_offset)
    checked = body.getvalue()
    crc: int = crc32c(checked, 0, len(checked))
    return SNAPSHOT_VERSION.to_bytes(2, "big") + crc.to_bytes(4, "big") + checked


def decode_snapshot(data: bytes, path: str) -> list[ProducerStateEntry]:
    """The producers in a snapshot, each with its last batch only; raises CorruptSnapshot naming `path`."""
    size: i64 = len(data)
    if size < _HEADER_SIZE:
        raise CorruptSnapshot(f"Snapshot failed schema validation: {path} has {size} bytes, at least {_HEADER_SIZE} are needed")
    version: i64 = i64(read_i16_be(data, 0))
    if version != SNAPSHOT_VERSION:
        raise CorruptSnapshot(f"Snapshot contained an unknown file version {version}: {path}")
    count: i64 = i64(read_i32_be(data, _CHECKED_FROM))
    if count < 0 or _HEADER_SIZE + count * _ENTRY_SIZE != size:
        raise CorruptSnapshot(
            f"Snapshot failed schema validation: {path} has {size} bytes, which do not hold the {count} producers it claims"
        )
    stored: i64 = i64(read_i32_be(data, 2)) & 0xFFFFFFFF
    computed: i64 = crc32c(data, _CHECKED_FROM, size)
    if stored != computed:
        raise CorruptSnapshot(f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}: {path}")
    return [_read_entry(data, _HEADER_SIZE + n * _ENTRY_SIZE) for n in range(count)]


def _read_entry(data: bytes, at: i64) -> ProducerStateEntry:
    last_offset: i64 = read_i64_be(data, at + 14)
    timestamp: i64 = read_i64_be(data, at + 26)
    entry = ProducerStateEntry(
        read_i64_be(data, at),
        i64(read_i16_be(data, at + 8)),
        i64(read_i32_be(data, at + 34)),
        timestamp,
        max(read_i64_be(data, at + 38), -1),
    )
    if last_offset >= 0:
        entry.retain(BatchMetadata(i64(read_i32_be(data, at + 10)), last_offset, i64(read_i32_be(data, at + 22)), timestamp))
    return entry


class ProducerSnapshots:
    """The snapshot files of one partition directory, by offset."""

    def __init__(self, files: AnyFiles, directory: str, size_max: int = SNAPSHOT_BYTES_MAX) -> None:
        self.files = files
        self.directory = directory
        self.size_max = size_max
        self.offsets: list[int] = []  # sorted
        self.load()

    def load(self) -> None:
        """Lists the snapshots of the directory again. The directory may be missing."""
        self.offsets = []
        if not self.files.is_dir(self.directory):
            return
        for entry in self.files.list_dir(self.directory):
            offset = names.offset_of(entry.name)
            if offset is not None and not entry.is_dir and entry.name == _file_name(offset):
                self.offsets.append(offset)
        self.offsets.sort()

    def path(self, offset: int) -> str:
        return f"{self.directory}/{_file_name(offset)}"

    @property
    def latest(self) -> int | None:
        return self.offsets[-1] if self.offsets else None

    @property
    def oldest(self) -> int | None:
        return self.offsets[0] if self.offsets else None

    def __contains__(self, offset: int) -> bool:
        at = bisect_left(self.offsets, offset)
        return at < len(self.offsets) and self.offsets[at] == offset

    def read(self, offset: int) -> list[ProducerStateEntry]:
        """Raises CorruptSnapshot, also for a missing file."""
        path = self.path(offset)
        try:
            data = self.files.read_bytes(path, self.size_max)
        except FileNotFoundError:
            raise CorruptSnapshot(f"Snapshot {path} has disappeared") from None
        except OSError as e:
            if e.errno != errno.EFBIG:
                raise
            raise CorruptSnapshot(f"Snapshot {path} has more than the {self.size_max} bytes allowed for it") from None
        return decode_snapshot(data, path)

    def write(self, offset: int, entries: Collection[ProducerStateEntry], sync: bool) -> str | None:
        """Writes a snapshot and returns its path; writes nothing and returns None if it would be too large to be read back."""
        if _HEADER_SIZE + len(entries) * _ENTRY_SIZE > self.size_max:
            return None
        path = self.path(offset)
        self.files.write_atomically(path, encode_snapshot(entries), sync)
        if offset not in self:
            insort(self.offsets, offset)
        return path

    def remove(self, offset: int) -> None:
        if offset in self:
            self.offsets.remove(offset)
            self.files.remove(self.path(offset), missing_ok=True)

    def mark_for_deletion(self, offset: int) -> Callable[[], None] | None:
        """Renames the file of a snapshot to `.deleted`; returns the call that removes it later, None if there is no such file."""
        if offset not in self:
            return None
        self.offsets.remove(offset)
        path = self.path(offset)
        try:
            self.files.rename(path, path + names.DELETED_SUFFIX)
        except FileNotFoundError:
            return None  # already removed by the temporary state that recovery built
        return _Deletion(self.files, path + names.DELETED_SUFFIX).run

    def remove_stray(self, segment_base_offsets: Collection[int]) -> None:
        """Removes snapshots that are not at the start of a segment, except the latest if it is beyond all segments: a clean shutdown writes
        that one at the log end."""
        self.load()
        bases = set(segment_base_offsets)
        strays = [offset for offset in self.offsets if offset not in bases]
        if strays and (not bases or strays[-1] >= max(bases)):
            strays.pop()
        for offset in strays:
            self.remove(offset)


class _Deletion:
    def __init__(self, files: AnyFiles, path: str) -> None:
        self.files = files
        self.path = path

    def run(self) -> None:
        self.files.remove(self.path, missing_ok=True)


def _file_name(offset: int) -> str:
    return names.offset_prefix(offset) + names.SNAPSHOT_SUFFIX
