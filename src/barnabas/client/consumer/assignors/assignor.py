"""The interface of assignors: an assignor divides the partitions of all subscribed topics among the members of a group.

The leader of a classic group runs the assignor that all members have in common; the broker only forwards the bytes. An assignor is a plain
object without a clock or a network. An application defines its own by deriving from `ConsumerPartitionAssignor`, or, if it needs no user
data, from `AbstractPartitionAssignor`.
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
"""By topic, for each of its partitions, the racks of its replicas. Offline replicas count, because they return."""


class RebalanceProtocol(enum.IntEnum):
    """Whether a member revokes all its partitions before it joins (EAGER), or only those that move to another member (COOPERATIVE)."""

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription of a member, as the leader receives it."""

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
    """An assignor that may exchange user data."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name by which the members agree on the assignor; must differ from the names of other assignors."""

    @abstractmethod
    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        """The assignments by member id. Runs only on the leader."""

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """The user data that is sent with this member's subscription."""
        return None

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """Called with the assignment of this member."""
        return

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        return (RebalanceProtocol.EAGER,)


class AbstractPartitionAssignor(ConsumerPartitionAssignor):
    """An assignor that needs only the partitions of each topic, and sends no user data with assignments."""

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        topics = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
        racks_by_topic: dict[str, Sequence[frozenset[str]]] = {}
        for topic in topics:
            infos = sorted(cluster.partitions_for_topic(topic), key=lambda info: info.partition)
            if infos:
                racks_by_topic[topic] = [frozenset(node.rack for node in info.replicas if node.rack is not None) for info in infos]
            else:
                log.debug("Skipping assignment for topic %s since no metadata is available", topic)
        return {
            member: Assignment(tuple(partitions)) for member, partitions in self.assign_partitions(racks_by_topic, subscriptions).items()
        }

    @abstractmethod
    def assign_partitions(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        """The partitions for each member. `topics` has every subscribed topic that exists, with the racks of the replicas of each partition
        from 0 on."""


@dataclass(frozen=True, slots=True, order=True)
class MemberOrder:
    """The order of members in an assignment: static members by instance id, so that a restart changes nothing, then dynamic members by
    member id."""

    dynamic: bool
    key: str
    member_id: str = field(compare=False)


def members_in_order(subscriptions: Mapping[str, Subscription], members: Iterable[str]) -> list[str]:
    return [order.member_id for order in sorted(_order(member, subscriptions[member].group_instance_id) for member in members)]


def _order(member: str, instance: str | None) -> MemberOrder:
    return MemberOrder(True, member, member) if instance is None else MemberOrder(False, instance, member)


def racks_matter(consumer_racks: Collection[str], partition_racks: Iterable[frozenset[str]]) -> bool:
    """Whether racks make a difference: not if no consumer has a rack, nor if every partition is in all racks."""
    all_racks = list(partition_racks)
    everywhere = frozenset().union(*all_racks)
    return not everywhere.isdisjoint(consumer_racks) and any(racks != everywhere for racks in all_racks)
