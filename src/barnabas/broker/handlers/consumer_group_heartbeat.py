"""ConsumerGroupHeartbeat: all that a member of the consumer protocol ever says to its group: it joins, reports, and leaves with it.

Versions 0 to 1.
Behaviour
- the coordinator assigns the partitions. A member is told what it may own now, gives back what it may not, and is told the rest later.
- refused as a whole where the protocol is not enabled: group.version, and consumer in group.coordinator.rebalance.protocols.
Version notes: 0: a member that joins may leave its id to the coordinator. 1: it brings its own; subscription by an RE2 expression.
Errors: UNSUPPORTED_VERSION, INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH,
  UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, GROUP_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
  COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.group_caller import caller_of
from barnabas.broker.requests.reply import Answer
from barnabas.broker.topics.features import GROUP_VERSION
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[ConsumerGroupHeartbeatRequest]) -> ConsumerGroupHeartbeatResponse | None:
    if not is_enabled(broker):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    answer: Answer[ConsumerGroupHeartbeatResponse] = Answer(request)
    broker.groups.consumer_group_heartbeat(caller_of(request), request.message, answer.give)
    return answer.now()


def is_enabled(broker: Broker) -> bool:
    """Whether the cluster has agreed on the consumer protocol, and this broker's settings allow it."""
    is_agreed = broker.features.finalized.get(GROUP_VERSION, 0) >= 1
    return is_agreed and "consumer" in broker.config.current["group.coordinator.rebalance.protocols"]
