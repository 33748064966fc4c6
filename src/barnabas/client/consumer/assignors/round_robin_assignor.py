"""The round-robin assignor: assigns all partitions of all topics to the members in turn, skipping members without a subscription to the
topic."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.consumer.assignors.assignor import AbstractPartitionAssignor, Subscription, TopicRacks, members_in_order
from barnabas.topic_partition import TopicPartition


class RoundRobinAssignor(AbstractPartitionAssignor):
    @property
    def name(self) -> str:
        return "roundrobin"

    def assign_partitions(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        result: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        members = members_in_order(subscriptions, subscriptions)
        subscribed = {member: frozenset(subscription.topics) for member, subscription in subscriptions.items()}
        turn = 0
        for topic in sorted(topics):
            for partition in range(len(topics[topic])):
                while topic not in subscribed[members[turn]]:
                    turn = (turn + 1) % len(members)
                result[members[turn]].append(TopicPartition(topic, partition))
                turn = (turn + 1) % len(members)
        return result
