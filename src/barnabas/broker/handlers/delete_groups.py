"""DeleteGroups: deletes groups that have no members, with all their committed offsets.

Versions 0 to 2, which differ in their encoding only.
Behaviour: a group that is named twice has one result. The broker responds when the groups are deleted.
Errors, of a group: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
  COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.messages.delete_groups_request import DeleteGroupsRequest
from barnabas.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("groups_names",), ("results",))


def handle(broker: Broker, request: Request[DeleteGroupsRequest]) -> Reply[DeleteGroupsResponse]:
    reply: Reply[DeleteGroupsResponse] = Reply(request)

    def done(results: list[DeletableGroupResult]) -> None:
        reply.complete(DeleteGroupsResponse(results=results))

    broker.groups.delete_groups(request.message.groups_names, done)
    return reply
