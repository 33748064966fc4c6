"""The common part of both sticky assignors: first as balanced as possible, then with as few moves as possible.

The members themselves report the partitions that they owned. If two members claim a partition, the claim of the newer generation counts; in
the same generation neither counts. `sticky_constrained` serves members that all subscribe to the same topics, `sticky_general` the others.
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
    """The partitions that a member claims to have owned, and the generation of the claim."""

    partitions: tuple[TopicPartition, ...]
    generation: int | None = None


@dataclass(slots=True)
class _Claims:
    """The claims of all members after conflicts are resolved."""

    owned: dict[str, list[TopicPartition]] = field(default_factory=dict)
    disputed: set[TopicPartition] = field(default_factory=set)  # claimed by several members of the same generation
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
        """The assignment, and the partitions that change their owner with the new owner, if they were computed."""
        data = {member: self.member_data(subscription) for member, subscription in subscriptions.items()}
        claims = self._settle(topics, subscriptions, data)
        racks = Racks(topics, subscriptions)
        if claims.all_equal:
            constrained = ConstrainedAssignment(topics, racks, claims.owned, claims.disputed)
            return constrained.build(), constrained.changing_hands
        older = self._older(data)
        topics_by_member = {member: subscription.topics for member, subscription in subscriptions.items()}
        return GeneralAssignment(topics, racks, claims.owned, topics_by_member, older).build(), None

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
        earlier_claimant = owners.get(partition)
        if earlier_claimant is None:
            claims.owned[member].append(partition)
            owners[partition] = member
            return
        earlier_generation = subscriptions[earlier_claimant].generation_id
        log.warning(
            "Members %s of generation %d and %s of generation %d both claim %s",
            member,
            generation,
            earlier_claimant,
            earlier_generation,
            partition,
        )
        if generation < earlier_generation:
            return
        if partition in claims.owned[earlier_claimant]:
            claims.owned[earlier_claimant].remove(partition)
        owners[partition] = member
        if generation == earlier_generation:
            claims.disputed.add(partition)
        else:
            claims.owned[member].append(partition)

    def _older(self, data: Mapping[str, MemberData]) -> dict[TopicPartition, str]:
        """The owners of partitions in an older generation: the second choice for a partition."""
        older: dict[TopicPartition, tuple[int, str]] = {}
        for member, claim in data.items():
            generation = _or_none(claim.generation)
            if generation < self._generation_max:
                for partition in claim.partitions:
                    if partition not in older or generation > older[partition][0]:
                        older[partition] = (generation, member)
        return {partition: member for partition, (_, member) in older.items()}


def _or_none(generation: int | None) -> int:
    return NO_GENERATION if generation is None else generation
