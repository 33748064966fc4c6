"""The response of ConsumerGroupDescribe for a consumer group, which Kafka's tools print. Deleted topics are left out."""

from __future__ import annotations

from typing import Final

from barnabas.coordinator.group.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.group.consumer.consumer_group_member import NO_PARTITIONS, ConsumerGroupMember
from barnabas.coordinator.group.consumer.consumer_group_member import Assignment as Partitions
from barnabas.coordinator.group.consumer.consumer_group_records import in_order
from barnabas.coordinator.group.topics_image import TopicsImage
from barnabas.protocol.messages.consumer_group_describe_response import Assignment, DescribedGroup, Member, TopicPartitions

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


def describe_consumer_group(group: ConsumerGroup, default_assignor: str, image: TopicsImage) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(None, None) or default_assignor,
        members=[_member(member, group.target_assignment.get(member.member_id, NO_PARTITIONS), image) for member in group.members.values()],
    )


def _member(member: ConsumerGroupMember, target: Partitions, image: TopicsImage) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(member.assigned_partitions, image),
        target_assignment=_assignment(target, image),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(partitions: Partitions, image: TopicsImage) -> Assignment:
    return Assignment(
        [
            TopicPartitions(topic_id, name, sorted(partitions[topic_id]))
            for topic_id in in_order(partitions)
            if (name := image.topic_name(topic_id)) is not None
        ]
    )
