"""What a reassignment moves, and what its throttle has to cover. Plain values; this module sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol

from barnabas.errors import IllegalArgument
from barnabas.metadata.replica_assignment import BrokerMetadata, assign_replicas_to_brokers
from barnabas.topic_partition import TopicPartition

BROKER_THROTTLES: Final = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
REPLICATION_THROTTLES: Final = BROKER_THROTTLES[:2]
TOPIC_THROTTLES: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")

Assignment = Mapping[TopicPartition, Sequence[int]]
Settings = dict[str, dict[str, str]]  # by topic or broker


class Reassignment(Protocol):
    """A reassignment in progress, as the admin client lists it."""

    @property
    def replicas(self) -> tuple[int, ...]: ...
    @property
    def adding_replicas(self) -> tuple[int, ...]: ...


@dataclass
class Move:
    """The source and target replicas of a partition that is copied."""

    sources: set[int]
    destinations: set[int] = field(default_factory=set)


Moves = dict[TopicPartition, Move]


def moves(under_way: Mapping[TopicPartition, Reassignment], proposed: Assignment, current: Assignment) -> Moves:
    """The moves of the reassignments in progress and of the plan. A partition that is being reassigned keeps its sources, because they are
    its replicas before the reassignment."""
    planned = {
        partition: Move(set(reassignment.replicas) - set(reassignment.adding_replicas), set(reassignment.adding_replicas))
        for partition, reassignment in under_way.items()
    }
    for partition, replicas in proposed.items():
        if partition not in planned and partition not in current:
            raise IllegalArgument(f"Trying to reassign a topic partition {partition} with 0 replicas")
        sources = planned[partition].sources if partition in planned else set(current[partition])
        planned[partition] = Move(sources, set(replicas) - sources)
    return planned


def leader_throttles(planned: Moves) -> dict[str, str]:
    """The throttled leader replicas by topic: all replicas before the move."""
    return _throttled(planned, {partition: move.sources for partition, move in planned.items()})


def follower_throttles(planned: Moves) -> dict[str, str]:
    """The throttled follower replicas by topic: only the new ones."""
    return _throttled(planned, {partition: move.destinations - move.sources for partition, move in planned.items()})


def topic_throttles(planned: Moves) -> Settings:
    """The settings of topics that name the throttled replicas."""
    leaders, followers = leader_throttles(planned), follower_throttles(planned)
    return {topic: dict(zip(TOPIC_THROTTLES, (leaders[topic], followers[topic]), strict=True)) for topic in leaders}


def broker_throttles(brokers: Iterable[int], rate: int) -> Settings:
    """The settings of brokers that bound the copies between them, in bytes a second."""
    return {str(broker): dict.fromkeys(REPLICATION_THROTTLES, str(rate)) for broker in brokers}


def moving_brokers(planned: Moves) -> list[int]:
    """The brokers that replicas are copied from or to."""
    return sorted({broker for move in planned.values() for broker in move.sources | move.destinations})


def place_of(broker: int, rack: str | None) -> BrokerMetadata:
    """A broker that `spread` can give replicas to."""
    return BrokerMetadata(broker, rack)


def spread(
    current: Assignment, brokers: Sequence[BrokerMetadata], random: Random, factor: int | None = None
) -> dict[TopicPartition, list[int]]:
    """As if the topics were created on these brokers, with `factor` replicas or as many as partition 0 has."""
    proposed: dict[TopicPartition, list[int]] = {}
    for topic, partitions in by_topic(current).items():
        made = assign_replicas_to_brokers(brokers, len(partitions), factor or len(current[partitions[0]]), random)
        proposed |= {TopicPartition(topic, number): list(replicas) for number, replicas in made.items()}
    return proposed


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    """The partitions of each topic, in order."""
    topics: dict[str, list[TopicPartition]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic, []).append(partition)
    return topics


def _throttled(planned: Moves, replicas: Mapping[TopicPartition, Iterable[int]]) -> dict[str, str]:
    by_topic: dict[str, set[str]] = {partition.topic: set() for partition in planned}
    for partition, brokers in replicas.items():
        by_topic[partition.topic] |= {f"{partition.partition}:{broker}" for broker in brokers}
    return {topic: ",".join(sorted(components)) for topic, components in by_topic.items()}
