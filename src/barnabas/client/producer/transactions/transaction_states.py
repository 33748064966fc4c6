"""The states of a transactional producer, and from which each can be reached.

UNINITIALIZED ─▶ INITIALIZING ─▶ READY ─▶ IN_TRANSACTION ─▶ COMMITTING_TRANSACTION ─▶ READY, or INITIALIZING for another epoch
                                                │  └───────▶ ABORTING_TRANSACTION   ─▶ the same
                                                └─▶ ABORTABLE_ERROR ─▶ ABORTING_TRANSACTION
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(Enum):
    UNINITIALIZED = 0
    INITIALIZING = 1
    READY = 2
    IN_TRANSACTION = 3
    COMMITTING_TRANSACTION = 4
    ABORTING_TRANSACTION = 5
    ABORTABLE_ERROR = 6
    FATAL_ERROR = 7


# From which states each state can be reached. A fatal error can come at any time, and nothing comes after it.
PREVIOUS: Final[Mapping[State, frozenset[State]]] = {
    State.UNINITIALIZED: frozenset({State.READY, State.ABORTABLE_ERROR}),
    State.INITIALIZING: frozenset({State.UNINITIALIZED, State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION}),
    State.READY: frozenset({State.INITIALIZING, State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION}),
    State.IN_TRANSACTION: frozenset({State.READY}),
    State.COMMITTING_TRANSACTION: frozenset({State.IN_TRANSACTION}),
    State.ABORTING_TRANSACTION: frozenset({State.IN_TRANSACTION, State.ABORTABLE_ERROR}),
    State.ABORTABLE_ERROR: frozenset({State.IN_TRANSACTION, State.COMMITTING_TRANSACTION, State.ABORTABLE_ERROR, State.INITIALIZING}),
    State.FATAL_ERROR: frozenset(State),
}
