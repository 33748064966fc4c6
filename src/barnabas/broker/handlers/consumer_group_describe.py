"""ConsumerGroupDescribe: groups of the consumer protocol, with their members and what each has and is to have.

Versions 0 to 1.
Behaviour: each group is answered on its own, in the order asked.
Version notes: 1 tells which members still speak the classic protocol.
Errors, of a group: UNSUPPORTED_VERSION where the protocol is not enabled, INVALID_GROUP_ID, GROUP_ID_NOT_FOUND (also for a group of another
  kind), NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.consumer_group_heartbeat import is_enabled
from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.authorized_operations import ALL_ON_GROUP
from barnabas.broker.requests.reply import Answer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

PARTS: Final = Parts(("group_ids",), ("groups",))


def handle(broker: Broker, request: Request[ConsumerGroupDescribeRequest]) -> ConsumerGroupDescribeResponse | None:
    message = request.message
    if not is_enabled(broker):
        code = int(ErrorCode.UNSUPPORTED_VERSION)
        return ConsumerGroupDescribeResponse(groups=[DescribedGroup(code, group_id=group_id) for group_id in message.group_ids])
    answer: Answer[ConsumerGroupDescribeResponse] = Answer(request)

    def described(groups: list[DescribedGroup]) -> None:
        if message.include_authorized_operations:
            for group in groups:
                if group.error_code == 0:
                    group.authorized_operations = ALL_ON_GROUP
        answer.give(ConsumerGroupDescribeResponse(groups=groups))

    broker.groups.consumer_group_describe(message.group_ids, described)
    return answer.now()
