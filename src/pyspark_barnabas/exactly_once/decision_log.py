"""The state of the decision log of one prefix: a fold over its records in their order.

The order of the log is the lock between drivers. A run of a batch *claims* it before it opens a transaction, and the newest claim is the
only one that can be decided: a DECIDE counts if, at its position, its run is the newest, its time limit has not passed, and no other
decision is being carried out. All readers of the same records get the same state, whichever process crashed; therefore nothing else may be
an input.

The log also assigns slots, from which transactional ids are made. A claimed slot that the decision does not contain stays *busy*: an
attempt that is still alive may initialize its id later, and would abort the open transaction of another task. Busy slots are not assigned
until the transaction of the attempt was seen open and aborted, or a day has passed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyspark_barnabas.exactly_once.records import Claim, Decide, Done, Record, Slot, Tombstone, Transaction

BUSY_MS_MAX: Final = 24 * 3600 * 1000
DONE_KEPT: Final = 100  # batches that can be verified when Spark replays them; as many as Spark keeps in a checkpoint


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """A decided batch; its transactions are kept until they are `done`."""

    query: str
    batch: int
    token: str
    rows: int
    checksum: int
    transactions: tuple[Transaction, ...] = ()
    done: bool = False


@dataclass(frozen=True, slots=True)
class BatchRun:
    """A run of a batch, and the time of its claim."""

    query: str
    batch: int
    token: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a slot."""

    token: str
    nonce: str
    since_ms: int


@dataclass(slots=True)
class _Query:
    last_batch: int = -1
    decisions: dict[int, BatchDecision] = field(default_factory=dict)


