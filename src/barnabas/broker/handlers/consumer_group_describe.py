"""ConsumerGroupDescribe: groups of the consumer protocol, with the current and the target assignment of each member.

Versions 0 to 1.
Behaviour: each group has its own result, in the order of the request.
Authorization
- DESCRIBE on each group. Denied groups come first, with the error GROUP_AUTHORIZATION_FAILED whether they exist or not.
- DESCRIBE on the topics that the members of a group own or will own, else the group has the error TOPIC_AUTHORIZATION_FAILED alone.
Version notes: 1 says which members still use the classic protocol.
Errors, of a group: UNSUPPORTED_VERSION if the protocol is not enabled, INVALID_GROUP_ID, GROUP_ID_NOT_FOUND (also for a group of another
  type), NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.consumer_group_heartbeat import is_enabled
from barnabas.broker.handlers.parts import Parts
from barnabas.broker.requests.authorized_operations import ALL_ON_GROUP
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

_HIDDEN_TOPICS: Final = "The group has described topic(s) that the client is not authorized to describe."

PARTS: Final = Parts(("group_ids",), ("groups",))


def handle(broker: Broker, request: Request[ConsumerGroupDescribeRequest]) -> Reply[ConsumerGroupDescribeResponse]:
    message = request.message
    if not is_enabled(broker):
        code = int(ErrorCode.UNSUPPORTED_VERSION)
        return Reply.now(
            request, ConsumerGroupDescribeResponse(groups=[DescribedGroup(code, group_id=group_id) for group_id in message.group_ids])
        )
    reply: Reply[ConsumerGroupDescribeResponse] = Reply(request)
    access = broker.access
    denied: list[DescribedGroup] = []
    group_ids = message.group_ids
    if not access.is_open:
        allowed = access.allowed(request, AclOperation.DESCRIBE, ResourceType.GROUP, group_ids)
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        denied = [DescribedGroup(error, group_id=group_id) for group_id in group_ids if group_id not in allowed]
        group_ids = [group_id for group_id in group_ids if group_id in allowed]

    def described(groups: list[DescribedGroup]) -> None:
        if message.include_authorized_operations:
            for group in groups:
                if group.error_code == 0:
                    group.authorized_operations = access.operations(request, ALL_ON_GROUP, ResourceType.GROUP, group.group_id)
        if not access.is_open:
            groups = _without_hidden_topics(broker, request, groups)
        reply.complete(ConsumerGroupDescribeResponse(groups=denied + groups))

    broker.groups.consumer_group_describe(group_ids, described)
    return reply


def _without_hidden_topics(
    broker: Broker, request: Request[ConsumerGroupDescribeRequest], groups: list[DescribedGroup]
) -> list[DescribedGroup]:
    """The groups; an error in place of each group with a topic that the client may not describe."""
    topics = dict.fromkeys(topic for group in groups for topic in _topics(group))
    allowed = broker.access.allowed(request, AclOperation.DESCRIBE, ResourceType.TOPIC, topics)
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return [
        group if all(topic in allowed for topic in _topics(group)) else DescribedGroup(error, _HIDDEN_TOPICS, group.group_id)
        for group in groups
    ]


def _topics(group: DescribedGroup) -> Iterable[str]:
    return (
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        if assignment is not None
        for topic in assignment.topic_partitions
    )
