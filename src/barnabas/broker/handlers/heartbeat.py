# Compiled by mypyc: src/compiled.toml lists this module.
"""Heartbeat: a member of a classic group is alive, and hears whether it has to join anew.

Versions 0 to 4.
Behaviour: the session begins anew. While the group is being loaded all is well: nobody's session runs then.
Version notes: 3: static members.
Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS, NOT_COORDINATOR,
  COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Answer
from barnabas.protocol.messages.heartbeat_request import HeartbeatRequest
from barnabas.protocol.messages.heartbeat_response import HeartbeatResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[HeartbeatRequest]) -> HeartbeatResponse | None:
    answer: Answer[HeartbeatResponse] = Answer(request)
    broker.groups.heartbeat(request.message, answer.give)
    return answer.now()
