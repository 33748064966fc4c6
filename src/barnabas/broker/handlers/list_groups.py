"""ListGroups: the groups that this broker coordinates. A client that lists all groups sends it to every broker.

Versions 0 to 5.
Behaviour: an empty filter matches every group, an unknown state or type matches none. Filters ignore case.
Authorization: DESCRIBE on the cluster, else DESCRIBE on each group. Denied groups are left out.
Version notes: 4 adds states and a filter by state, 5 types and a filter by type.
Errors: COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS; the list is empty then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.list_groups_response import ListGroupsResponse
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[ListGroupsRequest]) -> Reply[ListGroupsResponse]:
    response = broker.groups.list_groups(request.message)
    access = broker.access
    if not access.is_open and not access.allows_on_cluster(request, AclOperation.DESCRIBE, logs_denied=False):
        groups = [group.group_id for group in response.groups]
        allowed = access.allowed(request, AclOperation.DESCRIBE, ResourceType.GROUP, groups, logs_denied=False)
        response.groups = [group for group in response.groups if group.group_id in allowed]
    return Reply.now(request, response)
