# Compiled by mypyc: src/compiled.toml lists this module.
"""Tracks transactions while compaction reads a log: which were aborted, and which markers are no longer needed.

Records of an aborted transaction are removed at once. A marker stays until no batch of its transaction is left. Compaction stops before the
last stable offset, so every transaction it reads is committed or aborted, and the transaction indexes name the aborted ones in advance.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from mypy_extensions import i64

from barnabas.records.batch import Batch
from barnabas.records.control import ABORT, COMMIT, parse_control_type
from barnabas.records.reader import read_records
from barnabas.storage.indexes.txn_index import AbortedTxn, TransactionIndex


class CleanedTransactions:
    def __init__(self) -> None:
        self.cleaned_index: TransactionIndex | None = None  # of the segment that is written; gets the aborted transactions that stay
        self._expected: list[tuple[int, int, AbortedTxn]] = []  # a heap by first offset
        self._added: int = 0
        self._aborted: dict[int, OngoingAborted] = {}  # by producer id
        self._committed: set[int] = set()  # producers with a batch since their last marker

    def add_aborted(self, transactions: Iterable[AbortedTxn]) -> None:
        """Adds the aborted transactions that the indexes name for the next segment. One that spans segments may be added again."""
        for txn in transactions:
            heappush(self._expected, (txn.first_offset, self._added, txn))
            self._added += 1

    def can_discard(self, data: bytes, batch: Batch) -> bool:
        """Whether a batch belongs to an aborted transaction, or is a marker without batches. Must be called for every batch, in order."""
        self._begin_up_to(batch.last_offset)
        if batch.is_control:
            return self._end(data, batch)
        if not batch.is_transactional:
            return False
        aborted = self._aborted.get(batch.producer_id)
        if aborted is None:
            self._committed.add(batch.producer_id)
            return False
        aborted.seen = True
        return True

    def _begin_up_to(self, offset: i64) -> None:
        while self._expected and self._expected[0][0] <= offset:
            txn = heappop(self._expected)[2]
            if txn.producer_id not in self._aborted:
                self._aborted[txn.producer_id] = OngoingAborted(txn)

    def _end(self, data: bytes, marker: Batch) -> bool:
        records = read_records(data, marker)
        if not records:
            return True  # emptied by an earlier cleaning, and kept only for the epoch of its producer
        producer_id: int = marker.producer_id
        control_type = parse_control_type(records[0])
        if control_type == ABORT:
            aborted = self._aborted.pop(producer_id, None)
            if aborted is None or not aborted.seen:
                return True
            if self.cleaned_index is not None:
                self.cleaned_index.append(aborted.txn)
            return False
        if control_type == COMMIT:
            seen = producer_id in self._committed
            self._committed.discard(producer_id)
            return not seen
        return False


class OngoingAborted:
    """An aborted transaction whose marker has not been read yet."""

    def __init__(self, txn: AbortedTxn) -> None:
        self.txn = txn
        self.seen: bool = False  # whether a batch of it was read
