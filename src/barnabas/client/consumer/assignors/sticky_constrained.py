"""The sticky assignment of members that all subscribe to the same topics. It runs in linear time, because each quota is known in advance.

Of P partitions and C members, P % C members get one more than P // C. Each member keeps its partitions up to its quota; the rest goes round
by round to members below their quota, first to members in a rack of a replica where racks matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from barnabas.client.consumer.assignors.assignor import TopicRacks
from barnabas.client.consumer.assignors.sticky_racks import Racks
from barnabas.client.errors import IllegalState
from barnabas.topic_partition import TopicPartition


class ConstrainedAssignment:
    def __init__(self, topics: TopicRacks, racks: Racks, owned: Mapping[str, list[TopicPartition]], disputed: Set[TopicPartition]) -> None:
        total = sum(len(partitions) for partitions in topics.values())
        self.changing_hands: dict[TopicPartition, str] = {}
        self._topics = topics
        self._racks = racks
        self._owned = owned
        self._disputed = disputed
        self._share, self._larger_shares = divmod(total, len(owned))
        self._share_max = self._share + (self._larger_shares > 0)
        self._larger = 0  # members with share_max partitions, where that is more than share
        self._result: dict[str, list[TopicPartition]] = {member: [] for member in owned}
        self._given_up: dict[TopicPartition, str] = {}
        self._below: list[str] = []  # members below their share
        self._at_share: list[str] = []  # members that may get one more partition

    def build(self) -> dict[str, list[TopicPartition]]:
        for member in self._owned:
            self._keep(member)
        kept = {partition for partitions in self._result.values() for partition in partitions}
        every = (TopicPartition(topic, number) for topic in sorted(self._topics) for number in range(len(self._topics[topic])))
        unassigned = self._racks.rarest_first(partition for partition in every if partition not in kept)
        self._below.sort()
        self._at_share.sort()
        if self._racks.matter:
            unassigned = self._deal_near(unassigned)
        self._deal(unassigned)
        return self._result

    def _keep(self, member: str) -> None:
        owned: list[TopicPartition] = []
        for partition in self._owned[member]:
            if self._racks.mismatch(member, partition):
                self._given_up[partition] = member
            elif partition not in self._disputed:
                owned.append(partition)
        owned.sort(key=lambda candidate: (candidate.partition, candidate.topic))
        if len(owned) < self._share:
            quota = len(owned)
            self._below.append(member)
        elif len(owned) >= self._share_max and self._larger < self._larger_shares:
            quota = self._share_max
            self._count_larger()
        else:
            quota = self._share
            if self._larger < self._larger_shares:
                self._at_share.append(member)
        self._result[member] += owned[:quota]
        self._given_up |= dict.fromkeys(owned[quota:], member)

    def _deal_near(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Assigns partitions to members in a rack of a replica that have room; returns the other partitions."""
        remaining = []
        turn = 0
        for partition in partitions:
            index = self._racks.next_near(partition, self._below, turn)
            if index is not None:
                member = self._below[index]
                turn = self._turn_after(index)
                self._give(partition, member)
            elif (index := self._racks.next_near(partition, self._at_share, 0)) is not None:
                member = self._at_share[index]
                if len(self._result[member]) + 1 == self._share_max:
                    del self._at_share[index]
                    self._count_larger()
                self._give(partition, member)
            else:
                remaining.append(partition)
        return remaining

    def _turn_after(self, index: int) -> int:
        """The next turn after the member at `index` of `_below` gets a partition."""
        member = self._below[index]
        count = len(self._result[member]) + 1
        if count >= self._share:
            del self._below[index]
            if count < self._share_max and self._larger < self._larger_shares:
                self._at_share.append(member)
        else:
            index += 1
        return index % len(self._below) if self._below else 0

    def _deal(self, partitions: list[TopicPartition]) -> None:
        turn = 0
        for partition in partitions:
            if self._below:
                turn %= len(self._below)
                member = self._below[turn]
                if self._give(partition, member) == self._share:
                    del self._below[turn]
                    self._at_share.append(member)
                else:
                    turn += 1
            elif self._at_share:
                self._give(partition, self._at_share.pop(0))
            else:
                raise IllegalState("No more unfilled consumers to be assigned.")

    def _give(self, partition: TopicPartition, member: str) -> int:
        self._result[member].append(partition)
        if self._given_up.get(partition, member) != member or partition in self._disputed:
            self.changing_hands[partition] = member
        return len(self._result[member])

    def _count_larger(self) -> None:
        self._larger += 1
        if self._larger == self._larger_shares:
            self._at_share.clear()
