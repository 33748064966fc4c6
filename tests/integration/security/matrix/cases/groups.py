"""Groups of both protocols, their offsets, and their coordinators."""

from __future__ import annotations

from barnabas.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.delete_groups_request import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups_request import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from barnabas.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest
from barnabas.security.operations import AclOperation
from barnabas.uuid import Uuid
from tests.integration.security.matrix.case import Case, Cell, on_cluster, on_group, on_topic, on_transactional_id
from tests.integration.security.matrix.names import (
    CONSUMER_GROUP,
    GROUP,
    GROUP_WITHOUT_OFFSETS,
    MISSING,
    MISSING_GROUP,
    MISSING_ID,
    MISSING_TRANSACTION,
    OTHER,
    OTHER_GROUP,
    OTHER_TRANSACTION,
    TOPIC,
    TRANSACTION,
    WIDE_CONSUMER_GROUP,
)

_TOPICS = (TOPIC, OTHER, MISSING)
_GROUPS = (GROUP, OTHER_GROUP, MISSING_GROUP)
_BY_ID = 10  # of OffsetCommit and OffsetFetch
_MANY_GROUPS = 8  # of OffsetFetch
_MANY_KEYS = 4  # of FindCoordinator
_KEY_TYPES = 1
_MANY_MEMBERS = 3  # of LeaveGroup
_OPERATIONS = 3  # of DescribeGroups
_PROTOCOL_NAME = 5  # of SyncGroup
_GROUP, _TRANSACTION = 0, 1
_SESSION_MS = 30_000


def _offset_commit(cell: Cell) -> OffsetCommitRequest:
    parts = [OffsetCommitRequestPartition()]
    ids = cell.world.topic_ids
    if cell.version >= _BY_ID:
        topics = [OffsetCommitRequestTopic("", ids.get(name, MISSING_ID), parts) for name in _TOPICS]
    else:
        topics = [OffsetCommitRequestTopic(name, Uuid.ZERO, parts) for name in _TOPICS]
    return OffsetCommitRequest(GROUP, topics=topics)


def _offset_fetch(cell: Cell, names: tuple[str, ...] | None = _TOPICS) -> OffsetFetchRequest:
    if cell.version < _MANY_GROUPS:
        return OffsetFetchRequest(GROUP, None if names is None else [OffsetFetchRequestTopic(name, [0]) for name in names])
    ids = cell.world.topic_ids
    topics = None
    if names is not None:
        topics = [
            OffsetFetchRequestTopics("", ids.get(name, MISSING_ID), [0])
            if cell.version >= _BY_ID
            else OffsetFetchRequestTopics(name, Uuid.ZERO, [0])
            for name in names
        ]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=topics) for group in _GROUPS])


def _offset_delete(cell: Cell) -> OffsetDeleteRequest:
    topics = [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition()]) for name in _TOPICS]
    return OffsetDeleteRequest(GROUP_WITHOUT_OFFSETS, topics)


def _find_coordinator(cell: Cell, key_type: int, keys: tuple[str, ...]) -> FindCoordinatorRequest:
    if cell.version >= _MANY_KEYS:
        return FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
    return FindCoordinatorRequest(keys[0], key_type if cell.version >= _KEY_TYPES else 0)


def _join(cell: Cell) -> JoinGroupRequest:
    return JoinGroupRequest(cell.own, _SESSION_MS, protocol_type="consumer", protocols=[JoinGroupRequestProtocol("range", b"")])


def _leave(cell: Cell) -> LeaveGroupRequest:
    if cell.version >= _MANY_MEMBERS:
        return LeaveGroupRequest(GROUP, members=[MemberIdentity("somebody")])
    return LeaveGroupRequest(GROUP, "somebody")


def _sync(cell: Cell) -> SyncGroupRequest:
    named = "consumer" if cell.version >= _PROTOCOL_NAME else None
    return SyncGroupRequest(GROUP, 1, "somebody", protocol_type=named, protocol_name=named and "range")


def _describe(cell: Cell) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(list(_GROUPS), cell.version >= _OPERATIONS)


def _consumer_heartbeat(cell: Cell, topics: list[str] | None, pattern: str | None = None) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        cell.own,
        str(Uuid(b"a member's id..!")),
        0,
        rebalance_timeout_ms=_SESSION_MS,
        subscribed_topic_names=topics,
        subscribed_topic_regex=pattern,
        topic_partitions=[],
    )


def _consumer_describe(cell: Cell, *groups: str) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(list(groups), True)


