"""DeleteGroups: deletes groups that have no members, with all their committed offsets.

Versions 0 to 2, which differ in their encoding only.
Behaviour: a group that is named twice has one result. The broker responds when the groups are deleted.
Authorization: DELETE on each group. Denied groups come last, with the error GROUP_AUTHORIZATION_FAILED whether they exist or not.
Errors, of a group: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
  COORDINATOR_LOAD_IN_PROGRESS, GROUP_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups_request import DeleteGroupsRequest
from barnabas.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("groups_names",), ("results",))


def handle(broker: Broker, request: Request[DeleteGroupsRequest]) -> Reply[DeleteGroupsResponse]:
    reply: Reply[DeleteGroupsResponse] = Reply(request)
    groups = request.message.groups_names
    denied: list[DeletableGroupResult] = []
    if not broker.access.is_open:
        allowed = broker.access.allowed(request, AclOperation.DELETE, ResourceType.GROUP, groups)
        error = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        denied = [DeletableGroupResult(group, error) for group in dict.fromkeys(groups) if group not in allowed]
        groups = [group for group in groups if group in allowed]

    def done(results: list[DeletableGroupResult]) -> None:
        reply.complete(DeleteGroupsResponse(results=results + denied))

    broker.groups.delete_groups(groups, done)
    return reply
