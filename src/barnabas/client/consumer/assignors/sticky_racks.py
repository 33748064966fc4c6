"""The racks of members and partitions for the sticky assignors; empty where racks make no difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from barnabas.client.consumer.assignors.assignor import Subscription, TopicRacks, racks_matter
from barnabas.topic_partition import TopicPartition


class Racks:
    def __init__(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> None:
        members = {member: subscription.rack_id for member, subscription in subscriptions.items() if subscription.rack_id}
        consumers = Counter(members.values())
        # Also where racks do not matter, partitions with few members in their racks are assigned first.
        self._consumers_near: dict[TopicPartition, int] = {}
        partitions: dict[TopicPartition, frozenset[str]] = {}
        if members:
            for topic, racks_by_partition in topics.items():
                for number, racks in enumerate(racks_by_partition):
                    partitions[TopicPartition(topic, number)] = racks
            self._consumers_near = {partition: sum(consumers[rack] for rack in racks) for partition, racks in partitions.items()}
        matter = racks_matter(consumers, partitions.values())
        self.of_member: dict[str, str] = members if matter else {}
        self.of_partition: dict[TopicPartition, frozenset[str]] = partitions if matter else {}

    @property
    def matter(self) -> bool:
        return bool(self.of_member)

    def mismatch(self, member: str, partition: TopicPartition) -> bool:
        rack = self.of_member.get(member)
        return rack is not None and rack not in self.of_partition.get(partition, ())

    def rarest_first(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        return sorted(partitions, key=lambda partition: self._consumers_near.get(partition, 0))

    def next_near(self, partition: TopicPartition, members: Sequence[str], first: int) -> int | None:
        """The index of the next member in a rack of a replica, starting at `first` and wrapping around."""
        racks = self.of_partition.get(partition, frozenset())
        for step in range(len(members)):
            index = (first + step) % len(members)
            if self.of_member.get(members[index]) in racks:
                return index
        return None
