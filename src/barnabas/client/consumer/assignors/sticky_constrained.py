"""The sticky assignment of members that all subscribe to the same topics: linear, for then a share is known beforehand.

Of P partitions and C members, P % C members get one more than P // C. Everyone keeps what it owned up to its share; what is left goes to
those below theirs, round by round, near ones first where racks matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from barnabas.client.consumer.assignors.assignor import TopicRacks
from barnabas.client.consumer.assignors.sticky_racks import Racks
from barnabas.client.errors import IllegalState
from barnabas.topic_partition import TopicPartition


class ConstrainedAssignment:
    def __init__(self, topics: TopicRacks, racks: Racks, owned: Mapping[str, list[TopicPartition]], disputed: Set[TopicPartition]) -> None:
        total = sum(len(each) for each in topics.values())
        self.changing_hands: dict[TopicPartition, str] = {}
        self._topics = topics
        self._racks = racks
        self._owned = owned
        self._disputed = disputed
        self._share, self._larger_shares = divmod(total, len(owned))
        self._share_max = self._share + (self._larger_shares > 0)
        self._larger = 0  # members that have share_max, where that is more than share
        self._result: dict[str, list[TopicPartition]] = {member: [] for member in owned}
        self._given_up: dict[TopicPartition, str] = {}
        self._below: list[str] = []  # members below their share
        self._at_share: list[str] = []  # members that may get one more

    def build(self) -> dict[str, list[TopicPartition]]:
        for member in self._owned:
            self._keep(member)
        taken = {partition for partitions in self._result.values() for partition in partitions}
        every = (TopicPartition(topic, number) for topic in sorted(self._topics) for number in range(len(self._topics[topic])))
        left = self._racks.rarest_first(partition for partition in every if partition not in taken)
        self._below.sort()
        self._at_share.sort()
        if self._racks.matter:
            left = self._deal_near(left)
        self._deal(left)
        return self._result

    def _keep(self, member: str) -> None:
        mine: list[TopicPartition] = []
        for partition in self._owned[member]:
            if self._racks.mismatch(member, partition):
                self._given_up[partition] = member
            elif partition not in self._disputed:
                mine.append(partition)
        mine.sort(key=lambda one: (one.partition, one.topic))
        if len(mine) < self._share:
            kept = len(mine)
            self._below.append(member)
        elif len(mine) >= self._share_max and self._larger < self._larger_shares:
            kept = self._share_max
            self._count_larger()
        else:
            kept = self._share
            if self._larger < self._larger_shares:
                self._at_share.append(member)
        self._result[member] += mine[:kept]
        self._given_up |= dict.fromkeys(mine[kept:], member)

    def _deal_near(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Gives partitions to members that are near and have room; what is left is returned."""
        left = []
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
                left.append(partition)
        return left

    def _turn_after(self, index: int) -> int:
        """Whose turn it is when the member at `index` of those below their share gets one."""
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
