"""ListGroups: the groups that this broker coordinates. A client that lists all groups sends it to every broker.

Versions 0 to 5.
Behaviour: an empty filter matches every group, an unknown state or type matches none. Filters ignore case.
Version notes: 4 adds states and a filter by state, 5 types and a filter by type.
Errors: COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS; the list is empty then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.list_groups_response import ListGroupsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[ListGroupsRequest]) -> Reply[ListGroupsResponse]:
    return Reply.now(request, broker.groups.list_groups(request.message))
