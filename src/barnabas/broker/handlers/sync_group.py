# Compiled by mypyc: src/compiled.toml lists this module.
"""SyncGroup: the leader of a classic group sends the assignment, and every member gets its part of it.

Versions 0 to 5.
Behaviour: the coordinator responds when the leader's assignment is replicated, or when a new rebalance begins before that.
Authorization: READ on the group, else GROUP_AUTHORIZATION_FAILED.
Version notes: 3: static members. 5: request and response name the protocol that JoinGroup chose.
Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS, INCONSISTENT_GROUP_PROTOCOL (5),
  NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, GROUP_AUTHORIZATION_FAILED. While the group is loaded: REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.group_caller import caller_of
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_PROTOCOL_IS_MANDATORY: Final = 5


def handle(broker: Broker, request: Request[SyncGroupRequest]) -> Reply[SyncGroupResponse]:
    message = request.message
    lacks_protocol = request.version >= _PROTOCOL_IS_MANDATORY and (message.protocol_type is None or message.protocol_name is None)
    # Kafka refuses a request without a protocol first. So does the coordinator, before it looks for the group.
    if not lacks_protocol and not broker.access.allows(request, AclOperation.READ, ResourceType.GROUP, message.group_id):
        return Reply.now(request, SyncGroupResponse(error_code=int(ErrorCode.GROUP_AUTHORIZATION_FAILED)))
    reply: Reply[SyncGroupResponse] = Reply(request)
    broker.groups.sync_group(caller_of(request, broker.access), message, reply.complete)
    return reply
