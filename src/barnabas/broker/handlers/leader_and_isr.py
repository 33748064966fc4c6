"""LeaderAndIsr: the controller says which partitions this broker leads and which it follows.

Versions 0 to 7. Only on the listener that brokers use among themselves.
Behaviour
- answered when every log is there and every partition leads or follows; epochs decide what is news and what is old.
Version notes
- 2: the epoch of this broker, so that what was meant for an earlier life of it is not taken for this one. 5: topic ids.
Errors: STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH; of a partition: KAFKA_STORAGE_ERROR, INCONSISTENT_TOPIC_ID,
  UNKNOWN_TOPIC_OR_PARTITION (it is not assigned to this broker), STALE_CONTROLLER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leader_and_isr_response import LeaderAndIsrResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrRequest


def handle(broker: Broker, request: Request[LeaderAndIsrRequest]) -> LeaderAndIsrResponse | Awaitable[LeaderAndIsrResponse]:
    assert broker.cluster is not None
    broker.cluster.require_broker(request)
    if broker.cluster.is_meant_for_an_earlier_life(request.message.broker_epoch):
        return LeaderAndIsrResponse(ErrorCode.STALE_BROKER_EPOCH)
    return broker.cluster.orders.lead_or_follow(request.message, request.version)
