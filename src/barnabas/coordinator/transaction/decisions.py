# Compiled by mypyc: src/compiled.toml lists this module.
"""Decides the effect of InitProducerId and EndTxn on a transaction, in Kafka's order of checks.

Pure functions: from the state of a transactional id and the request they return the next state, or raise Kafka's error code. The shard
writes the step; nothing here changes state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.coordinator.transaction.transaction_metadata import (
    EPOCH_BUMP_VERSION,
    LAST_CLIENT_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
    is_epoch_exhausted,
)
from barnabas.coordinator.transaction.transaction_state import TransactionState
from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode

NewId = Callable[[], int]


class TransactionRefused(KafkaError):
    """The request cannot be served; `code` says why."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = int(code)


class Expected(NamedTuple):
    """The producer id and epoch in the client's request (KIP-360)."""

    producer_id: int
    epoch: int


def decide_init(
    current: TransactionMetadata, timeout_ms: int, expected: Expected | None, new_id: NewId, server_version: int, now_ms: int
) -> TransactionMetadata:
    """The step of InitProducerId. A prepared result aborts the open transaction: the client has to retry when that is complete."""
    if expected is not None and not _is_current_producer(current, expected):
        raise TransactionRefused(ErrorCode.PRODUCER_FENCED)
    if current.state is TransactionState.ONGOING:
        return current.fenced(server_version, now_ms)
    if _needs_new_id(current, expected):
        last_epoch = NO_PRODUCER_EPOCH if expected is None else expected.epoch
        return current.with_new_producer_id(new_id(), last_epoch, timeout_ms, now_ms)
    return _with_next_epoch(current, timeout_ms, expected, now_ms)


def _is_current_producer(current: TransactionMetadata, expected: Expected) -> bool:
    """If not, another producer has used this transactional id since, and the client is fenced."""
    if current.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == current.producer_id:
        return True
    # A retry: the response with the new producer id was lost.
    return expected.producer_id == current.previous_producer_id and is_epoch_exhausted(expected.epoch)


def _needs_new_id(current: TransactionMetadata, expected: Expected | None) -> bool:
    if not current.is_epoch_exhausted:
        return False
    if expected is None or expected.epoch == current.producer_epoch:
        return True
    # Its transaction was aborted by timeout, in the one epoch that no client gets.
    return current.producer_epoch > LAST_CLIENT_EPOCH and expected.epoch == current.last_producer_epoch


def _with_next_epoch(current: TransactionMetadata, timeout_ms: int, expected: Expected | None, now_ms: int) -> TransactionMetadata:
    if expected is None:
        return current.with_epoch(current.producer_epoch + 1, NO_PRODUCER_EPOCH, timeout_ms, now_ms)
    if current.producer_epoch in (NO_PRODUCER_EPOCH, expected.epoch):
        return current.with_epoch(current.producer_epoch + 1, current.producer_epoch, timeout_ms, now_ms)
    if expected.epoch == current.last_producer_epoch:  # a retry; a different producer in between would have cleared the last epoch
        return current.with_epoch(current.producer_epoch, current.last_producer_epoch, timeout_ms, now_ms)
    raise TransactionRefused(ErrorCode.PRODUCER_FENCED)


def decide_end(
    current: TransactionMetadata | None,
    producer_id: int,
    epoch: int,
    *,
    is_busy: bool,
    committed: bool,
    client_version: int,
    new_id: NewId,
    now_ms: int,
) -> TransactionMetadata:
    """The step of EndTxn; `current` itself for a retry of a completed step. `is_busy`: another step is being written."""
    if client_version < EPOCH_BUMP_VERSION:
        return _end_without_bump(current, producer_id, epoch, is_busy, committed, now_ms)
    if is_busy:
        raise TransactionRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current is None:
        raise TransactionRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    return _end_with_bump(current, producer_id, epoch, committed, client_version, new_id, now_ms)


def _end_without_bump(
    current: TransactionMetadata | None, producer_id: int, epoch: int, is_busy: bool, committed: bool, now_ms: int
) -> TransactionMetadata:
    if current is None or current.producer_id != producer_id:
        raise TransactionRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.producer_epoch != epoch:
        raise TransactionRefused(ErrorCode.PRODUCER_FENCED)
    if is_busy:
        raise TransactionRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is TransactionState.ONGOING:
        return current.prepared(committed=committed, client_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms)
    if current.state is _COMPLETED[committed]:
        return current
    raise TransactionRefused(ErrorCode.INVALID_TXN_STATE)


def _end_with_bump(
    current: TransactionMetadata, producer_id: int, epoch: int, committed: bool, client_version: int, new_id: NewId, now_ms: int
) -> TransactionMetadata:
    """From version 2 on, the current epoch means the next transaction, and the epoch before it means a retry.

    |                | abort, retry      | abort             | commit, retry     | commit            |
    |----------------|-------------------|-------------------|-------------------|-------------------|
    | Empty          | PRODUCER_FENCED   | next epoch        | PRODUCER_FENCED   | INVALID_TXN_STATE |
    | CompleteAbort  | answered again    | next epoch        | INVALID_TXN_STATE | INVALID_TXN_STATE |
    | CompleteCommit | INVALID_TXN_STATE | next epoch        | answered again    | INVALID_TXN_STATE |
    """
    is_rotated = current.previous_producer_id == producer_id and epoch == LAST_CLIENT_EPOCH and current.producer_epoch == 0
    is_retry = is_rotated or current.producer_epoch == epoch + 1
    if current.producer_id != producer_id and not is_rotated:
        raise TransactionRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_complete = current.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
    if current.producer_epoch != epoch and not (is_complete and is_retry):
        raise TransactionRefused(ErrorCode.PRODUCER_FENCED)
    if is_complete and is_retry:
        if current.state is not _COMPLETED[committed]:
            raise TransactionRefused(ErrorCode.INVALID_TXN_STATE)
        return current
    if committed and current.state is not TransactionState.ONGOING:
        raise TransactionRefused(ErrorCode.INVALID_TXN_STATE)
    next_id = new_id() if current.is_epoch_exhausted else NO_PRODUCER_ID
    return current.prepared(committed=committed, client_version=client_version, next_producer_id=next_id, now_ms=now_ms)


_COMPLETED: Final = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}
