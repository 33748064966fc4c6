"""The states of a transaction, with Kafka's ids and names, and the states from which each may be entered.

The ids are in the log, the names in responses. This module says whether a transition is allowed, not when it happens.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class TransactionState(Enum):
    """Value: the id in the log, and the name in the responses of DescribeTransactions and ListTransactions."""

    EMPTY = (0, "Empty")
    ONGOING = (1, "Ongoing")
    PREPARE_COMMIT = (2, "PrepareCommit")
    PREPARE_ABORT = (3, "PrepareAbort")
    COMPLETE_COMMIT = (4, "CompleteCommit")
    COMPLETE_ABORT = (5, "CompleteAbort")
    DEAD = (6, "Dead")  # expired; its tombstone is being written
    PREPARE_EPOCH_FENCE = (7, "PrepareEpochFence")  # never in the log: a fencing abort is written as PrepareAbort

    @property
    def id(self) -> int:
        return self.value[0]

    @property
    def title(self) -> str:
        return self.value[1]

    @property
    def is_prepared(self) -> bool:
        """The end is decided and in the log; the markers are being written."""
        return self is TransactionState.PREPARE_COMMIT or self is TransactionState.PREPARE_ABORT

    @property
    def is_settled(self) -> bool:
        """No transaction is open: the next one may begin, and the id may expire."""
        return self in _SETTLED

    def may_follow(self, previous: TransactionState) -> bool:
        return previous in VALID_PREVIOUS_STATES[self]


_S = TransactionState
_SETTLED: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})

# PrepareAbort of a settled transaction: with transaction.version 2 a producer may abort a transaction it never began, to get a new epoch.
VALID_PREVIOUS_STATES: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: _SETTLED,
    _S.ONGOING: _SETTLED | {_S.ONGOING},
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: _SETTLED | {_S.ONGOING, _S.PREPARE_EPOCH_FENCE},
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: _SETTLED,
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}

_BY_ID: Final = {state.id: state for state in TransactionState}
_BY_TITLE: Final = {state.title: state for state in TransactionState}


def state_of_id(state_id: int) -> TransactionState:
    try:
        return _BY_ID[state_id]
    except KeyError:
        raise ValueError(f"Unknown transaction state id {state_id} in the transaction log") from None


def state_of_title(title: str) -> TransactionState | None:
    return _BY_TITLE.get(title)
