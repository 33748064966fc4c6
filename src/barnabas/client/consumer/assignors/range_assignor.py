"""The range assignor: topic by topic, each member gets a contiguous range of partitions. The first members get one more if it does not
divide.

Topics with the same number of partitions and the same members are divided alike, so that partition n of all of them has the same member
(co-partitioning). Where racks matter, partitions go first to members in a rack of a replica, within the same bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from barnabas.client.consumer.assignors.assignor import (
    AbstractPartitionAssignor,
    Subscription,
    TopicRacks,
    members_in_order,
    racks_matter,
)
from barnabas.topic_partition import TopicPartition

Result = dict[str, list[TopicPartition]]


class RangeAssignor(AbstractPartitionAssignor):
    @property
    def name(self) -> str:
        return "range"

    def assign_partitions(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> Result:
        result: Result = {member: [] for member in subscriptions}
        members: dict[str, dict[str, str | None]] = {topic: {} for topic in topics}
        for member in members_in_order(subscriptions, subscriptions):
            for topic in subscriptions[member].topics:
                if topic in members:
                    members[topic][member] = subscriptions[member].rack_id or None
        shares = [_Share(topic, racks, members[topic], result) for topic, racks in topics.items()]
        by_rack = any(share.rack_aware for share in shares)
        if by_rack:
            _assign_by_rack(shares)
        for share in shares:
            share.assign_ranges(lambda _member, _partition: True)
        if by_rack:
            for partitions in result.values():
                partitions.sort()
        return result


class _Share:
    """The partitions of one topic while they are assigned to its members."""

    def __init__(self, topic: str, racks: Sequence[frozenset[str]], members: dict[str, str | None], result: Result) -> None:
        self.topic = topic
        self.members = members  # in assignment order, with their racks
        self.racks = racks
        self.rack_aware = racks_matter({rack for rack in self.members.values() if rack}, racks)
        self._result = result
        self._unassigned = dict.fromkeys(range(len(racks)))
        self._given = dict.fromkeys(members, 0)
        self._quota, self._extra = divmod(len(racks), len(members)) if members else (0, 0)

    def assign_ranges(self, may_have: Callable[[str, int], bool]) -> None:
        for member in self.members:
            if not self._unassigned:
                break
            self.give(member, list(islice((number for number in self._unassigned if may_have(member, number)), self.room(member))))

    def give(self, member: str, partitions: Sequence[int]) -> None:
        if not partitions:
            return
        for partition in partitions:
            self._result[member].append(TopicPartition(self.topic, partition))
            del self._unassigned[partition]
        self._given[member] += len(partitions)
        if self._given[member] > self._quota:
            self._extra -= 1

    def room(self, member: str) -> int:
        return max(0, self._quota + (self._extra > 0) - self._given[member])

    def near(self, member: str, partition: int) -> bool:
        rack = self.members[member]
        return rack is None or rack in self.racks[partition]


def _assign_by_rack(shares: Sequence[_Share]) -> None:
    alike: dict[tuple[tuple[tuple[str, str | None], ...], int], list[_Share]] = {}
    for share in shares:
        if not any(share.members.values()):
            continue  # no member has a rack
        alike.setdefault((tuple(share.members.items()), len(share.racks)), []).append(share)
    for group in alike.values():
        if len(group) > 1:
            _assign_alike(group)
        elif group[0].rack_aware:
            group[0].assign_ranges(group[0].near)


def _assign_alike(shares: Sequence[_Share]) -> None:
    """Assigns partition n of all these topics to one member that is in a rack of a replica of each, if there is one."""
    members = list(shares[0].members)
    for partition in range(len(shares[0].racks)):
        for member in members:
            if all(share.near(member, partition) and share.room(member) for share in shares):
                for share in shares:
                    share.give(member, [partition])
                if not any(share.room(member) for share in shares):
                    members.remove(member)
                break
