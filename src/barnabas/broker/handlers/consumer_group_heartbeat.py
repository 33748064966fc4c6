"""ConsumerGroupHeartbeat: the one request of the consumer protocol. A member joins, reports its state and leaves with it.

Versions 0 to 1.
Behaviour
- the coordinator assigns the partitions. A response names the partitions that the member may own now; the member revokes all others, and
  gets the rest of its assignment in a later response.
- refused as a whole unless the protocol is enabled: group.version, and consumer in group.coordinator.rebalance.protocols.
Version notes: 0: the coordinator may choose the id of a new member. 1: the member chooses its id; subscription by an RE2 expression.
Errors: UNSUPPORTED_VERSION, INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH,
  UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, GROUP_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
  COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.group_caller import caller_of
from barnabas.broker.requests.reply import Reply
from barnabas.broker.topics.features import GROUP_VERSION
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[ConsumerGroupHeartbeatRequest]) -> Reply[ConsumerGroupHeartbeatResponse]:
    if not is_enabled(broker):
        return Reply.now(request, ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    reply: Reply[ConsumerGroupHeartbeatResponse] = Reply(request)
    broker.groups.consumer_group_heartbeat(caller_of(request), request.message, reply.complete)
    return reply


def is_enabled(broker: Broker) -> bool:
    """Whether the finalized group.version includes the consumer protocol, and the settings of this broker allow it."""
    is_finalized = broker.features.finalized.get(GROUP_VERSION, 0) >= 1
    return is_finalized and "consumer" in broker.config.current["group.coordinator.rebalance.protocols"]
