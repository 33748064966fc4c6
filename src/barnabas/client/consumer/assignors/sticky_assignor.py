"""The sticky assignor of the eager protocol: members store their assignment and send it to the leader in their user data."""

from __future__ import annotations

from collections.abc import Collection

from librt.strings import write_i32_be

from barnabas.client.consumer.assignors.assignor import NO_GENERATION, Assignment, Subscription
from barnabas.client.consumer.assignors.sticky import AbstractStickyAssignor, MemberData
from barnabas.client.consumer.group_metadata import ConsumerGroupMetadata
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.reader import Reader
from barnabas.protocol.writer import Writer, write_size, write_string
from barnabas.topic_partition import TopicPartition


class StickyAssignor(AbstractStickyAssignor):
    def __init__(self) -> None:
        super().__init__()
        self._owned: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    @property
    def name(self) -> str:
        return "sticky"

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        self._owned = assignment.partitions
        self._generation = metadata.generation_id

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return None if self._owned is None else write_user_data(self._owned, self._generation)

    def member_data(self, subscription: Subscription) -> MemberData:
        """Reads only the user data, because an eager member has revoked all its partitions before it joins."""
        return read_user_data(subscription.user_data) if subscription.user_data else MemberData(())


def write_user_data(partitions: Collection[TopicPartition], generation: int) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    writer = Writer()
    write_size(writer.out, len(by_topic), False)
    for topic, numbers in by_topic.items():
        write_string(writer.out, topic, False)
        write_size(writer.out, len(numbers), False)
        for number in numbers:
            write_i32_be(writer.out, number)
    write_i32_be(writer.out, generation)
    return writer.out.getvalue()


def read_user_data(data: bytes) -> MemberData:
    """Also reads the first version, which had no generation. Data that cannot be read counts as no owned partitions."""
    reader = Reader(data)
    partitions: list[TopicPartition] = []
    try:
        for _ in range(reader.array(False, 6)):
            topic = reader.string(False)
            partitions += [TopicPartition(topic, reader.int32()) for _ in range(reader.array(False, 4))]
    except MalformedMessage:
        return MemberData((), NO_GENERATION)
    return MemberData(tuple(partitions), reader.int32() if reader.end - reader.at >= 4 else None)
