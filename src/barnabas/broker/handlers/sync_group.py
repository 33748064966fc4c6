# Compiled by mypyc: src/compiled.toml lists this module.
"""SyncGroup: the leader of a classic group hands in who gets what, and every member is given its own part.

Versions 0 to 5.
Behaviour: answered when the leader's assignment has come and is replicated, or when a new rebalance begins before that.
Version notes: 3: static members. 5: the member says which protocol it was told, and is answered with it.
Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS, INCONSISTENT_GROUP_PROTOCOL (5),
  NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE. While the group is loaded: REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.group_caller import caller_of
from barnabas.broker.requests.reply import Answer
from barnabas.protocol.messages.sync_group_request import SyncGroupRequest
from barnabas.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[SyncGroupRequest]) -> SyncGroupResponse | None:
    answer: Answer[SyncGroupResponse] = Answer(request)
    broker.groups.sync_group(caller_of(request), request.message, answer.give)
    return answer.now()
