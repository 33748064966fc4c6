"""Serialization of subscriptions and assignments of the classic protocol.

The bytes are opaque to the broker. A newer version is read as the newest known version, as Kafka does; bytes that cannot be read raise
MalformedMessage.
"""

from __future__ import annotations

from typing import Final, TypeVar

from librt.strings import write_i16_be

from barnabas.client.consumer.assignors.assignor import Assignment, Subscription
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.message import Message
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.consumer_protocol_subscription import TopicPartition as OwnedTopic
from barnabas.protocol.reader import Reader
from barnabas.protocol.writer import Writer
from barnabas.topic_partition import TopicPartition

PROTOCOL_TYPE: Final = "consumer"
VERSION: Final = ConsumerProtocolSubscription.HIGHEST_VERSION

M = TypeVar("M", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def serialize_subscription(subscription: Subscription, version: int = VERSION) -> bytes:
    owned: dict[str, list[int]] = {}
    for topic, partition in sorted(subscription.owned_partitions):
        owned.setdefault(topic, []).append(partition)
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[OwnedTopic(topic, numbers) for topic, numbers in owned.items()],
        generation_id=max(subscription.generation_id, -1),
        rack_id=subscription.rack_id,
    )
    return _write(message, min(version, VERSION))


def deserialize_subscription(data: bytes, group_instance_id: str | None = None) -> Subscription:
    message = _read(ConsumerProtocolSubscription, data)
    return Subscription(
        topics=tuple(message.topics),
        user_data=message.user_data,
        owned_partitions=tuple(
            TopicPartition(owned_topic.topic, number) for owned_topic in message.owned_partitions for number in owned_topic.partitions
        ),
        generation_id=message.generation_id,
        rack_id=message.rack_id or None,
        group_instance_id=group_instance_id,
    )


def serialize_assignment(assignment: Assignment, version: int = VERSION) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in assignment.partitions:
        by_topic.setdefault(topic, []).append(partition)
    topics = [AssignedTopic(topic, numbers) for topic, numbers in by_topic.items()]
    return _write(ConsumerProtocolAssignment(assigned_partitions=topics, user_data=assignment.user_data), min(version, VERSION))


def deserialize_assignment(data: bytes) -> Assignment:
    message = _read(ConsumerProtocolAssignment, data)
    partitions = tuple(
        TopicPartition(assigned_topic.topic, number)
        for assigned_topic in message.assigned_partitions
        for number in assigned_topic.partitions
    )
    return Assignment(partitions, message.user_data)


def _write(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    writer = Writer()
    write_i16_be(writer.out, version)
    message.write(writer, version)
    return writer.out.getvalue()


def _read(kind: type[M], data: bytes) -> M:
    reader = Reader(bytes(data))
    version = reader.int16()
    if version < 0:
        raise MalformedMessage(f"Unsupported consumer protocol version: {version}")
    message: Message = kind.read(reader, min(version, VERSION))
    assert isinstance(message, kind)
    return message
