# Compiled by mypyc: src/compiled.toml lists this module.
"""Heartbeat: keeps the session of a classic group's member alive, and tells the member when it has to rejoin.

Versions 0 to 4.
Behaviour: restarts the session timeout. While the group is being loaded the response has no error, because no session times out then.
Authorization: READ on the group, else GROUP_AUTHORIZATION_FAILED.
Version notes: 3: static members.
Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS, NOT_COORDINATOR,
  COORDINATOR_NOT_AVAILABLE, GROUP_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[HeartbeatRequest]) -> Reply[HeartbeatResponse]:
    if not broker.access.allows(request, AclOperation.READ, ResourceType.GROUP, request.message.group_id):
        return Reply.now(request, HeartbeatResponse(error_code=int(ErrorCode.GROUP_AUTHORIZATION_FAILED)))
    reply: Reply[HeartbeatResponse] = Reply(request)
    broker.groups.heartbeat(request.message, reply.complete)
    return reply
