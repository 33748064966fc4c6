"""Checks one segment: every batch and its checksum, the order of offsets, and whether its indexes are correct.

A task of the audit does this for each segment file of each replica and returns rows (`Finding`). It does not compare segments or
replicas: for that it returns digests of ranges of offsets, which are equal on all replicas that have the same batches.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np

from barnabas.errors import CorruptSnapshot, KafkaError
from barnabas.records.batch import Batch
from barnabas.records.columns.columns import decode
from barnabas.storage.indexes.txn_index import ENTRY_SIZE as TXN_ENTRY_SIZE
from barnabas.storage.indexes.txn_index import LAYOUT as TXN_LAYOUT
from barnabas.storage.producers.snapshot import SNAPSHOT_BYTES_MAX, decode_snapshot
from pyspark_barnabas.read.batch_cuts import Chunk, Damage, chunks
from pyspark_barnabas.segments.file_store import FileStore
from pyspark_barnabas.segments.log_dirs import SMALL_FILE_BYTES_MAX, SegmentFiles
from pyspark_barnabas.segments.log_transactions import Aborted
from pyspark_barnabas.segments.txn_audit import EndedTransactions

STRETCH: Final = 10_000  # offsets that share a digest
DIGEST_MODULUS: Final = 1 << 48  # keeps sums of digests far below 64 bits
FAULTS_PER_FILE_MAX: Final = 1000  # a file of garbage would give the same finding many times

SEGMENT: Final = "segment"  # the segment that was checked
FAULT: Final = "fault"  # a fault
DIGEST: Final = "digest"  # a digest that other replicas must have too

_OFFSET_ENTRY: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])


class Finding(NamedTuple):
    """A row of the audit. `what` names the failed check; `offset` and `last_offset` bound the records concerned."""

    kind: str
    topic: str
    partition: int
    place: str
    file: str
    what: str | None = None
    detail: str | None = None
    position: int | None = None
    offset: int | None = None
    last_offset: int | None = None
    batches: int | None = None
    records: int | None = None
    bytes: int | None = None
    digest: int | None = None
    replicas: int | None = None


@dataclass(frozen=True, slots=True)
class AuditTask:
    """One segment of one replica. `common` are the offsets at which all replicas must have the same batches, if
    there are several replicas."""

    topic: str
    partition: int
    store: FileStore
    place: str
    segment: SegmentFiles
    is_last: bool
    snapshots: tuple[tuple[int, str], ...] = ()
    common: tuple[int, int] | None = None
    replicas: int = 1
    cleaned_to: int = 0  # below this offset the log has been compacted


def check_segment(task: AuditTask) -> Iterator[Finding]:
    """All checks that need only this segment."""
    yield from _Check(task).findings()


class _Check:
    def __init__(self, task: AuditTask) -> None:
        self._task = task
        self._records = 0
        self._faults: dict[str, int] = {}
        self._bases: list[int] = []
        self._lasts: list[int] = []
        self._positions: list[int] = []
        self._max_timestamps: list[int] = []
        self._digests: dict[int, list[int]] = {}  # by range of offsets: the sum of the digests of its batches, and their number
        self._next_offset = task.segment.base_offset
        self._ended = EndedTransactions(self._open_before(), task.cleaned_to)

    def findings(self) -> Iterator[Finding]:
        segment = self._task.segment
        yield from self._limited(segment.log, self._log())
        for path, check in (
            (segment.index, self._offset_index),
            (segment.time_index, self._time_index),
            (segment.txn_index, self._txn_index),
        ):
            if path is not None:
                yield from self._limited(path, self._readable(path, check))
        if segment.txn_index is None and segment.index is not None:  # if only the .log files were copied, no index counts as missing
            yield from self._limited(segment.log, self._against_log([], segment.log))
        for _, path in self._task.snapshots:
            yield from self._limited(path, self._readable(path, self._snapshot))
        yield self._finding(
            SEGMENT,
            segment.log,
            offset=self._bases[0] if self._bases else segment.base_offset,
            last_offset=self._lasts[-1] if self._lasts else segment.base_offset - 1,
            batches=len(self._bases),
            records=self._records,
            bytes=segment.size,
        )
        yield from self._digest_rows()

    # The log

    def _log(self) -> Iterator[Finding]:
        task = self._task
        with task.store.open(task.segment.log) as file:
            try:
                for chunk in chunks(file, 0, task.segment.size):
                    yield from self._chunk(chunk)
            except Damage as damage:
                if not (damage.is_torn and task.is_last):  # the last batch of a log may not be written completely yet
                    yield self._fault("batch", damage.what, position=damage.position, offset=self._next_offset)

    def _chunk(self, chunk: Chunk) -> Iterator[Finding]:
        broken = yield from self._contents(chunk)
        for batch in chunk.batches:
            yield from self._order(chunk.position, batch)
            self._bases.append(int(batch.base_offset))
            self._lasts.append(int(batch.last_offset))
            self._positions.append(chunk.position + int(batch.at))
            self._max_timestamps.append(int(batch.max_timestamp))
            if batch.at not in broken:
                self._digest(batch)
                if batch.is_transactional:
                    self._ended.batch(chunk.data, batch)
            else:
                self._ended.is_whole = False

    def _contents(self, chunk: Chunk) -> Generator[Finding, None, frozenset[int]]:
        """Checks checksums and the offset of each record. Batches are checked singly only if the check of all together fails."""
        try:
            self._records += decode(chunk.data, headers=True).records.num_rows
            return frozenset[int]()
        except KafkaError:
            pass
        broken: set[int] = set()
        for batch in chunk.batches:
            try:
                self._records += decode(chunk.data[batch.at : batch.at + batch.size], headers=True).records.num_rows
            except KafkaError as error:
                broken.add(int(batch.at))
                yield self._fault(
                    "batch",
                    str(error),
                    position=chunk.position + int(batch.at),
                    offset=int(batch.base_offset),
                    last_offset=int(batch.last_offset),
                )
        return frozenset(broken)

    def _order(self, chunk_position: int, batch: Batch) -> Iterator[Finding]:
        base, last = int(batch.base_offset), int(batch.last_offset)
        if base < self._next_offset or last < base:
            yield self._fault(
                "offset order",
                f"a batch of offsets {base} to {last} stands where {self._next_offset} is the least that can follow the batch before",
                position=chunk_position + int(batch.at),
                offset=base,
                last_offset=last,
            )
        self._next_offset = last + 1  # not the largest offset so far: one wrong offset must not make every later batch a fault

    # Digests for the comparison of replicas

    def _digest(self, batch: Batch) -> None:
        common = self._task.common
        base, last = int(batch.base_offset), int(batch.last_offset)
        if common is None or base < common[0] or last >= common[1]:
            return
        stretch = self._digests.setdefault(base // STRETCH, [0, 0])
        stretch[0] = (stretch[0] + crc32(b"%d %d %d %d" % (base, last, batch.crc, batch.leader_epoch)) * (base + 1)) % DIGEST_MODULUS
        stretch[1] += 1

    def _digest_rows(self) -> Iterator[Finding]:
        for number, (digest, batches) in sorted(self._digests.items()):
            yield self._finding(
                DIGEST,
                self._task.segment.log,
                offset=number * STRETCH,
                last_offset=(number + 1) * STRETCH - 1,
                digest=digest,
                batches=batches,
                replicas=self._task.replicas,
            )

    # Indexes

    def _readable(self, path: str, check: Callable[[str], Iterator[Finding]]) -> Iterator[Finding]:
        try:
            yield from check(path)
        except (ValueError, OSError) as error:
            yield self._fault("file", str(error), path=path)

    def _offset_index(self, path: str) -> Iterator[Finding]:
        data = self._task.store.read(path, SMALL_FILE_BYTES_MAX)
        entries = np.frombuffer(data, dtype=_OFFSET_ENTRY, count=len(data) // _OFFSET_ENTRY.itemsize)
        starts = {position: number for number, position in enumerate(self._positions)}
        before = (-1, -1)
        for number, (relative, position) in enumerate(entries.tolist()):
            if relative == 0 and position == 0 and not data[number * 8 :].strip(b"\x00"):
                return  # Kafka preallocates the index of an active segment: the rest is zeros
            offset = self._task.segment.base_offset + relative
            if relative <= before[0] or position <= before[1]:
                yield self._fault(
                    "offset index", f"entry {number} ({offset} at {position}) does not rise", path, position=number * 8, offset=offset
                )
            before = (relative, position)
            at = starts.get(position)
            if at is None:
                yield self._fault(
                    "offset index",
                    f"entry {number} says that offset {offset} is at position {position}, where no batch begins",
                    path,
                    position=number * 8,
                    offset=offset,
                )
            elif not self._bases[at] <= offset <= self._lasts[-1]:
                yield self._fault(
                    "offset index",
                    f"entry {number} says that offset {offset} is at position {position}, where offsets {self._bases[at]} to "
                    f"{self._lasts[at]} stand",
                    path,
                    position=number * 8,
                    offset=offset,
                )
        if len(data) % 8:
            yield self._fault("offset index", f"{len(data)} bytes are no whole number of entries", path, position=len(data))

    def _time_index(self, path: str) -> Iterator[Finding]:
        data = self._task.store.read(path, SMALL_FILE_BYTES_MAX)
        entries = np.frombuffer(data, dtype=_TIME_ENTRY, count=len(data) // _TIME_ENTRY.itemsize)
        latest = np.maximum.accumulate(self._max_timestamps) if self._max_timestamps else np.zeros(0, dtype=np.int64)
        before: tuple[int, int] | None = None
        for number, (timestamp, relative) in enumerate(entries.tolist()):
            if timestamp == 0 and relative == 0 and not data[number * 12 :].strip(b"\x00"):
                return
            offset = self._task.segment.base_offset + relative
            if before is not None and (timestamp <= before[0] or relative < before[1]):
                yield self._fault(
                    "time index", f"entry {number} ({timestamp} at {offset}) does not rise", path, position=number * 12, offset=offset
                )
            before = (timestamp, relative)
            reached = int(np.searchsorted(self._lasts, offset, side="left"))  # the batches before the batch with that offset
            if reached > 0 and latest[reached - 1] > timestamp:
                yield self._fault(
                    "time index",
                    f"entry {number} says that nothing before offset {offset} is later than {timestamp}, but a record of "
                    f"{latest[reached - 1]} stands there",
                    path,
                    position=number * 12,
                    offset=offset,
                )
        if len(data) % 12:
            yield self._fault("time index", f"{len(data)} bytes are no whole number of entries", path, position=len(data))

    def _txn_index(self, path: str) -> Iterator[Finding]:
        data = self._task.store.read(path, SMALL_FILE_BYTES_MAX)
        whole = len(data) - len(data) % TXN_ENTRY_SIZE
        entries = [Aborted(*fields) for _, *fields, _ in TXN_LAYOUT.iter_unpack(data[:whole])]
        end = self._end_offset()
        for number, (producer_id, first, last) in enumerate(entries):
            if first > last or last < self._task.segment.base_offset or (last >= end and not self._has_grown()):
                yield self._fault(
                    "transaction index",
                    f"entry {number} has a transaction of producer {producer_id} from {first} to {last}, which does not end in the segment",
                    path,
                    position=number * TXN_ENTRY_SIZE,
                    offset=first,
                    last_offset=last,
                )
        yield from self._against_log(entries, path)
        if whole != len(data):
            yield self._fault("transaction index", f"{len(data)} bytes are no whole number of entries", path, position=whole)

    def _against_log(self, entries: Iterable[Aborted], path: str) -> Iterator[Finding]:
        for fault in self._ended.faults(entries, self._end_offset()):
            yield self._fault(
                "transaction index",
                fault.detail,
                path,
                position=None if fault.number is None else fault.number * TXN_ENTRY_SIZE,
                offset=fault.first_offset,
                last_offset=fault.last_offset,
            )

    def _has_grown(self) -> bool:
        """Whether the log is being written to. Its indexes may then be ahead of the part that was read."""
        with self._task.store.open(self._task.segment.log) as file:
            return file.size > self._task.segment.size

    def _end_offset(self) -> int:
        return self._lasts[-1] + 1 if self._lasts else self._task.segment.base_offset

    def _open_before(self) -> dict[int, int] | None:
        """The transactions that were open at the segment's base offset; None without a snapshot."""
        base_offset = self._task.segment.base_offset
        path = next((path for offset, path in self._task.snapshots if offset == base_offset), None)
        if path is None:
            return {} if base_offset == 0 else None
        try:
            entries = decode_snapshot(self._task.store.read(path, SNAPSHOT_BYTES_MAX), path)
        except (CorruptSnapshot, ValueError, OSError):
            return None  # a broken snapshot is reported by the check of snapshots
        return {int(entry.producer_id): int(entry.current_txn_first_offset) for entry in entries if entry.current_txn_first_offset >= 0}

    def _snapshot(self, path: str) -> Iterator[Finding]:
        try:
            decode_snapshot(self._task.store.read(path, SNAPSHOT_BYTES_MAX), path)
        except CorruptSnapshot as error:
            yield self._fault("producer snapshot", str(error), path)

    # Rows

    def _limited(self, path: str, findings: Iterable[Finding]) -> Iterator[Finding]:
        for count, finding in enumerate(findings):
            if count == FAULTS_PER_FILE_MAX:
                yield self._fault("file", f"has more faults than the {count} that are shown", path)
                return
            yield finding

    def _fault(
        self,
        what: str,
        detail: str,
        path: str | None = None,
        *,
        position: int | None = None,
        offset: int | None = None,
        last_offset: int | None = None,
    ) -> Finding:
        return self._finding(
            FAULT, path or self._task.segment.log, what=what, detail=detail, position=position, offset=offset, last_offset=last_offset
        )

    def _finding(self, kind: str, path: str, **fields: object) -> Finding:
        task = self._task
        name = path.rpartition("/")[2]
        return Finding(kind, task.topic, task.partition, task.place, name, **fields)  # type: ignore[arg-type]
