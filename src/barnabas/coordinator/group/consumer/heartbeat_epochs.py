"""Validates a ConsumerGroupHeartbeat: first the request by itself, then its epoch against the member's.

A member whose epoch is too high or too low is fenced: it must drop its partitions and rejoin. A member that is exactly one epoch behind may
only have missed the last response.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from barnabas.coordinator.group.consumer.consumer_group_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupMember,
)
from barnabas.coordinator.group.consumer.current_assignment import Owned
from barnabas.errors import FencedMemberEpoch, InvalidRequest, UnsupportedAssignor
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.uuid import Uuid

MEMBER_ID_REQUIRED_VERSION: Final = 1  # from this version on the member generates its own id


def validate_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Raises InvalidRequest or UnsupportedAssignor. Does not need the group."""
    epoch = request.member_epoch
    if version >= MEMBER_ID_REQUIRED_VERSION or epoch > 0 or epoch == LEAVE_EPOCH:
        _not_blank(request.member_id, "MemberId can't be empty.")
    _not_blank(request.group_id, "GroupId can't be empty.")
    _not_blank(request.instance_id, "InstanceId can't be empty.")
    _not_blank(request.rack_id, "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise InvalidRequest("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise InvalidRequest("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise InvalidRequest("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        )


def check_member_epoch(member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> None:
    """Raises FencedMemberEpoch."""
    received = request.member_epoch
    if received in (JOIN_EPOCH, member.member_epoch):
        return
    if received < member.member_epoch and received == member.previous_member_epoch and _owns_only_assigned(member, owned_of(request)):
        return
    relation = "greater" if received > member.member_epoch else "smaller"
    raise FencedMemberEpoch(
        f"The consumer group member has a {relation} member epoch ({received}) than the one known by the group coordinator "
        f"({member.member_epoch}). The member must abandon all its partitions and rejoin."
    )


def owned_of(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    owned: dict[Uuid, list[int]] = {}
    for topic in request.topic_partitions:
        owned.setdefault(topic.topic_id, []).extend(topic.partitions)
    return owned


def _owns_only_assigned(member: ConsumerGroupMember, owned: Owned | None) -> bool:
    if owned is None:
        return False
    return all(
        topic_id in member.assigned_partitions and member.assigned_partitions[topic_id].issuperset(partitions)
        for topic_id, partitions in owned.items()
    )


def _not_blank(value: str | None, message: str) -> None:
    if value is not None and not value.strip():
        raise InvalidRequest(message)
