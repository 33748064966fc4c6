"""What both sticky assignors share: as even as can be first, and then as much as can be where it was.

Who owned what is told by the members themselves. Of two that claim a partition the one of the newer generation is believed, and of two of
the same generation neither. Members that all subscribe to the same topics are served by `sticky_constrained`, others by `sticky_general`.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.client.consumer.assignors.assignor import NO_GENERATION, AbstractPartitionAssignor, Subscription, TopicRacks
from barnabas.client.consumer.assignors.sticky_constrained import ConstrainedAssignment
from barnabas.client.consumer.assignors.sticky_general import GeneralAssignment
from barnabas.client.consumer.assignors.sticky_racks import Racks
from barnabas.topic_partition import TopicPartition

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MemberData:
    """What a member says it owned, and since which generation."""

    partitions: tuple[TopicPartition, ...]
    generation: int | None = None


@dataclass(slots=True)
class _Claims:
    """Every member's claims, once they are settled among the members."""

    owned: dict[str, list[TopicPartition]] = field(default_factory=dict)
    disputed: set[TopicPartition] = field(default_factory=set)  # claimed by several members of one generation
    all_equal: bool = True  # all members subscribe to the same topics


class AbstractStickyAssignor(AbstractPartitionAssignor):
    def __init__(self) -> None:
        self._generation_max = NO_GENERATION

    @abstractmethod
    def member_data(self, subscription: Subscription) -> MemberData: ...

    def assign_partitions(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        return self._assign(topics, subscriptions)[0]

    def _assign(
        self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]
    ) -> tuple[dict[str, list[TopicPartition]], dict[TopicPartition, str] | None]:
        """The assignment, and which partitions go from one member to another, by the new one, if that came out on the way."""
        data = {member: self.member_data(subscription) for member, subscription in subscriptions.items()}
        claims = self._settle(topics, subscriptions, data)
        racks = Racks(topics, subscriptions)
        if claims.all_equal:
            constrained = ConstrainedAssignment(topics, racks, claims.owned, claims.disputed)
            return constrained.build(), constrained.changing_hands
        older = self._older(data)
        wanted = {member: subscription.topics for member, subscription in subscriptions.items()}
        return GeneralAssignment(topics, racks, claims.owned, wanted, older).build(), None

    def _settle(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription], data: Mapping[str, MemberData]) -> _Claims:
        claims = _Claims()
        owners: dict[TopicPartition, str] = {}
        first: frozenset[str] = frozenset()
        for member, subscription in subscriptions.items():
            first = first or frozenset(subscription.topics)
            claims.all_equal = claims.all_equal and frozenset(subscription.topics) == first
            generation = _or_none(data[member].generation)
            self._generation_max = max(self._generation_max, generation)
            claims.owned[member] = []
            for partition in data[member].partitions:
                if partition.topic in topics:
                    self._claim(claims, owners, subscriptions, partition, member, generation)
        return claims

    def _claim(
        self,
        claims: _Claims,
        owners: dict[TopicPartition, str],
        subscriptions: Mapping[str, Subscription],
        partition: TopicPartition,
        member: str,
        generation: int,
    ) -> None:
        other = owners.get(partition)
        if other is None:
            claims.owned[member].append(partition)
            owners[partition] = member
            return
        others = subscriptions[other].generation_id
        log.warning("Members %s of generation %d and %s of generation %d both claim %s", member, generation, other, others, partition)
        if generation < others:
            return
        if partition in claims.owned[other]:
            claims.owned[other].remove(partition)
        owners[partition] = member
        if generation == others:
            claims.disputed.add(partition)
        else:
            claims.owned[member].append(partition)

    def _older(self, data: Mapping[str, MemberData]) -> dict[TopicPartition, str]:
        """Who owned what in a generation before the newest one: a second best place."""
        older: dict[TopicPartition, tuple[int, str]] = {}
        for member, one in data.items():
            generation = _or_none(one.generation)
            if generation < self._generation_max:
                for partition in one.partitions:
                    if partition not in older or generation > older[partition][0]:
                        older[partition] = (generation, member)
        return {partition: member for partition, (_, member) in older.items()}


def _or_none(generation: int | None) -> int:
    return NO_GENERATION if generation is None else generation
