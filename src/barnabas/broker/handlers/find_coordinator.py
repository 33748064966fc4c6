"""FindCoordinator: the broker that coordinates a group, a transactional id or the state of a share group.

Versions 0 to 6.
Behaviour
- the hash of the key selects a partition of an internal topic, and the leader of that partition is the coordinator. While the topic does
  not exist or has no leader, the error is COORDINATOR_NOT_AVAILABLE and the client retries. The first request creates the topics of groups
  and transactions.
Authorization
- DESCRIBE on the group or the transactional id. The error of a denied key is GROUP_AUTHORIZATION_FAILED or
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
- share groups: CLUSTER_ACTION on the cluster, else every key has the error CLUSTER_AUTHORIZATION_FAILED.
Version notes
- 0: groups only. 1: transactional ids, an error message (without an error it is "NONE"). 4: many keys, each with its own error and without
  a message, unless the whole request is invalid. 6: share groups.
Errors: COORDINATOR_NOT_AVAILABLE; INVALID_REQUEST for an unknown key type, for share groups before version 6, and for a key of a share
  group that is not group:topic id:partition.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.coordinator.group.group import partition_for
from barnabas.endpoint import EndPoint
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from barnabas.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.topic_name import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.uuid import Uuid

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2

_BATCH_VERSION: Final = 4
_SHARE_VERSION: Final = 6
_NO_NODE: Final = -1  # the broker id and the port in a response with an error

# The topic of each key type, and the setting for its number of partitions.
_TOPICS: Final = {
    GROUP: (CONSUMER_OFFSETS, "offsets.topic.num.partitions"),
    TRANSACTION: (TRANSACTION_STATE, "transaction.state.log.num.partitions"),
    SHARE: (SHARE_GROUP_STATE, "share.coordinator.state.topic.num.partitions"),
}
_PARTITION: Final = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)

PARTS: Final = Parts(("coordinator_keys",), ("coordinators",))


def handle(broker: Broker, request: Request[FindCoordinatorRequest]) -> Reply[FindCoordinatorResponse]:
    if request.version >= _BATCH_VERSION:
        return Reply.now(
            request, FindCoordinatorResponse(coordinators=[_coordinator(broker, request, key) for key in request.message.coordinator_keys])
        )
    located = _locate(broker, request, request.message.key)
    if isinstance(located, ErrorCode):
        return Reply.now(request, FindCoordinatorResponse(0, located, located.message, _NO_NODE, "", _NO_NODE))
    node_id, endpoint = located
    return Reply.now(request, FindCoordinatorResponse(0, ErrorCode.NONE, ErrorCode.NONE.message, node_id, endpoint.host, endpoint.port))


def coordinator_partition(broker: Broker, key_type: int, key: str) -> tuple[str, int]:
    """The topic and the partition that hold the state of a key."""
    topic, setting = _TOPICS[key_type]
    count = broker.metadata_cache.partition_count(topic) or broker.config.current.number(setting)
    return topic, partition_for(key, count)


def _coordinator(broker: Broker, request: Request[FindCoordinatorRequest], key: str) -> Coordinator:
    located = _locate(broker, request, key)
    if isinstance(located, ErrorCode):
        is_of_the_whole = request.message.key_type not in _TOPICS or located is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return Coordinator(key, _NO_NODE, "", _NO_NODE, located, located.message if is_of_the_whole else "")
    node_id, endpoint = located
    return Coordinator(key, node_id, endpoint.host, endpoint.port)


def _locate(broker: Broker, request: Request[FindCoordinatorRequest], key: str) -> tuple[int, EndPoint] | ErrorCode:
    key_type = request.message.key_type
    denial = _denial(broker, request, key)
    if denial is not None:
        return denial
    if key_type not in _TOPICS or (key_type == SHARE and (request.version < _SHARE_VERSION or not _is_share_key(key))):
        return ErrorCode.INVALID_REQUEST
    topic, partition = coordinator_partition(broker, key_type, key)
    if key_type != SHARE and not broker.metadata_cache.contains(topic):
        broker.topic_creation.create_topics([topic])
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return broker.metadata_cache.leader_endpoint(topic, partition, request.listener_name) or ErrorCode.COORDINATOR_NOT_AVAILABLE


def _denial(broker: Broker, request: Request[FindCoordinatorRequest], key: str) -> ErrorCode | None:
    access, key_type = broker.access, request.message.key_type
    if key_type == GROUP and not access.allows(request, AclOperation.DESCRIBE, ResourceType.GROUP, key):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if key_type == TRANSACTION and not access.allows(request, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    is_share = key_type == SHARE and request.version >= _SHARE_VERSION
    if is_share and not access.allows_on_cluster(request, AclOperation.CLUSTER_ACTION):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return None


def _is_share_key(key: str) -> bool:
    """Checked as Java's split and parseInt do: empty parts at the end do not count."""
    parts = key.rstrip(":").split(":")
    if len(parts) != 3 or not parts[0].strip():
        return False
    try:
        Uuid.from_string(parts[1])
    except ValueError:
        return False
    return _PARTITION.fullmatch(parts[2]) is not None and -(1 << 31) <= int(parts[2]) < 1 << 31
