"""The protocol by which each row of each batch becomes visible once: the writing task, the driver's commit, its abort.

The functions are generators that yield the next step and receive its answer; they have no effects themselves. `runner` carries out the
steps on a broker, and a test carries them out on a model, in any order and with a crash after any step. The test proves the order of the
steps:

- a task claims its slot before it initializes the id that the slot names, and reads the log again in between;
- a driver ends nothing before it has read its own decision back;
- a process that finds a decision carries it out before it claims anew;
- an abort names producer id and epoch from before the log was read, so that it cannot hit a newer transaction.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from pyspark_barnabas.exactly_once.decision_log import BUSY_MS_MAX, BatchDecision, DecisionLog
from pyspark_barnabas.exactly_once.errors import LostTransactionError, NotDecidedError, ReplayMismatchError, SupersededError
from pyspark_barnabas.exactly_once.records import Claim, Decide, Done, Record, Slot, Tombstone, Transaction

GARBAGE_MAX: Final = 500  # tombstones written with one DONE

T = TypeVar("T")
Steps = Generator["Step", Any, T]


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Reads the log to its current end. Answer: DecisionLog."""


@dataclass(frozen=True, slots=True)
class Append:
    """Appends to the decision log. Answer: whether it was acknowledged. If not, the record may or may not be in the log. It is never sent
    again unchanged, because compaction would move a record that is in the log twice."""

    records: tuple[Record | Tombstone, ...]


