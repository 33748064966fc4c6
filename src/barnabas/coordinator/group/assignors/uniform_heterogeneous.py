"""The uniform assignor for members that subscribe to different topics.

Each member keeps its partitions of topics it still subscribes to. Free partitions go to the least loaded subscriber. Then partitions move
topic by topic from the most to the least loaded until no move helps or ROUNDS_MAX is reached. The result is not an exact optimum, which
would take too long to compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.coordinator.group.assignors import MemberSpec, PartitionAssignorError, PartitionCount
from barnabas.coordinator.group.assignors.load_ranges import LoadRanges
from barnabas.coordinator.group.consumer.consumer_group_member import Assignment
from barnabas.uuid import Uuid

ROUNDS_MAX: Final = 16  # a round roughly halves the imbalance; subscriptions that do not overlap need one
_NO_OWNER: Final = -1


def assign_heterogeneous(members: Mapping[str, MemberSpec], partition_count: PartitionCount) -> dict[str, Assignment]:
    return _Balance(members, partition_count).assign()


class _Balance:
    """One assignment being computed. Members are represented by numbers, in the order of their ids."""

    def __init__(self, members: Mapping[str, MemberSpec], partition_count: PartitionCount) -> None:
        self._member_ids = sorted(members)
        self._specs = [members[member_id] for member_id in self._member_ids]
        self._loads = [0] * len(self._specs)
        self._subscribers: dict[Uuid, list[int]] = {}
        self._owners: dict[Uuid, list[int]] = {}
        for member, spec in enumerate(self._specs):
            for topic_id in spec.topic_ids:
                self._subscribers.setdefault(topic_id, []).append(member)
        for topic_id in self._subscribers:
            count = partition_count(topic_id)
            if count is None:
                raise PartitionAssignorError(f"Members are subscribed to topic {topic_id} which doesn't exist in the topic metadata.")
            self._owners[topic_id] = [_NO_OWNER] * count

    def assign(self) -> dict[str, Assignment]:
        if not self._owners:
            return {}
        self._keep()
        topic_ids = sorted(self._owners, key=self._order)
        for topic_id in topic_ids:
            self._give_free(topic_id)
        self._balance([topic_id for topic_id in topic_ids if len(self._subscribers[topic_id]) > 1])
        return self._result()

    def _order(self, topic_id: Uuid) -> tuple[float, int, bytes]:
        """Topics with the most partitions per subscriber first."""
        subscribers = len(self._subscribers[topic_id])
        return (-len(self._owners[topic_id]) / subscribers, subscribers, topic_id.value)

    def _keep(self) -> None:
        for member, spec in enumerate(self._specs):
            for topic_id, partitions in spec.assignment.items():
                if topic_id not in spec.topic_ids:
                    continue
                owners = self._owners[topic_id]
                for partition in partitions:
                    if partition < len(owners) and owners[partition] == _NO_OWNER:
                        owners[partition] = member
                        self._loads[member] += 1

    def _give_free(self, topic_id: Uuid) -> None:
        owners = self._owners[topic_id]
        free = [partition for partition, owner in enumerate(owners) if owner == _NO_OWNER]
        if not free:
            return
        ranges = LoadRanges(self._loads, self._subscribers[topic_id])
        for partition in free:
            self._move(owners, partition, ranges.next_least_loaded())

    def _balance(self, topic_ids: list[Uuid]) -> None:
        last_moved = None
        for _ in range(ROUNDS_MAX):
            for topic_id in topic_ids:
                if topic_id == last_moved:
                    return  # all other topics were examined since, and nothing moved
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: Uuid) -> bool:
        ranges = LoadRanges(self._loads, self._subscribers[topic_id])
        if ranges.imbalance <= 1:
            return False
        owners = self._owners[topic_id]
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            owned.setdefault(owner, []).append(partition)
        moved = False
        while not ranges.is_balanced:
            giver = ranges.next_most_loaded()
            while giver is not None and not owned.get(giver):
                ranges.exclude_most_loaded()
                giver = ranges.next_most_loaded()
            if giver is None:
                break
            partition = owned[giver].pop()
            taker = ranges.next_least_loaded()
            if ranges.is_balanced:
                break
            self._move(owners, partition, taker)
            moved = True
        return moved

    def _move(self, owners: list[int], partition: int, member: int) -> None:
        if owners[partition] != _NO_OWNER:
            self._loads[owners[partition]] -= 1
        owners[partition] = member
        self._loads[member] += 1

    def _result(self) -> dict[str, Assignment]:
        assigned: list[dict[Uuid, set[int]]] = [{} for _ in self._specs]
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                assigned[owner].setdefault(topic_id, set()).add(partition)
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}
            for member_id, topics in zip(self._member_ids, assigned, strict=True)
        }
