# Compiled by mypyc: src/compiled.toml lists this module.
"""The state of one assigned partition: its position, and whether the position is valid, awaits a reset, or awaits validation.

The transitions are a table. A transition that the table does not allow is ignored, as in Kafka: it was requested too late. The state
belongs to the SubscriptionState, whose lock is held for every change.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from barnabas.client.consumer.offsets.offset_and_metadata import OffsetAndMetadata
from barnabas.client.consumer.offsets.offset_reset import AutoOffsetResetStrategy
from barnabas.topic_partition import TopicPartition


class FetchState(Enum):
    INITIALIZING = "INITIALIZING"  # no position yet
    FETCHING = "FETCHING"
    AWAIT_RESET = "AWAIT_RESET"  # the position must be looked up by a strategy
    AWAIT_VALIDATION = "AWAIT_VALIDATION"  # the leader changed: the records that were read may have been truncated


ALL_FETCH_STATES: Final = frozenset(FetchState)

# Every state with its allowed previous states.
FETCH_STATES_BEFORE: Final[dict[FetchState, frozenset[FetchState]]] = {
    FetchState.INITIALIZING: frozenset(),
    FetchState.FETCHING: ALL_FETCH_STATES,
    FetchState.AWAIT_RESET: ALL_FETCH_STATES,
    FetchState.AWAIT_VALIDATION: frozenset({FetchState.INITIALIZING, FetchState.FETCHING, FetchState.AWAIT_VALIDATION}),
}

FETCH_STATES_WITH_POSITION: Final = frozenset({FetchState.FETCHING, FetchState.AWAIT_VALIDATION})


class FetchPosition:
    """The next offset, the epoch of the last record read, and the leader with its epoch. Immutable; -1 means unknown."""

    __slots__ = ("leader_epoch", "leader_id", "offset", "offset_epoch")

    def __init__(self, offset: int, offset_epoch: int = -1, leader_id: int = -1, leader_epoch: int = -1) -> None:
        self.offset = offset
        self.offset_epoch = offset_epoch
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FetchPosition):
            return NotImplemented
        return (
            self.offset == other.offset
            and self.offset_epoch == other.offset_epoch
            and self.leader_id == other.leader_id
            and self.leader_epoch == other.leader_epoch
        )

    def __hash__(self) -> int:
        return hash((self.offset, self.offset_epoch, self.leader_id, self.leader_epoch))

    def __repr__(self) -> str:
        return (
            f"FetchPosition(offset={self.offset}, offset_epoch={self.offset_epoch}, "
            f"leader_id={self.leader_id}, leader_epoch={self.leader_epoch})"
        )


class Truncation(NamedTuple):
    """A loss of records that were already read, after a leader change; `divergent` is the offset where the logs diverge, if known."""

    partition: TopicPartition
    position: FetchPosition
    divergent: OffsetAndMetadata | None


class TopicPartitionState:
    """The state of one assigned partition."""

    def __init__(self) -> None:
        self.fetch_state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        self.high_watermark: int | None = None
        self.log_start_offset: int | None = None
        self.last_stable_offset: int | None = None
        self.paused = False
        self.pending_revocation = False
        self.pending_on_assigned_callback = False
        self.reset_strategy: AutoOffsetResetStrategy | None = None
        self.next_retry_ms: int | None = None
        self.preferred_read_replica: int | None = None
        self.preferred_read_replica_until_ms = 0
        self.end_offset_requested = False

    @property
    def has_valid_position(self) -> bool:
        return self.fetch_state is FetchState.FETCHING

    @property
    def is_fetchable(self) -> bool:
        return (
            self.fetch_state is FetchState.FETCHING
            and not self.paused
            and not self.pending_revocation
            and not self.pending_on_assigned_callback
        )

    def may_retry(self, now_ms: int) -> bool:
        return self.next_retry_ms is None or now_ms >= self.next_retry_ms

    def seek_validated(self, position: FetchPosition) -> None:
        if self._enter(FetchState.FETCHING, position):
            self.reset_strategy = None

    def seek_unvalidated(self, position: FetchPosition) -> None:
        self.seek_validated(position)
        self.validate(position)

    def validate(self, position: FetchPosition) -> None:
        """Starts validation. Without epochs there is nothing to validate, and fetching continues."""
        has_epochs = position.offset_epoch >= 0 and position.leader_epoch >= 0
        self._enter(FetchState.AWAIT_VALIDATION if has_epochs else FetchState.FETCHING, position)

    def reset(self, strategy: AutoOffsetResetStrategy) -> None:
        if self._enter(FetchState.AWAIT_RESET, None):
            self.reset_strategy = strategy

    def _enter(self, state: FetchState, position: FetchPosition | None) -> bool:
        if self.fetch_state not in FETCH_STATES_BEFORE[state]:
            return False
        self.fetch_state = state
        self.position = position
        self.next_retry_ms = None
        return True


def epoch_or_none(epoch: int) -> int | None:
    return epoch if epoch >= 0 else None
