"""The records of the decision log, and their encoding.

A key begins with the prefix of the query's transactional ids, and ends with a nonce: no two records have the same key, so that compaction
removes exactly those with a tombstone, and never changes the order of the others. This module decides nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

SEPARATOR: Final = "\x00"

_CLAIM: Final = "claim"
_DECIDE: Final = "decide"
_DONE: Final = "done"


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """A transactional id within a query: the task's partition, and a number among its attempts."""

    partition: int
    number: int

    def transactional_id(self, prefix: str) -> str:
        return f"{prefix}-{self.partition}-{self.number}"


def slot_of(transactional_id: str, prefix: str) -> Slot | None:
    """The slot of a transactional id; None if it does not belong to exactly this prefix."""
    match = re.fullmatch(r"-(\d+)-(\d+)", transactional_id[len(prefix) :]) if transactional_id.startswith(prefix) else None
    return None if match is None else Slot(int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True)
class Transaction:
    """One task's open transaction: transactional id, producer id and epoch."""

    slot: Slot
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A run of a batch, identified by its token, begins to write; only the newest run counts. With a partition the claim requests a slot
    of it; without one it only supersedes the previous run."""

    query: str
    batch: int
    nonce: str
    token: str
    partition: int | None


@dataclass(frozen=True, slots=True)
class Decide:
    """The run's transactions must be committed if this record counts: see `decision_log`. `limit_ms` runs from the run's first claim."""

    query: str
    batch: int
    nonce: str
    token: str
    transactions: tuple[Transaction, ...]
    rows: int
    checksum: int
    limit_ms: int


@dataclass(frozen=True, slots=True)
class Done:
    """All transactions of a decision are committed. It keeps what must outlive the claims, which are removed now: slots that an attempt may
    still use (`busy`), and those of them that are free again (`freed`), each with the time of the claim."""

    query: str
    batch: int
    nonce: str
    token: str
    rows: int
    checksum: int
    busy: tuple[tuple[Slot, int], ...] = ()
    freed: tuple[tuple[Slot, int], ...] = ()


Record = Claim | Decide | Done


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Removes the record with this key."""

    key: bytes


def start_of_keys(prefix: str) -> bytes:
    return (prefix + SEPARATOR).encode()


def encode(prefix: str, record: Record | Tombstone) -> tuple[bytes, bytes | None]:
    """The key and value of a record."""
    if isinstance(record, Tombstone):
        return record.key, None
    value: dict[str, object]
    if isinstance(record, Claim):
        kind, value = _CLAIM, {"token": record.token, "partition": record.partition}
    elif isinstance(record, Decide):
        kind = _DECIDE
        value = {
            "token": record.token,
            "transactions": [[one.slot.partition, one.slot.number, one.producer_id, one.epoch] for one in record.transactions],
            "rows": record.rows,
            "checksum": record.checksum,
            "limit_ms": record.limit_ms,
        }
    else:
        kind = _DONE
        value = {
            "token": record.token,
            "rows": record.rows,
            "checksum": record.checksum,
            "busy": [[slot.partition, slot.number, since_ms] for slot, since_ms in record.busy],
            "freed": [[slot.partition, slot.number, since_ms] for slot, since_ms in record.freed],
        }
    key = SEPARATOR.join((prefix, kind, record.query, str(record.batch), record.nonce))
    return key.encode(), json.dumps(value, separators=(",", ":")).encode()


def decode(key: bytes, value: bytes | None) -> Record | Tombstone:
    """Raises ValueError for bytes that are not a record of a decision log."""
    if value is None:
        return Tombstone(key)
    parts = key.decode().split(SEPARATOR)
    if len(parts) != 5:
        raise ValueError(f"{key!r} is no key of a decision log")
    _, kind, query, batch_text, nonce = parts
    fields = json.loads(value)
    batch, token = int(batch_text), str(fields["token"])
    if kind == _CLAIM:
        return Claim(query, batch, nonce, token, fields["partition"])
    if kind == _DECIDE:
        transactions = tuple(Transaction(Slot(one[0], one[1]), one[2], one[3]) for one in fields["transactions"])
        return Decide(query, batch, nonce, token, transactions, fields["rows"], fields["checksum"], fields["limit_ms"])
    if kind == _DONE:
        return Done(query, batch, nonce, token, fields["rows"], fields["checksum"], _times(fields["busy"]), _times(fields["freed"]))
    raise ValueError(f"{kind!r} is no kind of record of a decision log")


def _times(entries: list[list[int]]) -> tuple[tuple[Slot, int], ...]:
    return tuple((Slot(entry[0], entry[1]), entry[2]) for entry in entries)
