"""What the brokers of a cluster carry, as plain values: the input of the planners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.topic_partition import TopicPartition


@dataclass(frozen=True)
class BrokerPlace:
    """A live broker. `free_bytes` is the free space of its log directories, None if it does not say. A cordoned broker gets no replicas."""

    id: int
    rack: str | None = None
    free_bytes: int | None = None
    is_cordoned: bool = False


@dataclass(frozen=True)
class PartitionLoad:
    """A partition: the size of its log in bytes, and how many bytes a second producers write to it."""

    partition: TopicPartition
    replicas: tuple[int, ...]  # the preferred leader first
    leader: int | None
    bytes: int = 0
    rate: int = 0


@dataclass(frozen=True)
class ClusterLoad:
    brokers: tuple[BrokerPlace, ...]
    partitions: tuple[PartitionLoad, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(broker.id for broker in self.brokers)

    @property
    def open_ids(self) -> tuple[int, ...]:
        """The brokers that may get replicas."""
        return tuple(broker.id for broker in self.brokers if not broker.is_cordoned)

    @property
    def cordoned_ids(self) -> tuple[int, ...]:
        return tuple(broker.id for broker in self.brokers if broker.is_cordoned)

    @property
    def assignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {load.partition: load.replicas for load in self.partitions}


@dataclass(frozen=True)
class Carried:
    """What one broker carries. Traffic is in bytes a second: what its replicas receive, and what its leaders send to followers."""

    replicas: int = 0
    leaders: int = 0
    bytes: int = 0
    traffic: int = 0


def carried(
    load: ClusterLoad,
    assignment: Mapping[TopicPartition, Sequence[int]] | None = None,
    leaders: Mapping[TopicPartition, int | None] | None = None,
) -> dict[int, Carried]:
    """What each broker carries with `assignment`, or as it is now; without `leaders`, the preferred replicas lead. Brokers that are not
    alive are left out."""
    sums = {broker: [0, 0, 0, 0] for broker in load.ids}
    for one in load.partitions:
        replicas = one.replicas if assignment is None else assignment.get(one.partition, one.replicas)
        leader = replicas[0] if leaders is None else leaders[one.partition]
        for broker in replicas:
            if broker in sums:
                for dimension, amount in enumerate(share(one, len(replicas), is_leader=broker == leader)):
                    sums[broker][dimension] += amount
    return {broker: Carried(*amounts) for broker, amounts in sums.items()}


def share(load: PartitionLoad, replicas: int, *, is_leader: bool) -> tuple[int, int, int, int]:
    """What one replica of a partition adds to its broker: replicas, leaders, bytes and traffic."""
    return 1, int(is_leader), load.bytes, load.rate * (replicas if is_leader else 1)