class DecisionLog:
    """`apply` takes the records in the order of the log."""

    def __init__(self) -> None:
        self.newest: BatchRun | None = None
        self.undone: BatchDecision | None = None
        self.held: dict[Slot, Holder] = {}
        self.busy: dict[Slot, int] = {}
        self.now_ms = 0  # time of the last record
        self._runs: dict[str, BatchRun] = {}
        self._slots: dict[str, Slot] = {}
        self._queries: dict[str, _Query] = {}
        self._keys: dict[bytes, Record] = {}

    # Queries

    def decision(self, query: str, batch: int) -> BatchDecision | None:
        known = self._queries.get(query)
        return None if known is None else known.decisions.get(batch)

    def is_decided(self, query: str, batch: int) -> bool:
        """True also for batches whose old decision is no longer kept."""
        known = self._queries.get(query)
        return known is not None and batch <= known.last_batch

    def is_known(self, query: str) -> bool:
        return query in self._queries

    def slot(self, nonce: str) -> Slot | None:
        """The slot of a claim; None if the claim was too late."""
        return self._slots.get(nonce)

    def is_newest(self, token: str) -> bool:
        return self.newest is not None and self.newest.token == token

    def is_first(self, nonce: str) -> bool:
        """Whether a claim is the first of the newest run."""
        first = next((holder for holder in self.held.values() if self.is_newest(holder.token)), None)
        return first is not None and first.nonce == nonce

    def has_strays(self, token: str) -> bool:
        """Whether other runs hold slots or left them busy: they may have left transactions open."""
        return bool(self.busy) or any(holder.token != token for holder in self.held.values())

    def is_stray(self, slot: Slot) -> bool:
        """Whether an open transaction of this slot will never be decided: no current run holds the slot."""
        if self.undone is not None and any(one.slot == slot for one in self.undone.transactions):
            return False
        holder = self.held.get(slot)
        return holder is None or not self.is_newest(holder.token)

    def why_not(self, query: str, batch: int, token: str, limit_ms: int) -> str:
        """The reason, as text, why a written DECIDE did not count."""
        if self.is_newest(token):
            assert self.newest is not None
            took_ms = self.now_ms - self.newest.since_ms
            return f"it took {took_ms} ms, and after {limit_ms} ms its transactions might be timed out"
        if self.undone is not None or self.is_decided(query, batch):
            return "another run of the same batch was decided before"
        return "another driver has claimed the batch since"

    def garbage(self, query: str, batch: int, limit: int) -> list[Tombstone]:
        """The keys of records that are not needed after this batch is done."""
        tombstones: list[Tombstone] = []
        for key, record in self._keys.items():
            kept = DONE_KEPT if isinstance(record, Done) else 0
            if record.query == query and record.batch + kept <= batch and len(tombstones) < limit:
                tombstones.append(Tombstone(key))
        return tombstones

    # Folding

    def apply(self, key: bytes, record: Record | Tombstone, timestamp_ms: int) -> None:
        self.now_ms = max(self.now_ms, timestamp_ms)
        if isinstance(record, Tombstone):
            self._keys.pop(record.key, None)
            return
        self._keys[key] = record
        if isinstance(record, Claim):
            self._claim(record)
        elif isinstance(record, Decide):
            self._decide(record)
        else:
            self._done(record)

    def _claim(self, claim: Claim) -> None:
        if self.is_decided(claim.query, claim.batch) or self.undone is not None or claim.nonce in self._slots:
            return
        if claim.token not in self._runs:
            self.newest = self._runs[claim.token] = BatchRun(claim.query, claim.batch, claim.token, self.now_ms)
        elif not self.is_newest(claim.token):
            return  # a superseded run stays superseded
        if claim.partition is not None:
            slot = self._free_slot(claim.partition)
            self._slots[claim.nonce] = slot
            self.held[slot] = Holder(claim.token, claim.nonce, self.now_ms)
            self.busy.pop(slot, None)

    def _free_slot(self, partition: int) -> Slot:
        number = 0
        while (slot := Slot(partition, number)) in self.held or self._is_busy(slot):
            number += 1
        return slot

    def _is_busy(self, slot: Slot) -> bool:
        since_ms = self.busy.get(slot)
        return since_ms is not None and self.now_ms - since_ms <= BUSY_MS_MAX

    def _decide(self, decide: Decide) -> None:
        run = self.newest
        if run is None or (run.query, run.batch, run.token) != (decide.query, decide.batch, decide.token):
            return
        if self.undone is not None or self.now_ms - run.since_ms > decide.limit_ms:
            return
        for one in decide.transactions:
            holder = self.held.get(one.slot)
            if holder is None or holder.token != decide.token:
                return
        decision = BatchDecision(decide.query, decide.batch, decide.token, decide.rows, decide.checksum, decide.transactions)
        for one in decide.transactions:
            del self.held[one.slot]
        for slot, holder in self.held.items():
            self.busy[slot] = holder.since_ms
        self.undone = decision
        self._decided(decision)

    def _decided(self, decision: BatchDecision) -> None:
        known = self._queries.setdefault(decision.query, _Query())
        known.decisions[decision.batch] = decision
        known.last_batch = max(known.last_batch, decision.batch)
        for batch in [batch for batch in known.decisions if batch <= known.last_batch - DONE_KEPT]:
            del known.decisions[batch]
        # No claim of this batch counts any more, so its slots need not be kept.
        self.newest = None
        self.held = {}
        self._slots = {}
        self._runs = {token: run for token, run in self._runs.items() if run.query != decision.query or run.batch > decision.batch}

    def _done(self, done: Done) -> None:
        self._settle(done)
        for slot, since_ms in done.busy:
            if slot not in self.held:
                self.busy.setdefault(slot, since_ms)
        for slot, since_ms in done.freed:
            if self.busy.get(slot) == since_ms:
                del self.busy[slot]

    def _settle(self, done: Done) -> None:
        known = self._queries.setdefault(done.query, _Query())
        undone = self.undone
        if done.batch < known.last_batch or (undone is not None and (undone.query, undone.batch) != (done.query, done.batch)):
            return  # repeated by a late process
        if done.batch not in known.decisions or undone is not None:
            # If compaction removed the claims and the decision, older records are superseded by them.
            self._decided(BatchDecision(done.query, done.batch, done.token, done.rows, done.checksum, done=True))
            self.undone = None
