"""The board on which a planner moves replicas: what each broker carries, how uneven that is, and which moves are allowed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from barnabas.tools.balancing.cluster_load import ClusterLoad, share
from barnabas.topic_partition import TopicPartition

REPLICAS, LEADERS, BYTES, TRAFFIC = range(4)
DIMENSIONS: Final = (REPLICAS, LEADERS, BYTES, TRAFFIC)
# Disk and traffic decide. The number of replicas counts where there is little of both, and between equal choices.
_WEIGHTS: Final = (0.1, 0.5, 1.0, 1.0)
# A mean below this is taken for this: nothing is moved because one of two nearly empty brokers has twice the bytes of the other.
_FLOORS: Final = (1.0, 1.0, 16.0 * 2**20, 16.0 * 2**10)
TOLERANCE: Final = (0.2, 0.1, 0.1, 0.1)  # the share of the mean by which a broker may be above or below it
_COUNTS: Final = (REPLICAS, LEADERS)
_FREE_SHARE: Final = 0.9  # of the free bytes of a broker that a plan may use

Change = tuple[int, int, int, int]


class LoadBoard:
    """`brokers` may get replicas; means are taken over them. What is on `staying` brokers stays there, and is no part of the means.
    Partitions are numbers in the order of `partitions`."""

    def __init__(self, load: ClusterLoad, brokers: Collection[int], staying: Collection[int] = ()) -> None:
        self.partitions = sorted(load.partitions, key=lambda one: one.partition)
        self.brokers = sorted(brokers)
        self._open = frozenset(brokers)
        self.replicas = [list(one.replicas) for one in self.partitions]
        self.loads: dict[int, list[int]] = {broker: [0, 0, 0, 0] for broker in load.ids}
        self.on: dict[int, set[int]] = {broker: set() for broker in load.ids}
        self._led: dict[int, set[int]] = {broker: set() for broker in load.ids}
        self._racks = {broker.id: broker.rack for broker in load.brokers}
        self._free = {broker.id: broker.free_bytes for broker in load.brokers}
        self._taken: Counter[int] = Counter()
        self._of_topic: Counter[tuple[str, int]] = Counter()
        for index in range(len(self.partitions)):
            for broker in self.replicas[index]:
                self._add(index, broker)
        moving = [(index, broker) for index, broker in self._all() if broker not in staying]
        totals = [sum(self._share(index, broker)[d] for index, broker in moving) for d in DIMENSIONS]
        self.means = [total / max(len(self.brokers), 1) for total in totals]
        self._scales = [max(mean, floor) for mean, floor in zip(self.means, _FLOORS, strict=True)]
        self._factors = [2 * weight / scale**2 for weight, scale in zip(_WEIGHTS, self._scales, strict=True)]
        self.limits = [self._limit(dimension) for dimension in DIMENSIONS]

    def assignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {one.partition: tuple(replicas) for one, replicas in zip(self.partitions, self.replicas, strict=True)}

    def score(self) -> float:
        """How uneven the brokers are: 0 if all carry the mean."""
        return sum(self._cost(broker, (0, 0, 0, 0)) for broker in self.brokers)

    def excess(self, broker: int, dimension: int) -> float:
        """By how many means a broker is above the mean; negative below it."""
        return (self.loads[broker][dimension] - self.means[dimension]) / self._scales[dimension]

    # Moves of replicas

    def may_move(self, index: int, source: int, target: int) -> bool:
        """Whether the partition keeps its racks and the target has room."""
        replicas = self.replicas[index]
        if target in replicas or not self.has_room(index, target):
            return False
        others = [broker for broker in replicas if broker != source]
        return self.racks([*others, target]) >= self.racks(replicas)

    def has_room(self, index: int, target: int) -> bool:
        free = self._free[target]
        return free is None or self._taken[target] + self.partitions[index].bytes <= free * _FREE_SHARE

    def racks(self, brokers: Sequence[int]) -> int:
        """The number of racks of some brokers; a broker without a rack, or that is not alive, is none."""
        return len({self._racks[broker] for broker in brokers if self._racks.get(broker) is not None})

    def stays_below_limits(self, index: int, source: int, target: int) -> bool:
        change = self._share(index, source)
        return all(self.loads[target][d] + change[d] <= self.limits[d] for d in DIMENSIONS if change[d])

    def gain_of_move(self, index: int, source: int, target: int) -> float:
        """By how much a move lowers the score."""
        return self._gain(source, target, self._share(index, source))

    def cost_of_arrival(self, index: int, source: int, target: int) -> float:
        """By how much a move raises the target's part of the score; the source may be dead."""
        return self._cost(target, self._share(index, source)) - self._cost(target, (0, 0, 0, 0))

    def move(self, index: int, source: int, target: int) -> None:
        """The target takes the place of the source in the list of replicas."""
        self._remove(index, source)
        replicas = self.replicas[index]
        replicas[replicas.index(source)] = target
        self._add(index, target)
        self._taken[target] += self.partitions[index].bytes

    def replicas_of_topic(self, index: int, broker: int) -> int:
        """How many replicas of the topic of a partition a broker has."""
        return self._of_topic[self.partitions[index].partition.topic, broker]

    # Changes of preferred leaders

    def gain_of_lead(self, index: int, leader: int) -> float:
        """By how much another preferred leader lowers the score."""
        return self._gain(self.replicas[index][0], leader, self._lead(index))

    def gain_of_exchange(self, index: int, other: int) -> float:
        """By how much the score falls if the preferred leaders of two partitions take each other's place."""
        given, taken = self._lead(index), self._lead(other)
        change = (0, 0, 0, given[TRAFFIC] - taken[TRAFFIC])
        return self._gain(self.replicas[index][0], self.replicas[other][0], change)

    def lead_stays_below_limits(self, index: int, leader: int, dimensions: Sequence[int] = (LEADERS, TRAFFIC)) -> bool:
        change = self._lead(index)
        return all(self.loads[leader][d] + change[d] <= self.limits[d] for d in dimensions)

    def lead(self, index: int, leader: int) -> None:
        """Makes a replica the first of the list, in exchange with the one that was."""
        replicas = self.replicas[index]
        first, position = replicas[0], replicas.index(leader)
        self._remove(index, first)
        self._remove(index, leader)
        replicas[0], replicas[position] = leader, first
        self._add(index, first)
        self._add(index, leader)

    def may_lead(self, broker: int) -> bool:
        """Whether a broker may get leaders: a cordoned or dead one does not."""
        return broker in self._open

    def led_by(self, broker: int) -> list[int]:
        return sorted(self._led[broker])

    # What brokers carry

    def _all(self) -> Iterator[tuple[int, int]]:
        """All replicas, as pairs of partition and broker."""
        for index, replicas in enumerate(self.replicas):
            for broker in replicas:
                yield index, broker

    def _share(self, index: int, broker: int) -> Change:
        replicas = self.replicas[index]
        return share(self.partitions[index], len(replicas), is_leader=replicas[0] == broker)

    def _lead(self, index: int) -> Change:
        """What a leader carries more than a follower."""
        return 0, 1, 0, self.partitions[index].rate * (len(self.replicas[index]) - 1)

    def _add(self, index: int, broker: int) -> None:
        self._count(index, broker, 1)
        if broker in self.on:
            self.on[broker].add(index)
            if self.replicas[index][0] == broker:
                self._led[broker].add(index)

    def _remove(self, index: int, broker: int) -> None:
        self._count(index, broker, -1)
        if broker in self.on:
            self.on[broker].discard(index)
            self._led[broker].discard(index)

    def _count(self, index: int, broker: int, sign: int) -> None:
        if broker not in self.loads:
            return  # not alive
        for dimension, amount in enumerate(self._share(index, broker)):
            self.loads[broker][dimension] += sign * amount
        self._of_topic[self.partitions[index].partition.topic, broker] += sign

    def _gain(self, source: int, target: int, change: Change) -> float:
        """By how much the score falls if the target carries what the source carried: the difference of four squares."""
        above, below, total = self.loads[source], self.loads[target], 0.0
        for d, amount in enumerate(change):
            if amount:
                total += self._factors[d] * amount * (above[d] - below[d] - amount)
        return total

    def _cost(self, broker: int, change: Change) -> float:
        load, total = self.loads[broker], 0.0
        for d in DIMENSIONS:
            distance = (load[d] + change[d] - self.means[d]) / self._scales[d]
            total += _WEIGHTS[d] * distance * distance
        return total

    def _limit(self, dimension: int) -> float:
        """No broker is raised above this: the highest of all brokers now, or a little more than the mean."""
        near = self.means[dimension] * (1 + TOLERANCE[dimension])
        highest = max((self.loads[broker][dimension] for broker in self.brokers), default=0)
        return max(highest, math.ceil(near) if dimension in _COUNTS else near)
