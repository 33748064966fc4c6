"""The states of a transactional producer, and from which each can be reached.

UNINITIALIZED ─▶ INITIALIZING ─▶ READY ─▶ IN_TRANSACTION ─▶ COMMITTING_TRANSACTION ─▶ READY, or INITIALIZING for another epoch
                                                │  └───────▶ ABORTING_TRANSACTION   ─▶ the same
                                                └─▶ ABORTABLE_ERROR ─▶ ABORTING_TRANSACTION
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class TransactionManagerState(Enum):
    UNINITIALIZED = 0
    INITIALIZING = 1
    READY = 2
    IN_TRANSACTION = 3
    COMMITTING_TRANSACTION = 4
    ABORTING_TRANSACTION = 5
    ABORTABLE_ERROR = 6
    FATAL_ERROR = 7


# The states from which each state can be reached. A fatal error is possible at any time, and is final.
PREVIOUS: Final[Mapping[TransactionManagerState, frozenset[TransactionManagerState]]] = {
    TransactionManagerState.UNINITIALIZED: frozenset({TransactionManagerState.READY, TransactionManagerState.ABORTABLE_ERROR}),
    TransactionManagerState.INITIALIZING: frozenset(
        {
            TransactionManagerState.UNINITIALIZED,
            TransactionManagerState.COMMITTING_TRANSACTION,
            TransactionManagerState.ABORTING_TRANSACTION,
        }
    ),
    TransactionManagerState.READY: frozenset(
        {TransactionManagerState.INITIALIZING, TransactionManagerState.COMMITTING_TRANSACTION, TransactionManagerState.ABORTING_TRANSACTION}
    ),
    TransactionManagerState.IN_TRANSACTION: frozenset({TransactionManagerState.READY}),
    TransactionManagerState.COMMITTING_TRANSACTION: frozenset({TransactionManagerState.IN_TRANSACTION}),
    TransactionManagerState.ABORTING_TRANSACTION: frozenset(
        {TransactionManagerState.IN_TRANSACTION, TransactionManagerState.ABORTABLE_ERROR}
    ),
    TransactionManagerState.ABORTABLE_ERROR: frozenset(
        {
            TransactionManagerState.IN_TRANSACTION,
            TransactionManagerState.COMMITTING_TRANSACTION,
            TransactionManagerState.ABORTABLE_ERROR,
            TransactionManagerState.INITIALIZING,
        }
    ),
    TransactionManagerState.FATAL_ERROR: frozenset(TransactionManagerState),
}
