"""The owned partitions of a group, each with the epoch of its owner.

A partition that one member has revoked is free for the next one; this table decides that. It follows the members as they are replayed, in
whatever order a compacted log holds them.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordinator.group.consumer.consumer_group_member import Assignment
from barnabas.uuid import Uuid

NO_OWNER: Final = -1


class PartitionEpochs:
    def __init__(self) -> None:
        self._epochs: dict[Uuid, dict[int, int]] = {}

    def get(self, topic_id: Uuid, partition: int) -> int:
        return self._epochs.get(topic_id, _EMPTY).get(partition, NO_OWNER)

    def add(self, assignment: Assignment, epoch: int) -> None:
        """A compacted log can hold a later owner before the former owner's release; the higher epoch is the later one."""
        for topic_id, partitions in assignment.items():
            epochs = self._epochs.setdefault(topic_id, {})
            for partition in partitions:
                if epochs.get(partition, epoch) <= epoch:
                    epochs[partition] = epoch

    def remove(self, assignment: Assignment, epoch: int) -> None:
        """A partition that is owned at another epoch by now stays owned."""
        for topic_id, partitions in assignment.items():
            epochs = self._epochs.get(topic_id)
            if epochs is None:
                continue
            for partition in partitions:
                if epochs.get(partition) == epoch:
                    del epochs[partition]
            if not epochs:
                del self._epochs[topic_id]


_EMPTY: Final[dict[int, int]] = {}
