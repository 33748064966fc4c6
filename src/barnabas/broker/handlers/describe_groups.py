"""DescribeGroups: state, protocol and members of classic groups, for tools.

Versions 0 to 6.
Behaviour: results are in the order of the request, a repeated group included. A group that does not exist, or has another type, is Dead.
Version notes: 3: authorized operations, if the client asks for them. 4: static members. 6: a group that does not exist is an error, with a
  message.
Errors, of a group: GROUP_ID_NOT_FOUND (6), NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.authorized_operations import ALL_ON_GROUP
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.messages.describe_groups_request import DescribeGroupsRequest
from barnabas.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("groups",), ("groups",))


def handle(broker: Broker, request: Request[DescribeGroupsRequest]) -> Reply[DescribeGroupsResponse]:
    reply: Reply[DescribeGroupsResponse] = Reply(request)

    def done(groups: list[DescribedGroup]) -> None:
        for group in groups:
            if request.message.include_authorized_operations and not group.error_code:
                group.authorized_operations = ALL_ON_GROUP
        reply.complete(DescribeGroupsResponse(groups=groups))

    broker.groups.describe_groups(request.message.groups, request.version, done)
    return reply
