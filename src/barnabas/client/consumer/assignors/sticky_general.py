"""The sticky assignment of members whose subscriptions differ: moves partitions one at a time until no move improves the balance.

Each member keeps the partitions that it owned and may still have. A partition without an owner goes to the member with the fewest
partitions that may have it. A result that is no more balanced than the previous assignment is discarded.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence

from barnabas.client.consumer.assignors.assignor import TopicRacks
from barnabas.client.consumer.assignors.sticky_racks import Racks
from barnabas.topic_partition import TopicPartition

Owned = dict[str, dict[TopicPartition, None]]  # by member, in the order of assignment


class GeneralAssignment:
    def __init__(
        self,
        topics: TopicRacks,
        racks: Racks,
        owned: Mapping[str, Iterable[TopicPartition]],
        topics_by_member: Mapping[str, Sequence[str]],
        older: Mapping[TopicPartition, str],
    ) -> None:
        self._topics = topics
        self._racks = racks
        self._older = older
        self._members_of: dict[str, list[str]] = {topic: [] for topic in topics}
        self._topics_of: dict[str, frozenset[str]] = {}
        for member, subscribed in topics_by_member.items():
            self._topics_of[member] = frozenset(topic for topic in subscribed if topic in topics)
            for topic in self._topics_of[member]:
                self._members_of[topic].append(member)
        self._room = {member: sum(len(topics[topic]) for topic in topic_names) for member, topic_names in self._topics_of.items()}
        self._owned: Owned = {member: dict.fromkeys(partitions) for member, partitions in owned.items()}
        self._owner = {partition: member for member, partitions in self._owned.items() for partition in partitions}
        self._order: list[tuple[int, str]] = []  # members that take part, those with the fewest partitions first
        self._moves = _Moves()

    def build(self) -> dict[str, list[TopicPartition]]:
        must_revoke = self._drop_unsubscribed()
        assigned = {partition for partitions in self._owned.values() for partition in partitions}
        names = sorted(self._topics, key=lambda topic: (len(self._members_of[topic]), topic))
        every = [TopicPartition(topic, number) for topic in names for number in range(len(self._topics[topic]))]
        unassigned = [partition for partition in every if partition not in assigned]
        self._order = sorted((len(partitions), member) for member, partitions in self._owned.items())
        self._balance(every, unassigned, must_revoke)
        return {member: list(partitions) for member, partitions in self._owned.items()}

    def _drop_unsubscribed(self) -> bool:
        """Drops owned partitions that the member may no longer have; True if there were any."""
        dropped = False
        for member, partitions in self._owned.items():
            for partition in list(partitions):
                if partition.topic not in self._topics_of[member] or self._racks.mismatch(member, partition):
                    del partitions[partition]
                    dropped = True
        return dropped

    def _balance(self, every: list[TopicPartition], unassigned: list[TopicPartition], must_revoke: bool) -> None:
        initial = self._order[-1][0] == 0
        self._assign(unassigned)
        movable = [partition for partition in every if len(self._members_of[partition.topic]) > 1]
        new = [partition for partition in unassigned if len(self._members_of[partition.topic]) > 1]
        fixed = [member for member in self._owned if not self._takes_part(member)]
        self._order = [entry for entry in self._order if self._takes_part(entry[1])]
        set_aside = {member: self._owned.pop(member) for member in fixed}
        before = {member: dict(partitions) for member, partitions in self._owned.items()}
        if not must_revoke:
            self._improve(new)  # a partition without an owner costs nothing to move
        moved = self._improve(movable)
        if not initial and moved and _unevenness(self._owned) >= _unevenness(before):
            self._owned = before
        self._owned |= set_aside

    def _assign(self, partitions: Iterable[TopicPartition]) -> None:
        assignable = [partition_to_assign for partition_to_assign in partitions if self._members_of[partition_to_assign.topic]]
        if self._racks.matter:
            assignable = [partition_to_assign for partition_to_assign in assignable if not self._assign_one(partition_to_assign, near=True)]
        for partition in assignable:
            self._assign_one(partition, near=False)

    def _assign_one(self, partition: TopicPartition, near: bool) -> bool:
        for _, member in self._order:
            if partition.topic in self._topics_of[member] and not (near and self._racks.mismatch(member, partition)):
                self._reorder(member, lambda: self._owned[member].setdefault(partition))  # noqa: B023 - called at once
                self._owner[partition] = member
                return True
        return False

    def _takes_part(self, member: str) -> bool:
        """Whether a member can gain or lose partitions: not if it has all it may have and no other member may have any of them."""
        owned = self._owned[member]
        return len(owned) < self._room[member] or any(len(self._members_of[partition.topic]) > 1 for partition in owned)

    def _improve(self, partitions: Sequence[TopicPartition]) -> bool:
        moved = False
        again = True
        while again:
            again = False
            for partition in partitions:
                if self._balanced():
                    break
                if self._move_if_better(partition):
                    again = moved = True
        return moved

    def _move_if_better(self, partition: TopicPartition) -> bool:
        owner = self._owner[partition]
        count = len(self._owned[owner])
        previous = self._older.get(partition)
        if previous in self._owned and count > len(self._owned[previous]) + 1:
            self._move(partition, previous)
            return True
        if any(count > len(self._owned[candidate]) + 1 for candidate in self._members_of[partition.topic]):
            self._move(partition, next(member for _, member in self._order if partition.topic in self._topics_of[member]))
            return True
        return False

    def _move(self, partition: TopicPartition, to: str) -> None:
        partition = self._moves.instead_of(partition, self._owner[partition], to)
        owner = self._owner[partition]
        self._moves.add(partition, owner, to)
        self._reorder(owner, lambda: self._owned[owner].pop(partition))
        self._reorder(to, lambda: self._owned[to].setdefault(partition))
        self._owner[partition] = to

    def _balanced(self) -> bool:
        """Whether no member could take a partition from a member that has at least two more."""
        if not self._order or self._order[0][0] >= self._order[-1][0] - 1:
            return True
        for count, member in self._order:
            if count == self._room[member]:
                continue
            for topic in self._topics_of[member]:
                for number in range(len(self._topics[topic])):
                    owner = self._owner[TopicPartition(topic, number)]
                    if count + 1 < len(self._owned.get(owner, ())):
                        return False
        return True

    def _reorder(self, member: str, change: Callable[[], object]) -> None:
        del self._order[bisect_left(self._order, (len(self._owned[member]), member))]
        change()
        insort(self._order, (len(self._owned[member]), member))


class _Moves:
    """The moves of partitions between members. It prevents two partitions of a topic from moving in opposite directions between two
    members."""

    def __init__(self) -> None:
        self._moved: dict[TopicPartition, tuple[str, str]] = {}
        self._by_pair: dict[tuple[str, str, str], dict[TopicPartition, None]] = {}  # topic, from, to

    def add(self, partition: TopicPartition, source: str, to: str) -> None:
        earlier = self._moved.pop(partition, None)
        if earlier is not None:
            del self._by_pair[partition.topic, earlier[0], earlier[1]][partition]
            source = earlier[0]
        if source != to:
            self._moved[partition] = (source, to)
            self._by_pair.setdefault((partition.topic, source, to), {})[partition] = None

    def instead_of(self, partition: TopicPartition, source: str, to: str) -> TopicPartition:
        """The partition to move: preferably one that returns to its previous member."""
        if partition in self._moved:
            source = self._moved[partition][0]
        return next(iter(self._by_pair.get((partition.topic, to, source), ())), partition)


def _unevenness(owned: Owned) -> int:
    """The sum of the differences between all pairs of members."""
    counts = sorted(map(len, owned.values()))
    return sum(count * (2 * place - len(counts) + 1) for place, count in enumerate(counts))
