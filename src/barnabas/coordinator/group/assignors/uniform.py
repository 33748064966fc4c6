"""The uniform assignor: every member gets the same number of partitions, plus or minus one, and keeps its partitions where possible.

If all members subscribe to the same topics there is an exact quota, and a rebalance is two passes: take the partitions above the quota,
give them to members below it. Members with different subscriptions are balanced topic by topic (`uniform_heterogeneous`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.coordinator.group.assignors import MemberSpec, PartitionAssignorError, PartitionCount
from barnabas.coordinator.group.assignors.uniform_heterogeneous import assign_heterogeneous
from barnabas.coordinator.group.consumer.consumer_group_member import Assignment
from barnabas.uuid import Uuid


class UniformAssignor:
    name: Final = "uniform"

    def assign(self, members: Mapping[str, MemberSpec], *, homogeneous: bool, partition_count: PartitionCount) -> dict[str, Assignment]:
        if not members:
            return {}
        if homogeneous:
            return _assign_homogeneous(members, partition_count)
        return assign_heterogeneous(members, partition_count)


def _assign_homogeneous(members: Mapping[str, MemberSpec], partition_count: PartitionCount) -> dict[str, Assignment]:
    topic_ids = next(iter(members.values())).topic_ids
    if not topic_ids:
        return {}
    unassigned, total = _unassigned(members, topic_ids, partition_count)
    quota, extra = divmod(total, len(members))
    kept: dict[str, dict[Uuid, set[int]]] = {}
    room: list[tuple[str, int]] = []
    for index, member_id in enumerate(sorted(members)):
        limit = quota + 1 if extra > 0 else quota
        keeping, free = _keep(members[member_id].assignment, topic_ids, limit, unassigned)
        takes_extra = extra > 0
        if free > 0 and takes_extra and len(members) - index > extra:
            # Another member may already hold quota + 1; only the last members have to take an extra partition.
            free -= 1
            takes_extra = False
        if takes_extra:
            extra -= 1
        if free > 0:
            room.append((member_id, free))
        kept[member_id] = keeping
    _fill(kept, room, unassigned)
    return {
        member_id: {topic_id: frozenset(partitions) for topic_id, partitions in assignment.items()}
        for member_id, assignment in kept.items()
    }


def _unassigned(
    members: Mapping[str, MemberSpec], topic_ids: frozenset[Uuid], partition_count: PartitionCount
) -> tuple[list[tuple[Uuid, int]], int]:
    """The partitions without an owner, in order, and the number of all partitions."""
    assigned: dict[Uuid, set[int]] = {topic_id: set() for topic_id in topic_ids}
    for member in members.values():
        for topic_id, partitions in member.assignment.items():
            if topic_id in assigned:
                assigned[topic_id] |= partitions
    unassigned: list[tuple[Uuid, int]] = []
    total = 0
    for topic_id in sorted(topic_ids, key=lambda uuid: uuid.value):
        count = partition_count(topic_id)
        if count is None:
            raise PartitionAssignorError(f"Members are subscribed to topic {topic_id} which doesn't exist in the topic metadata.")
        total += count
        unassigned += [(topic_id, partition) for partition in range(count) if partition not in assigned[topic_id]]
    return unassigned, total


def _keep(
    assignment: Assignment, topic_ids: frozenset[Uuid], limit: int, unassigned: list[tuple[Uuid, int]]
) -> tuple[dict[Uuid, set[int]], int]:
    """The partitions that a member keeps, and its remaining room. Partitions above the limit are added to `unassigned`."""
    kept: dict[Uuid, set[int]] = {}
    for topic_id in sorted(assignment, key=lambda uuid: uuid.value):
        if topic_id not in topic_ids:
            continue
        partitions = sorted(assignment[topic_id])
        if partitions[:limit]:
            kept[topic_id] = set(partitions[:limit])
        unassigned += [(topic_id, partition) for partition in partitions[limit:]]
        limit = max(limit - len(partitions), 0)
    return kept, limit


def _fill(kept: dict[str, dict[Uuid, set[int]]], room: list[tuple[str, int]], unassigned: list[tuple[Uuid, int]]) -> None:
    start = 0
    for member_id, free in room:
        for topic_id, partition in unassigned[start : start + free]:
            kept[member_id].setdefault(topic_id, set()).add(partition)
        start += free
    if start < len(unassigned):
        raise PartitionAssignorError("Partitions were left unassigned")
