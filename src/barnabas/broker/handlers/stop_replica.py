"""StopReplica: the controller takes replicas away from this broker, with their logs or without.

Versions 0 to 4. Only on the listener that brokers use among themselves.
Version notes
- 1: the epoch of this broker. 3: the leader epoch of each partition, and deletion by partition.
Errors: STALE_BROKER_EPOCH, STALE_CONTROLLER_EPOCH; of a partition: KAFKA_STORAGE_ERROR, FENCED_LEADER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.stop_replica_response import StopReplicaResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest


def handle(broker: Broker, request: Request[StopReplicaRequest]) -> StopReplicaResponse | Awaitable[StopReplicaResponse]:
    assert broker.cluster is not None
    broker.cluster.require_broker(request)
    if broker.cluster.is_meant_for_an_earlier_life(request.message.broker_epoch):
        return StopReplicaResponse(ErrorCode.STALE_BROKER_EPOCH)
    return broker.cluster.orders.stop_replicas(request.message)
