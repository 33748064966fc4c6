"""The subscription and the assignment that consumers of the classic protocol embed in JoinGroup and SyncGroup.

The classic protocol treats them as opaque bytes. A consumer group with classic members, and a group that is converted, has to read and
write them. A version above the newest one supported here is read as the newest, as in Kafka.
"""

from __future__ import annotations

from typing import TypeVar

from librt.strings import write_i16_be

from barnabas.coordinator.group.consumer.consumer_group_member import Assignment
from barnabas.coordinator.group.consumer.consumer_group_records import in_order
from barnabas.coordinator.group.topics_image import TopicsImage
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.message import Message
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.reader import Reader
from barnabas.protocol.writer import Writer

M = TypeVar("M", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Raises MalformedMessage."""
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Raises MalformedMessage."""
    return _read(ConsumerProtocolAssignment, data)


def version_of(data: bytes) -> int:
    """The version in the first bytes of a subscription or an assignment; raises MalformedMessage."""
    version = Reader(bytes(data), 0, len(data)).int16()
    if version < 0:
        raise MalformedMessage(f"Unsupported consumer protocol version: {version}")
    return int(version)


def write_assignment(partitions: Assignment, image: TopicsImage, version: int) -> bytes:
    """The assignment in the version of the member's subscription. Deleted topics are left out."""
    topics = [
        AssignedTopic(name, sorted(partitions[topic_id]))
        for topic_id in in_order(partitions)
        if (name := image.topic_name(topic_id)) is not None
    ]
    version = min(version, ConsumerProtocolAssignment.HIGHEST_VERSION)
    writer = Writer()
    write_i16_be(writer.out, version)
    ConsumerProtocolAssignment(assigned_partitions=topics, user_data=None).write(writer, version)
    return writer.out.getvalue()


def _read(kind: type[M], data: bytes) -> M:
    reader = Reader(bytes(data), 0, len(data))
    version = reader.int16()
    if version < 0:
        raise MalformedMessage(f"Unsupported consumer protocol version: {version}")
    message: Message = kind.read(reader, min(int(version), kind.HIGHEST_VERSION))
    assert isinstance(message, kind)
    return message
