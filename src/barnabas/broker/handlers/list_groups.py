"""ListGroups: the groups that this broker coordinates; a client that wants all of them asks every broker.

Versions 0 to 5.
Behaviour: a filter that names nothing lets everything through; a state or type that does not exist finds nothing. Case does not matter.
Version notes: 4 adds states and a filter by them, 5 types and a filter by them.
Errors: COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS; then no group is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.messages.list_groups_request import ListGroupsRequest
from barnabas.protocol.messages.list_groups_response import ListGroupsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[ListGroupsRequest]) -> ListGroupsResponse:
    return broker.groups.list_groups(request.message)
