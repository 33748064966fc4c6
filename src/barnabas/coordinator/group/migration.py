"""Converts a classic group into a consumer group and back, while its members go on consuming.

The upgrade happens when the first member of the consumer protocol joins a classic group of consumers, the downgrade when the last such
member leaves. Both are records that remove one group and create the other; offsets are not touched. The functions here compute the
converted group and change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.coordinator.group.classic.classic_group import STABLE, ClassicGroup, ClassicGroupMember
from barnabas.coordinator.group.classic.consumer_protocol import read_assignment, read_subscription, version_of, write_assignment
from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.consumer.consumer_group import PROTOCOL_TYPE, ConsumerGroup
from barnabas.coordinator.group.consumer.consumer_group_member import NO_PARTITIONS, Assignment, ConsumerGroupMember
from barnabas.coordinator.group.consumer.consumer_group_records import (
    current_assignment_record,
    group_epoch_record,
    member_record,
    target_epoch_record,
    target_member_record,
)
from barnabas.coordinator.group.consumer.metadata_hash import MetadataHashes
from barnabas.coordinator.group.topics_image import TopicsImage
from barnabas.coordinator.result import CoordinatorRecord
from barnabas.errors import GroupIdNotFound
from barnabas.protocol.coordinator_records.consumer_group_member_metadata_value import ClassicMemberMetadata, ClassicProtocol
from barnabas.protocol.errors import MalformedMessage


def validate_upgrade(group: ClassicGroup, config: GroupCoordinatorConfig) -> None:
    """Raises GroupIdNotFound with the reason: for a member of the consumer protocol, a classic group does not exist."""
    fault = None
    if not config.group_consumer_migration_policy.upgrade_enabled:
        fault = "online upgrade is disabled"
    elif not group.uses_consumer_protocol:
        fault = "the group does not use the consumer embedded protocol"
    elif group.num_members > config.group_consumer_max_size:
        fault = "the group size exceeds the consumer group maximum size"
    if fault is not None:
        raise GroupIdNotFound(f"Cannot upgrade classic group {group.group_id} to consumer group because {fault}.")


def upgraded(classic: ClassicGroup, image: TopicsImage, hashes: MetadataHashes) -> ConsumerGroup:
    """The consumer group for a classic one. The last assignment becomes the target and the current assignment. Raises GroupIdNotFound."""
    group = ConsumerGroup(classic.group_id)
    group.group_epoch = group.assignment_epoch = classic.generation_id
    for classic_member in classic.members.values():
        try:
            member = _upgraded_member(classic, classic_member, image)
        except MalformedMessage as error:
            raise GroupIdNotFound(
                f"Cannot upgrade classic group {classic.group_id} to consumer group because the embedded consumer protocol is malformed."
            ) from error
        group.target_assignment[member.member_id] = member.assigned_partitions
        group.update_member(member)
    group.metadata_hash = hashes.group_hash(group.subscribed_topics)
    return group


def _upgraded_member(classic: ClassicGroup, member: ClassicGroupMember, image: TopicsImage) -> ConsumerGroupMember:
    # A member that joined a rebalance in progress need not support the protocol of the last generation.
    subscription = read_subscription(member.protocols.get(classic.protocol_name or "", next(iter(member.protocols.values()), b"")))
    return ConsumerGroupMember(
        member_id=member.member_id,
        member_epoch=classic.generation_id,
        previous_member_epoch=classic.generation_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        assigned_partitions=_assigned(classic.group_id, member, image),
        classic=classic_metadata(member.session_timeout_ms, member.protocols),
    )


def _assigned(group_id: str, member: ClassicGroupMember, image: TopicsImage) -> Assignment:
    if not member.assignment:
        return NO_PARTITIONS  # the member joined and never synced
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise GroupIdNotFound(
            f"Cannot upgrade classic group {group_id} to consumer group because an unsupported custom assignor is in use. "
            "Please refer to the documentation or switch to a default assignor before re-attempting the upgrade."
        )
    return {
        topic_id: frozenset(topic.partitions)
        for topic in assignment.assigned_partitions
        if (topic_id := image.topic_id(topic.topic)) is not None
    }


def classic_metadata(session_timeout_ms: int, protocols: Mapping[str, bytes]) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(session_timeout_ms, [ClassicProtocol(name, bytes(metadata)) for name, metadata in protocols.items()])


def upgrade_records(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """The records that create an upgraded group."""
    members = group.members.values()
    return [
        *(member_record(group.group_id, member) for member in members),
        group_epoch_record(group.group_id, group.group_epoch, group.metadata_hash),
        *(target_member_record(group.group_id, member.member_id, group.target_assignment[member.member_id]) for member in members),
        target_epoch_record(group.group_id, group.group_epoch),
        *(current_assignment_record(group.group_id, member) for member in members),
    ]


def allows_downgrade(
    group: ConsumerGroup, config: GroupCoordinatorConfig, leaving: Mapping[str, ConsumerGroupMember], staying: int
) -> bool:
    """Whether the group becomes a classic one when `leaving` leave and `staying` members remain."""
    return (
        group.all_use_classic_protocol_without(leaving)
        and staying > 0
        and config.group_consumer_migration_policy.downgrade_enabled
        and staying <= config.group_max_size
    )


def downgraded(
    group: ConsumerGroup,
    leaving: Mapping[str, ConsumerGroupMember],
    joining: ConsumerGroupMember | None,
    image: TopicsImage,
    now_ms: int,
) -> ClassicGroup:
    """The classic group for a consumer group, without `leaving`; `joining` is a static member that replaces one of them."""
    classic = ClassicGroup(group.group_id, STABLE, group.group_epoch, PROTOCOL_TYPE, state_timestamp=now_ms)
    replaced = group.static_member(joining.instance_id) if joining is not None else None
    for member in group.members.values():
        if member.member_id not in leaving and (replaced is None or member.member_id != replaced.member_id):
            classic.add(_downgraded_member(member))
    if joining is not None:
        classic.add(_downgraded_member(joining))
    classic.protocol_name = classic.select_protocol()
    classic.subscribed_topics = classic.compute_subscribed_topics()
    for member_id, classic_member in classic.members.items():
        source_id = replaced.member_id if joining is not None and replaced is not None and member_id == joining.member_id else member_id
        try:
            version = version_of(classic_member.metadata(classic.protocol_name))
        except MalformedMessage as error:
            raise GroupIdNotFound(f"Cannot downgrade the classic group {group.group_id}: {error}.") from error
        classic.assign(classic_member, write_assignment(group.target_assignment.get(source_id, NO_PARTITIONS), image, version))
    return classic


def _downgraded_member(member: ConsumerGroupMember) -> ClassicGroupMember:
    assert member.classic is not None
    return ClassicGroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        PROTOCOL_TYPE,
        {protocol.name: bytes(protocol.metadata) for protocol in member.classic.supported_protocols},
    )
