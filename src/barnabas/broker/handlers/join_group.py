# Compiled by mypyc: src/compiled.toml lists this module.
"""JoinGroup: a member of the classic protocol joins its group, and waits until the other members have joined.

Versions 0 to 9.
Behaviour
- the coordinator responds when all known members have joined or the rebalance timeout has passed. The leader gets the metadata of all
  members, the others the generation and the chosen protocol. The first members of a group wait group.initial.rebalance.delay.ms for more.
- a member without an id gets one. From version 4 on it has to join again with this id before it is a member (MEMBER_ID_REQUIRED).
Authorization: READ on the group, else GROUP_AUTHORIZATION_FAILED.
Version notes
- 0: one timeout for session and rebalance. 1: a rebalance timeout. 5: static members. 7: the protocol type and a protocol that may be null.
- 8: the reason. 9: the leader may be asked to skip the assignment.
Errors: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, UNKNOWN_MEMBER_ID, MEMBER_ID_REQUIRED, FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL,
  GROUP_MAX_SIZE_REACHED, REBALANCE_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS,
  GROUP_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.group_caller import caller_of
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group_request import JoinGroupRequest
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_NULLABLE_PROTOCOL_NAME: Final = 7


def handle(broker: Broker, request: Request[JoinGroupRequest]) -> Reply[JoinGroupResponse]:
    if not broker.access.allows(request, AclOperation.READ, ResourceType.GROUP, request.message.group_id):
        protocol_name = None if request.version >= _NULLABLE_PROTOCOL_NAME else ""
        code = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return Reply.now(request, JoinGroupResponse(error_code=code, protocol_name=protocol_name))
    reply: Reply[JoinGroupResponse] = Reply(request)
    broker.groups.join_group(caller_of(request, broker.access), request.message, reply.complete)
    return reply
