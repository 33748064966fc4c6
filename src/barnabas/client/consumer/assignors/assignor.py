"""What an assignor is: it divides the partitions of all subscribed topics among the members of a group.

The leader of a classic group runs the assignor that all members have in common; the broker only carries the bytes. An assignor is a plain
object: no clock, no network. An application brings its own by deriving from `ConsumerPartitionAssignor`, or, if it needs no user data, from
`AbstractPartitionAssignor`.
"""

from __future__ import annotations

import enum
import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

log = logging.getLogger(__name__)

NO_GENERATION = -1

TopicRacks = Mapping[str, Sequence[frozenset[str]]]
"""By topic, for each of its partitions, the racks that have a replica of it; offline ones count, for they come back."""


class RebalanceProtocol(enum.IntEnum):
    """Whether a member gives up all its partitions before it joins, or only those that move to another member."""

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member asks for, as the leader sees it."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


class ConsumerPartitionAssignor(ABC):
    """An assignor that sees and sends user data of its own."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Under which the members agree on it; must not be the name of another assignor."""

    @abstractmethod
    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """By member id. Runs on the leader only."""

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """Sent with this member's subscription."""
        return None

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """What this member was given."""
        return

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        return (RebalanceProtocol.EAGER,)


class AbstractPartitionAssignor(ConsumerPartitionAssignor):
    """An assignor that needs no more than the partitions of each topic, and sends no user data with assignments."""

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        topics = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
        known: dict[str, Sequence[frozenset[str]]] = {}
        for topic in topics:
            infos = sorted(cluster.partitions_for_topic(topic), key=lambda info: info.partition)
            if infos:
                known[topic] = [frozenset(node.rack for node in info.replicas if node.rack is not None) for info in infos]
            else:
                log.debug("Skipping assignment for topic %s since no metadata is available", topic)
        return {member: Assignment(tuple(given)) for member, given in self.assign_partitions(known, subscriptions).items()}

    @abstractmethod
    def assign_partitions(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        """`topics` has every subscribed topic that exists; the partitions of each, from 0 on, with the racks of their replicas."""


@dataclass(frozen=True, slots=True, order=True)
class MemberOrder:
    """Members in the order of assignment: static ones by instance id, so that a restart changes nothing, then the others by member id."""

    dynamic: bool
    key: str
    member_id: str = field(compare=False)


def members_in_order(subscriptions: Mapping[str, Subscription], members: Iterable[str]) -> list[str]:
    return [one.member_id for one in sorted(_order(member, subscriptions[member].group_instance_id) for member in members)]


def _order(member: str, instance: str | None) -> MemberOrder:
    return MemberOrder(True, member, member) if instance is None else MemberOrder(False, instance, member)


def racks_matter(consumer_racks: Collection[str], partition_racks: Iterable[frozenset[str]]) -> bool:
    """Whether any assignment is nearer than another: not if nobody tells its rack, nor if every partition is in all racks."""
    each = list(partition_racks)
    everywhere = frozenset().union(*each)
    return not everywhere.isdisjoint(consumer_racks) and any(racks != everywhere for racks in each)