CASES = (
    Case(
        "OffsetCommit",
        (0, 2, 9, 10),
        _offset_commit,
        lambda cell: [on_group(AclOperation.READ, GROUP), on_topic(AclOperation.READ, TOPIC)],
    ),
    Case(
        "OffsetFetch",
        (0, 1, 7, 9, 10),
        _offset_fetch,
        lambda cell: [on_group(AclOperation.DESCRIBE, GROUP), on_topic(AclOperation.DESCRIBE, TOPIC)],
    ),
    Case(
        "OffsetFetch of all topics",
        (2, 7, 8, 10),
        lambda cell: _offset_fetch(cell, None),
        lambda cell: [on_group(AclOperation.DESCRIBE, GROUP), on_topic(AclOperation.DESCRIBE, TOPIC)],
    ),
    Case(
        "OffsetDelete",
        (0,),
        _offset_delete,
        lambda cell: [on_group(AclOperation.DELETE, GROUP_WITHOUT_OFFSETS), on_topic(AclOperation.READ, TOPIC)],
    ),
    Case(
        "FindCoordinator of groups",
        (0, 1, 4, 6),
        lambda cell: _find_coordinator(cell, _GROUP, _GROUPS),
        lambda cell: [on_group(AclOperation.DESCRIBE, GROUP)],
    ),
    Case(
        "FindCoordinator of transactions",
        (1, 4, 6),
        lambda cell: _find_coordinator(cell, _TRANSACTION, (TRANSACTION, OTHER_TRANSACTION, MISSING_TRANSACTION)),
        lambda cell: [on_transactional_id(AclOperation.DESCRIBE, TRANSACTION)],
    ),
    Case("JoinGroup", (0, 3, 9), _join, lambda cell: [on_group(AclOperation.READ, cell.own)]),
    Case("Heartbeat", (0, 4), lambda cell: HeartbeatRequest(GROUP, 1, "somebody"), lambda cell: [on_group(AclOperation.READ, GROUP)]),
    Case("LeaveGroup", (0, 3, 5), _leave, lambda cell: [on_group(AclOperation.READ, GROUP)]),
    Case("SyncGroup", (0, 5), _sync, lambda cell: [on_group(AclOperation.READ, GROUP)]),
    Case("DescribeGroups", (0, 3, 5, 6), _describe, lambda cell: [on_group(AclOperation.DESCRIBE, GROUP)]),
    Case("DescribeGroups by a reader", (6,), _describe, lambda cell: [on_group(AclOperation.READ, GROUP)]),
    Case(
        "ListGroups",
        (0, 3, 5),
        lambda cell: ListGroupsRequest(),
        lambda cell: [on_group(AclOperation.DESCRIBE, GROUP)],
        lists_everything=True,
    ),
    Case(
        "ListGroups of the cluster",
        (0, 5),
        lambda cell: ListGroupsRequest(),
        lambda cell: [on_cluster(AclOperation.DESCRIBE)],
        lists_everything=True,
    ),
    Case(
        "DeleteGroups",
        (0, 2),
        lambda cell: DeleteGroupsRequest([cell.own, MISSING_GROUP]),
        lambda cell: [on_group(AclOperation.DELETE, cell.own)],
    ),
    Case(
        "ConsumerGroupHeartbeat",
        (0, 1),
        lambda cell: _consumer_heartbeat(cell, [TOPIC]),
        lambda cell: [on_group(AclOperation.READ, cell.own), on_topic(AclOperation.DESCRIBE, TOPIC)],
    ),
    Case(
        "ConsumerGroupHeartbeat for topics that may not be described",
        (0, 1),
        lambda cell: _consumer_heartbeat(cell, [TOPIC, OTHER, MISSING]),
        lambda cell: [on_group(AclOperation.READ, cell.own), on_topic(AclOperation.DESCRIBE, TOPIC)],
    ),
    Case(
        "ConsumerGroupHeartbeat with a pattern",
        (1,),
        lambda cell: _consumer_heartbeat(cell, None, "o.*|topic"),
        lambda cell: [on_group(AclOperation.READ, cell.own), on_topic(AclOperation.DESCRIBE, TOPIC)],
    ),
    Case(
        "ConsumerGroupDescribe",
        (0, 1),
        lambda cell: _consumer_describe(cell, CONSUMER_GROUP, OTHER_GROUP, MISSING_GROUP),
        lambda cell: [on_group(AclOperation.DESCRIBE, CONSUMER_GROUP), on_topic(AclOperation.DESCRIBE, TOPIC)],
    ),
    Case(
        "ConsumerGroupDescribe of members with topics that may not be described",
        (0, 1),
        lambda cell: _consumer_describe(cell, WIDE_CONSUMER_GROUP),
        lambda cell: [on_group(AclOperation.DESCRIBE, WIDE_CONSUMER_GROUP), on_topic(AclOperation.DESCRIBE, TOPIC)],
    ),
)
