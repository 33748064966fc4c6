"""LeaveGroup: removes members from a classic group. The remaining members rebalance.

Versions 0 to 5.
Behaviour: each member has its own result; an error of one does not affect the others.
Authorization: READ on the group, else GROUP_AUTHORIZATION_FAILED.
Version notes: 0 to 2 name one member, whose error is the error of the response. 3: many members, also by their instance ids. 5: the reason.
Errors: INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS,
  GROUP_AUTHORIZATION_FAILED; of a member UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leave_group_request import LeaveGroupRequest
from barnabas.protocol.messages.leave_group_response import LeaveGroupResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("members",), ("members",))


def handle(broker: Broker, request: Request[LeaveGroupRequest]) -> Reply[LeaveGroupResponse]:
    if not broker.access.allows(request, AclOperation.READ, ResourceType.GROUP, request.message.group_id):
        return Reply.now(request, LeaveGroupResponse(error_code=int(ErrorCode.GROUP_AUTHORIZATION_FAILED)))
    reply: Reply[LeaveGroupResponse] = Reply(request)
    broker.groups.leave_group(request.message, request.version, reply.complete)
    return reply
