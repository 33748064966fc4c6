"""Checks a transaction index: compares the aborted transactions that it lists with those in the batches of its segment.

A part of the audit of a segment. Transactions that began in an earlier segment are in the producer snapshot at this segment's base
offset. Without a snapshot, and in the compacted part of a log, less can be checked; only faults that can be proved are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.records.batch import Batch
from barnabas.records.control import ABORT, COMMIT, parse_control_type
from barnabas.records.reader import read_records
from pyspark_barnabas.segments.log_transactions import Aborted


class IndexFault(NamedTuple):
    """`number` is the index of the wrong entry; None if an entry is missing."""

    number: int | None
    detail: str
    first_offset: int
    last_offset: int


class EndedTransactions:
    """Collects the ended transactions from the transactional batches of a segment, in order. `open_` are the first offsets of the
    transactions that were open before the segment, by producer, or None if they are unknown."""

    def __init__(self, open_: Mapping[int, int] | None, cleaned_to: int) -> None:
        self._open: dict[int, int | None] = dict(open_ or {})
        self._knows_earlier = open_ is not None
        self._cleaned_to = cleaned_to
        self._committed: dict[int, int] = {}  # producer by the offset of its marker
        # by the offset of its marker: producer, first offset, whether an entry is required
        self._aborted: dict[int, tuple[int, int | None, bool]] = {}
        self.is_whole = True  # no batch was skipped

    def batch(self, data: bytes, batch: Batch) -> None:
        producer_id, base = int(batch.producer_id), int(batch.base_offset)
        if not batch.is_control:
            # In the compacted part the first batches may be removed.
            self._open.setdefault(producer_id, base if base >= self._cleaned_to else None)
            return
        records = read_records(data, batch)
        kind = parse_control_type(records[0]) if len(records) else None
        if kind not in (ABORT, COMMIT):
            return
        was_open = producer_id in self._open
        first = self._open.pop(producer_id, None)
        if kind == COMMIT:
            self._committed[int(batch.last_offset)] = producer_id
        else:
            self._aborted[int(batch.last_offset)] = (producer_id, first, was_open and base >= self._cleaned_to)

    def faults(self, entries: Iterable[Aborted], end_offset: int) -> Iterator[IndexFault]:
        """The faults of these entries. Entries whose marker is at `end_offset` or later are ignored: they are newer than the part that was
        read."""
        if not self.is_whole:
            return
        listed: set[int] = set()
        for number, entry in enumerate(entries):
            if entry.last_offset >= end_offset:
                continue
            listed.add(entry.last_offset)
            if (detail := self._wrong(entry)) is not None:
                whose = f"entry {number} has a transaction of producer {entry.producer_id} from {entry.first_offset} to {entry.last_offset}"
                yield IndexFault(number, f"{whose}, {detail}", entry.first_offset, entry.last_offset)
        for last_offset, (producer_id, first, is_due) in self._aborted.items():
            if is_due and last_offset not in listed:
                detail = (
                    f"a transaction of producer {producer_id} was aborted at offset {last_offset} and is not listed: readers of committed "
                    "records would be shown it"
                )
                yield IndexFault(None, detail, last_offset if first is None else first, last_offset)

    def _wrong(self, entry: Aborted) -> str | None:
        if entry.last_offset < self._cleaned_to:
            return None  # its marker may be removed, and an entry is no longer required
        if self._committed.get(entry.last_offset) == entry.producer_id:
            return "but the marker there commits it: its records would be hidden"
        producer_id, first, _ = self._aborted.get(entry.last_offset, (None, None, False))
        if producer_id != entry.producer_id:
            return "but no marker that aborts it stands there"
        if first is not None and first != entry.first_offset:
            return f"but it began at {first}"
        return None
