"""The range assignor: splits each topic by itself into one contiguous range of partitions per member.

Topics with the same number of partitions and the same subscribers are split alike, so that partitions with the same key (for joins) go to
the same member. Members are ordered by instance id, then those without one by member id; so a static member that rejoins gets the
partitions it had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.coordinator.group.assignors import MemberSpec, PartitionAssignorError, PartitionCount
from barnabas.coordinator.group.consumer.consumer_group_member import Assignment
from barnabas.uuid import Uuid


class RangeAssignor:
    name: Final = "range"

    def assign(self, members: Mapping[str, MemberSpec], *, homogeneous: bool, partition_count: PartitionCount) -> dict[str, Assignment]:
        ordered = sorted(members, key=lambda member_id: _sort_key(member_id, members[member_id].instance_id))
        cuts: dict[Uuid, _Cut] = {}
        for member_id in ordered:
            for topic_id in members[member_id].topic_ids:
                cut = cuts.get(topic_id)
                if cut is None:
                    cut = cuts[topic_id] = _Cut(_existing(topic_id, partition_count))
                cut.members += 1
        assignments: dict[str, Assignment] = {}
        for member_id in ordered:
            ranges = {topic_id: cuts[topic_id].take() for topic_id in members[member_id].topic_ids}
            assignments[member_id] = {topic_id: partitions for topic_id, partitions in ranges.items() if partitions}
        return assignments


class _Cut:
    """How many partitions of a topic are already assigned."""

    __slots__ = ("members", "partitions", "served", "start")

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.members = 0
        self.served = 0
        self.start = 0

    def take(self) -> frozenset[int]:
        quota, extra = divmod(self.partitions, self.members)
        start = self.start
        self.start = min(start + quota + (1 if self.served < extra else 0), self.partitions)
        self.served += 1
        return frozenset(range(start, self.start))


def _sort_key(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    return (instance_id is None, member_id if instance_id is None else instance_id)


def _existing(topic_id: Uuid, partition_count: PartitionCount) -> int:
    count = partition_count(topic_id)
    if count is None:
        raise PartitionAssignorError("Member is subscribed to a non-existent topic")
    return count
