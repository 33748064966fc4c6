"""The state of each partition in the cleaner.

A partition without a state may be cleaned or paused. Code that needs the segments of a log to stay as they are pauses the partition, which
aborts a cleaning that is under way.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from barnabas.topic_partition import TopicPartition


class CleaningState(Enum):
    NONE = "None"
    IN_PROGRESS = "LogCleaningInProgress"
    ABORTED = "LogCleaningAborted"  # stops at the next slice
    PAUSED = "LogCleaningPaused"  # pauses are counted, and must be resumed as often


# The states a partition may come from.
VALID_PREVIOUS_STATES: Final[dict[CleaningState, frozenset[CleaningState]]] = {
    CleaningState.NONE: frozenset({CleaningState.IN_PROGRESS, CleaningState.PAUSED}),
    CleaningState.IN_PROGRESS: frozenset({CleaningState.NONE}),
    CleaningState.ABORTED: frozenset({CleaningState.IN_PROGRESS}),
    CleaningState.PAUSED: frozenset({CleaningState.NONE, CleaningState.ABORTED, CleaningState.PAUSED}),
}


class CleaningStates:
    def __init__(self) -> None:
        self._states: dict[TopicPartition, CleaningState] = {}
        self._pauses: dict[TopicPartition, int] = {}

    def __getitem__(self, partition: TopicPartition) -> CleaningState:
        return self._states.get(partition, CleaningState.NONE)

    def pauses(self, partition: TopicPartition) -> int:
        return self._pauses.get(partition, 0)

    def begin(self, partition: TopicPartition) -> None:
        self._enter(partition, CleaningState.IN_PROGRESS)

    def abort(self, partition: TopicPartition) -> None:
        self._enter(partition, CleaningState.ABORTED)

    def end(self, partition: TopicPartition) -> bool:
        """A cleaning is over. Returns whether it was completed; after an abort the partition stays paused for the code that aborted."""
        if self[partition] is CleaningState.ABORTED:
            self.pause(partition)
            return False
        self._enter(partition, CleaningState.NONE)
        return True

    def pause(self, partition: TopicPartition) -> None:
        self._enter(partition, CleaningState.PAUSED)
        self._pauses[partition] = self.pauses(partition) + 1

    def resume(self, partition: TopicPartition) -> None:
        if self[partition] is not CleaningState.PAUSED:
            raise ValueError(f"Compaction for partition {partition} cannot be resumed since it is in {self[partition].value} state.")
        self._pauses[partition] -= 1
        if self._pauses[partition] == 0:
            self._enter(partition, CleaningState.NONE)

    def forget(self, partition: TopicPartition) -> None:
        self._states.pop(partition, None)
        self._pauses.pop(partition, None)

    def _enter(self, partition: TopicPartition, state: CleaningState) -> None:
        current = self[partition]
        if current not in VALID_PREVIOUS_STATES[state]:
            raise ValueError(f"Compaction for partition {partition} cannot go from {current.value} to {state.value} state.")
        if state is CleaningState.NONE:
            self.forget(partition)
        else:
            self._states[partition] = state
