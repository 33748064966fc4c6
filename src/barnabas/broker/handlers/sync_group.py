# Compiled by mypyc: src/compiled.toml lists this module.
"""SyncGroup: the leader of a classic group sends the assignment, and every member gets its part of it.

Versions 0 to 5.
Behaviour: the coordinator responds when the leader's assignment is replicated, or when a new rebalance begins before that.
Version notes: 3: static members. 5: request and response name the protocol that JoinGroup chose.
Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS, INCONSISTENT_GROUP_PROTOCOL (5),
  NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE. While the group is loaded: REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.group_caller import caller_of
from barnabas.broker.requests.reply import Reply
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[SyncGroupRequest]) -> Reply[SyncGroupResponse]:
    reply: Reply[SyncGroupResponse] = Reply(request)
    broker.groups.sync_group(caller_of(request), request.message, reply.complete)
    return reply
