"""DescribeGroups: state, protocol and members of classic groups, for tools.

Versions 0 to 6.
Behaviour: results are in the order of the request, a repeated group included. A group that does not exist, or has another type, is Dead.
Authorization: DESCRIBE on each group. Denied groups come first, with the error GROUP_AUTHORIZATION_FAILED whether they exist or not.
Version notes: 3: authorized operations, if the client asks for them. 4: static members. 6: a group that does not exist is an error, with a
  message.
Errors, of a group: GROUP_ID_NOT_FOUND (6), NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS,
  GROUP_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.authorized_operations import ALL_ON_GROUP
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups_request import DescribeGroupsRequest
from barnabas.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("groups",), ("groups",))


def handle(broker: Broker, request: Request[DescribeGroupsRequest]) -> Reply[DescribeGroupsResponse]:
    reply: Reply[DescribeGroupsResponse] = Reply(request)
    access = broker.access
    denied: list[DescribedGroup] = []
    groups = request.message.groups
    if not access.is_open:
        allowed = access.allowed(request, AclOperation.DESCRIBE, ResourceType.GROUP, groups)
        denied = [DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group) for group in groups if group not in allowed]
        groups = [group for group in groups if group in allowed]

    def done(described: list[DescribedGroup]) -> None:
        for group in described:
            if request.message.include_authorized_operations and not group.error_code:
                group.authorized_operations = access.operations(request, ALL_ON_GROUP, ResourceType.GROUP, group.group_id)
        reply.complete(DescribeGroupsResponse(groups=denied + described))

    broker.groups.describe_groups(groups, request.version, done)
    return reply
