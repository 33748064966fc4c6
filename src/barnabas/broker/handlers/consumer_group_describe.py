"""ConsumerGroupDescribe: groups of the consumer protocol, with the current and the target assignment of each member.

Versions 0 to 1.
Behaviour: each group has its own result, in the order of the request.
Version notes: 1 says which members still use the classic protocol.
Errors, of a group: UNSUPPORTED_VERSION if the protocol is not enabled, INVALID_GROUP_ID, GROUP_ID_NOT_FOUND (also for a group of another
  type), NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.consumer_group_heartbeat import is_enabled
from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.authorized_operations import ALL_ON_GROUP
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("group_ids",), ("groups",))


def handle(broker: Broker, request: Request[ConsumerGroupDescribeRequest]) -> Reply[ConsumerGroupDescribeResponse]:
    message = request.message
    if not is_enabled(broker):
        code = int(ErrorCode.UNSUPPORTED_VERSION)
        return Reply.now(
            request, ConsumerGroupDescribeResponse(groups=[DescribedGroup(code, group_id=group_id) for group_id in message.group_ids])
        )
    reply: Reply[ConsumerGroupDescribeResponse] = Reply(request)

    def described(groups: list[DescribedGroup]) -> None:
        if message.include_authorized_operations:
            for group in groups:
                if group.error_code == 0:
                    group.authorized_operations = ALL_ON_GROUP
        reply.complete(ConsumerGroupDescribeResponse(groups=groups))

    broker.groups.consumer_group_describe(message.group_ids, described)
    return reply
