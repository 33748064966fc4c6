"""ConsumerGroupHeartbeat: the one request of the consumer protocol. A member joins, reports its state and leaves with it.

Versions 0 to 1.
Behaviour
- the coordinator assigns the partitions. A response names the partitions that the member may own now; the member revokes all others, and
  gets the rest of its assignment in a later response.
- refused as a whole unless the protocol is enabled: group.version, and consumer in group.coordinator.rebalance.protocols.
Authorization
- READ on the group, else GROUP_AUTHORIZATION_FAILED.
- DESCRIBE on each topic of the subscription, else TOPIC_AUTHORIZATION_FAILED. A regular expression matches only topics that the member may
  describe whose heartbeat made the coordinator resolve it.
Version notes: 0: the coordinator may choose the id of a new member. 1: the member chooses its id; subscription by an RE2 expression.
Errors: UNSUPPORTED_VERSION, INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH,
  UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, GROUP_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
  COORDINATOR_LOAD_IN_PROGRESS, GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.group_caller import caller_of
from barnabas.broker.requests.reply import Reply
from barnabas.broker.topics.features import GROUP_VERSION
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[ConsumerGroupHeartbeatRequest]) -> Reply[ConsumerGroupHeartbeatResponse]:
    if not is_enabled(broker):
        return Reply.now(request, ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    if not broker.access.is_open:
        error = _denial(broker, request)
        if error is not ErrorCode.NONE:
            return Reply.now(request, ConsumerGroupHeartbeatResponse(error_code=error))
    reply: Reply[ConsumerGroupHeartbeatResponse] = Reply(request)
    broker.groups.consumer_group_heartbeat(caller_of(request, broker.access), request.message, reply.complete)
    return reply


def _denial(broker: Broker, request: Request[ConsumerGroupHeartbeatRequest]) -> ErrorCode:
    message, access = request.message, broker.access
    if not access.allows(request, AclOperation.READ, ResourceType.GROUP, message.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    topics = set(message.subscribed_topic_names or ())
    if access.allowed(request, AclOperation.DESCRIBE, ResourceType.TOPIC, sorted(topics)) != topics:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def is_enabled(broker: Broker) -> bool:
    """Whether the finalized group.version includes the consumer protocol, and the settings of this broker allow it."""
    is_finalized = broker.features.finalized.get(GROUP_VERSION, 0) >= 1
    return is_finalized and "consumer" in broker.config.current["group.coordinator.rebalance.protocols"]