@dataclass(frozen=True, slots=True)
class Initialize:
    """Initializes the transactional id of this slot, which aborts an open transaction of it. Answer: Transaction; or None if it is unknown
    whether the request arrived: then the slot is given up, because the request may arrive when another task has it."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class End:
    """Commits or aborts exactly these transactions. Answer: those that were neither open nor already ended in the same way."""

    transactions: tuple[Transaction, ...]
    commit: bool


@dataclass(frozen=True, slots=True)
class ListOpen:
    """Lists the open transactions with ids of the prefix. Answer: list of Transaction."""


Step = ReadLog | Append | Initialize | End | ListOpen


@dataclass(frozen=True, slots=True)
class RunOf:
    """One run of one batch; only its tasks have its token."""

    query: str
    batch: int
    token: str
    limit_ms: int


@dataclass(frozen=True, slots=True)
class AlreadyDecided:
    """The batch is decided already: the task writes nothing and only computes the checksum of its rows."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The task may write in this transaction. `freed` are the slots whose transactions it aborted."""

    transaction: Transaction
    freed: tuple[Slot, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The message of a task to the driver; without a transaction if it had no rows or was a replay."""

    rows: int = 0
    checksum: int = 0
    transaction: Transaction | None = None
    freed: tuple[Slot, ...] = ()


class Names(Protocol):
    """Generates unique names: random in production, counted in tests."""

    def nonce(self) -> str: ...


# The task


def begin(run: RunOf, partition: int, names: Names) -> Steps[Begun | AlreadyDecided]:
    """The steps of a task before its first row."""
    while True:
        log: DecisionLog = yield ReadLog()
        if _is_replay(log, run):
            return AlreadyDecided()
        if log.undone is not None:
            yield from finish(log.undone, (), names)
            continue
        nonce = names.nonce()
        acknowledged: bool = yield Append((Claim(run.query, run.batch, nonce, run.token, partition),))
        log = yield ReadLog()
        if _is_replay(log, run):
            return AlreadyDecided()
        slot = log.slot(nonce)
        if slot is None and (not acknowledged or log.undone is not None):
            continue  # the claim did not arrive, or is after a decision that must be carried out first
        if slot is None or not log.is_newest(run.token):
            raise SupersededError(
                f"Another driver has taken over batch {run.batch}: two queries run with the same 'transactionalIdPrefix', "
                "or Spark has started this one anew. Stop one of them, or give each a prefix of its own."
            )
        freed: tuple[Slot, ...] = ()
        if log.is_first(nonce) and log.has_strays(run.token):
            freed = yield from fence()
        transaction: Transaction | None = yield Initialize(slot)
        if transaction is not None:
            return Begun(transaction, freed)


def _is_replay(log: DecisionLog, run: RunOf) -> bool:
    if not log.is_decided(run.query, run.batch):
        return False
    if log.decision(run.query, run.batch) is None:
        raise ReplayMismatchError(
            f"Batch {run.batch} comes again, though it was committed long ago: the checkpoint was rolled back by many batches. "
            "Restore the newest checkpoint; or start with a new checkpoint and a new 'transactionalIdPrefix' if its rows are wanted twice."
        )
    return True


def fence() -> Steps[tuple[Slot, ...]]:
    """Aborts open transactions that will never be decided, so that they do not block readers; returns their slots."""
    transactions: Sequence[Transaction] = yield ListOpen()
    if not transactions:
        return ()
    log: DecisionLog = yield ReadLog()
    strays = tuple(one for one in transactions if log.is_stray(one.slot))
    if not strays:
        return ()
    yield End(strays, False)
    return tuple(one.slot for one in strays)


# The driver


def commit(run: RunOf, reports: Sequence[Report], names: Names, verify: str = "rows") -> Steps[None]:
    """The driver's commit, after all tasks have reported. Returns only when the whole batch is committed and the log has DONE."""
    log: DecisionLog = yield ReadLog()
    transactions = tuple(report.transaction for report in reports if report.transaction is not None)
    rows, checksum = sum(report.rows for report in reports), total_checksum(reports)
    decision = log.decision(run.query, run.batch) if _is_replay(log, run) else None
    if decision is None:
        if not transactions:
            return
        decision = yield from _decide(run, transactions, rows, checksum, names)
    elif transactions and decision.token != run.token:
        raise SupersededError(f"Batch {run.batch} was decided by another run of the query while this one was writing it.")
    elif not transactions:
        _verify(decision, rows, checksum, verify)
    if not decision.done:
        yield from finish(decision, [slot for report in reports for slot in report.freed], names)


def total_checksum(reports: Iterable[Report]) -> int:
    """The checksum of all rows, independent of their tasks."""
    return sum(report.checksum for report in reports) & (2**64 - 1)


def _decide(run: RunOf, transactions: tuple[Transaction, ...], rows: int, checksum: int, names: Names) -> Steps[BatchDecision]:
    acknowledged = False
    while True:
        record = Decide(run.query, run.batch, names.nonce(), run.token, transactions, rows, checksum, run.limit_ms)
        acknowledged = yield Append((record,))
        log: DecisionLog = yield ReadLog()
        decision = log.decision(run.query, run.batch)
        if acknowledged or decision is not None or not log.is_newest(run.token):
            break
    if decision is None or decision.token != run.token:
        raise NotDecidedError(
            f"Batch {run.batch} was not committed: {log.why_not(run.query, run.batch, run.token, run.limit_ms)}. Nothing of it is visible. "
            "If it happens again, make batches smaller ('maxOffsetsPerTrigger') or raise 'kafka.transaction.timeout.ms' "
            "and the broker's transaction.max.timeout.ms."
        )
    return decision


def finish(decision: BatchDecision, freed: Iterable[Slot], names: Names) -> Steps[None]:
    """Commits the transactions of a decision, cleans up and appends DONE. Every process that finds a decision without DONE does the
    same."""
    gone: Sequence[Transaction] = yield End(decision.transactions, True)
    if gone:
        log: DecisionLog = yield ReadLog()
        known = log.decision(decision.query, decision.batch)
        if known is None or known.done or log.undone is None:
            return  # another process has done it, and the ids are in use again
        raise LostTransactionError(
            f"Batch {decision.batch} was decided, but {len(gone)} of its {len(decision.transactions)} transactions cannot be committed any "
            f"more (slots {', '.join(f'{one.slot.partition}-{one.slot.number}' for one in gone)}): brokers were away for longer than "
            "kafka.transaction.timeout.ms, or somebody ended them. Some of its rows are missing: write them by hand, then go on with a new "
            "'transactionalIdPrefix'."
        )
    free = {*freed, *(yield from fence())}
    while True:
        log = yield ReadLog()
        if log.undone is None or log.undone.token != decision.token:
            return  # it is in the log now: from another process, or our own append
        if (yield Append((_done(decision, log, free, names), *log.garbage(decision.query, decision.batch, GARBAGE_MAX)))):
            return


def _done(decision: BatchDecision, log: DecisionLog, free: set[Slot], names: Names) -> Done:
    busy = {slot: since_ms for slot, since_ms in log.busy.items() if log.now_ms - since_ms <= BUSY_MS_MAX}
    return Done(
        decision.query,
        decision.batch,
        names.nonce(),
        decision.token,
        decision.rows,
        decision.checksum,
        tuple(sorted((slot, since_ms) for slot, since_ms in busy.items() if slot not in free)),
        tuple(sorted((slot, since_ms) for slot, since_ms in busy.items() if slot in free)),
    )


def _verify(decision: BatchDecision, rows: int, checksum: int, verify: str) -> None:
    if verify == "none":
        return
    if rows != decision.rows or (verify == "rows" and checksum != decision.checksum):
        other = f"{rows} rows instead of {decision.rows}" if rows != decision.rows else f"{rows} rows, but not the same"
        raise ReplayMismatchError(
            f"Batch {decision.batch} was committed before and is now repeated with {other}. The checkpoint was rolled back, or the query "
            "gives other rows each time (rand(), uuid()). Restore the newest checkpoint; if the rows are meant to differ, set the option "
            "'verifyReplays' to 'count' or 'none'."
        )


def abort(run: RunOf, reports: Sequence[Report], names: Names) -> Steps[None]:
    """The driver's abort, after a task or `commit` failed: aborts the open transactions, unless the batch was decided after all.

    An unacknowledged DECIDE may still arrive: a new claim before it makes it void first.
    """
    transactions = tuple(report.transaction for report in reports if report.transaction is not None)
    if not transactions:
        return
    log: DecisionLog = yield ReadLog()
    while log.is_newest(run.token):
        nonce = names.nonce()
        yield Append((Claim(run.query, run.batch, nonce, f"abort-{nonce}", None),))
        log = yield ReadLog()
    decision = log.decision(run.query, run.batch)
    if decision is None or decision.token != run.token:
        yield End(transactions, False)
