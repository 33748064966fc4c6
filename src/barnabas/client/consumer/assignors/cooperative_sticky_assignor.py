"""The sticky assignor of the cooperative protocol: one rebalance revokes a moving partition from its owner, the next one assigns it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from librt.strings import write_i32_be

from barnabas.client.consumer.assignors.assignor import NO_GENERATION, Assignment, RebalanceProtocol, Subscription, TopicRacks
from barnabas.client.consumer.assignors.sticky import AbstractStickyAssignor, MemberData
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.reader import Reader
from barnabas.protocol.writer import Writer
from barnabas.topic_partition import TopicPartition


class CooperativeStickyAssignor(AbstractStickyAssignor):
    def __init__(self) -> None:
        super().__init__()
        self._generation = NO_GENERATION

    @property
    def name(self) -> str:
        return "cooperative-sticky"

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        return (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        self._generation = metadata.generation_id

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        writer = Writer()
        write_i32_be(writer.out, self._generation)
        return writer.out.getvalue()

    def member_data(self, subscription: Subscription) -> MemberData:
        """For members whose subscription version has no generation field, the generation is in the user data."""
        if subscription.generation_id >= 0:
            return MemberData(subscription.owned_partitions, subscription.generation_id)
        if subscription.user_data is None:
            return MemberData(subscription.owned_partitions)
        try:
            generation = Reader(subscription.user_data).int32()
        except MalformedMessage:
            generation = NO_GENERATION
        return MemberData(subscription.owned_partitions, generation)

    def assign_partitions(self, topics: TopicRacks, subscriptions: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        result, changing = self._assign(topics, subscriptions)
        for partition, member in (_changing_hands(subscriptions, result) if changing is None else changing).items():
            result[member].remove(partition)
        return result


def _changing_hands(subscriptions: Mapping[str, Subscription], result: Mapping[str, list[TopicPartition]]) -> dict[TopicPartition, str]:
    """The partitions that one member gets and another still owns, with the member that gets them."""
    revoked = {
        partition for member, assigned in result.items() for partition in set(subscriptions[member].owned_partitions) - set(assigned)
    }
    return {
        partition: member
        for member, assigned in result.items()
        for partition in assigned
        if partition in revoked and partition not in subscriptions[member].owned_partitions
    }
