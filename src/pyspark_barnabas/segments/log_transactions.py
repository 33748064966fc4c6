"""The aborted and the open transactions of a log, which a read_committed reader of files needs.

A broker sends them in its Fetch responses. Without a broker, the transaction indexes list the aborted transactions; the newest producer
snapshot and the batches after it give the open ones. If the indexes were not copied, the headers of all batches are read instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.errors import CorruptSnapshot
from barnabas.records.batch import Batch
from barnabas.records.control import ABORT, COMMIT, parse_control_type
from barnabas.records.reader import read_records
from barnabas.storage.indexes.txn_index import ENTRY_SIZE, LAYOUT
from barnabas.storage.producers.snapshot import SNAPSHOT_BYTES_MAX, decode_snapshot
from pyspark_barnabas.read.batch_cuts import Damage, chunks
from pyspark_barnabas.segments.log_dirs import SMALL_FILE_BYTES_MAX, PartitionLog, SegmentFiles

_log: Final = logging.getLogger(__name__)


class Aborted(NamedTuple):
    """An aborted transaction: its producer, the offset of its first record, and the offset of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class LogTransactions(NamedTuple):
    """`first_open` is the first offset of the oldest open transaction, at which a read_committed reader stops; None if none is open."""

    aborted: tuple[Aborted, ...]
    first_open: int | None


def transactions_of(log: PartitionLog) -> LogTransactions:
    """The transactions in all segments of one replica."""
    if any(segment.index is None for segment in log.segments):  # some or all of the indexes were not copied
        walk = TransactionWalk({})
        walk.segments(log, log.segments, 0)
        return LogTransactions(tuple(walk.aborted), walk.first_open)
    aborted: list[Aborted] = []
    for segment in log.segments:
        if segment.txn_index is not None:
            aborted.extend(_index_entries(log, segment.txn_index))
    return LogTransactions(tuple(aborted), _first_open(log))


def overlapping(aborted: Iterable[Aborted], first_offset: int, last_offset: int) -> list[Aborted]:
    """The transactions with records or a marker between two offsets, both included."""
    return [transaction for transaction in aborted if transaction.first_offset <= last_offset and transaction.last_offset >= first_offset]


class TransactionWalk:
    """Tracks transactions over batches in offset order. `open` maps each producer with an open transaction to its first offset."""

    def __init__(self, open_: dict[int, int]) -> None:
        self.open = dict(open_)
        self.aborted: list[Aborted] = []

    @property
    def first_open(self) -> int | None:
        return min(self.open.values(), default=None)

    def segments(self, log: PartitionLog, segments: Iterable[SegmentFiles], from_offset: int) -> None:
        for segment in segments:
            with log.store.open(segment.log) as file:
                try:
                    for chunk in chunks(file, 0, segment.size):
                        for batch in chunk.batches:
                            if batch.is_transactional and batch.last_offset >= from_offset:
                                self.batch(chunk.data, batch)
                except Damage as damage:
                    _log.warning("Looking for transactions stops early in a segment: %s", damage)

    def batch(self, data: bytes, batch: Batch) -> None:
        producer_id = int(batch.producer_id)
        if not batch.is_control:
            self.open.setdefault(producer_id, int(batch.base_offset))
            return
        records = read_records(data, batch)
        kind = parse_control_type(records[0]) if len(records) else None
        first = self.open.pop(producer_id, None) if kind in (ABORT, COMMIT) else None
        if kind == ABORT and first is not None:
            self.aborted.append(Aborted(producer_id, first, int(batch.last_offset)))


def _index_entries(log: PartitionLog, path: str) -> list[Aborted]:
    data = log.store.read(path, SMALL_FILE_BYTES_MAX)
    whole = len(data) - len(data) % ENTRY_SIZE
    return [Aborted(producer_id, first, last) for _, producer_id, first, last, _ in LAYOUT.iter_unpack(data[:whole])]


def _first_open(log: PartitionLog) -> int | None:
    """The first open offset, from the newest readable snapshot and the batches after it."""
    for offset, path in reversed(log.snapshots):
        try:
            entries = decode_snapshot(log.store.read(path, SNAPSHOT_BYTES_MAX), path)
        except (CorruptSnapshot, ValueError, OSError) as error:
            _log.warning("A producer snapshot is passed over: %s", error)
            continue
        open_ = {int(entry.producer_id): int(entry.current_txn_first_offset) for entry in entries if entry.current_txn_first_offset >= 0}
        return _walked(log, open_, offset)
    return _walked(log, {}, 0)


def _walked(log: PartitionLog, open_: dict[int, int], from_offset: int) -> int | None:
    starts = [segment.base_offset for segment in log.segments]
    first = max((number for number, start in enumerate(starts) if start <= from_offset), default=0)
    walk = TransactionWalk(open_)
    walk.segments(log, log.segments[first:], from_offset)
    return walk.first_open
