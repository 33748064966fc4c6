"""A plan: the replicas that partitions get, and how that differs from now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.tools.balancing.cluster_load import Carried, ClusterLoad, carried
from barnabas.topic_partition import TopicPartition


@dataclass(frozen=True)
class PartitionMove:
    """The change of one partition. Without a replica that is copied, only the preferred leader changes."""

    partition: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    bytes: int  # the size of one replica
    rate: int = 0

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.before if broker not in self.after)

    @property
    def copied_bytes(self) -> int:
        return self.bytes * len(self.adding)


@dataclass(frozen=True)
class Plan:
    load: ClusterLoad
    moves: tuple[PartitionMove, ...]

    @classmethod
    def between(cls, load: ClusterLoad, assignment: Mapping[TopicPartition, tuple[int, ...]]) -> Plan:
        changed = [one for one in load.partitions if assignment.get(one.partition, one.replicas) != one.replicas]
        moves = [PartitionMove(one.partition, one.replicas, assignment[one.partition], one.bytes, one.rate) for one in changed]
        return cls(load, tuple(sorted(moves, key=lambda move: move.partition)))

    @property
    def targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {move.partition: move.after for move in self.moves}

    @property
    def copies(self) -> int:
        return sum(len(move.adding) for move in self.moves)

    @property
    def copied_bytes(self) -> int:
        return sum(move.copied_bytes for move in self.moves)

    @property
    def receivers(self) -> dict[int, int]:
        """The brokers that get replicas, with the bytes a second that producers write to those replicas meanwhile."""
        rates: dict[int, int] = {}
        for move in self.moves:
            for broker in move.adding:
                rates[broker] = rates.get(broker, 0) + move.rate
        return rates

    def before(self) -> dict[int, Carried]:
        """With the leaders that partitions have now."""
        return carried(self.load, leaders={one.partition: one.leader for one in self.load.partitions})

    def after(self) -> dict[int, Carried]:
        """With preferred leaders, which are elected at the end."""
        return carried(self.load, {**self.load.assignment, **self.targets})
