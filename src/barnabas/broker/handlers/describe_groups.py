"""DescribeGroups: state, protocol and members of classic groups, for tools.

Versions 0 to 6.
Behaviour: groups are answered in the order asked, and as often. One that does not exist, or is of another kind, is Dead.
Version notes: 3 adds what the client may do with a group, told if it is asked for. 4: static members. 6: that a group does not exist is an
  error, with a message.
Errors, of a group: GROUP_ID_NOT_FOUND (6), NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.authorized_operations import ALL_ON_GROUP
from barnabas.broker.requests.reply import Answer
from barnabas.protocol.messages.describe_groups_request import DescribeGroupsRequest
from barnabas.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("groups",), ("groups",))


def handle(broker: Broker, request: Request[DescribeGroupsRequest]) -> DescribeGroupsResponse | None:
    answer: Answer[DescribeGroupsResponse] = Answer(request)

    def done(groups: list[DescribedGroup]) -> None:
        for group in groups:
            if request.message.include_authorized_operations and not group.error_code:
                group.authorized_operations = ALL_ON_GROUP
        answer.give(DescribeGroupsResponse(groups=groups))

    broker.groups.describe_groups(request.message.groups, request.version, done)
    return answer.now()
