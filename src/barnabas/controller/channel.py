"""The controller's channel to the brokers, and the versions of the control requests.

A channel sends the requests to a broker in order, one at a time. It retries a failed request until it has a response or the broker is
removed. Callbacks only put events, so responses may arrive at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from barnabas.metadata.znodes.cluster import BrokerRegistration
from barnabas.protocol.message import Message
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrRequest
from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest

ControlRequest = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest

# Those of inter.broker.protocol.version 3.4 and later. The requests are sent without asking for ApiVersions first.
REQUEST_VERSIONS: Final[dict[type[ControlRequest], int]] = {LeaderAndIsrRequest: 7, StopReplicaRequest: 4, UpdateMetadataRequest: 8}


class ControllerChannel(Protocol):
    def add_broker(self, broker_id: int, registration: BrokerRegistration) -> None: ...

    def remove_broker(self, broker_id: int) -> None:
        """Drops the requests to the broker that have no response yet."""
        ...

    def send(self, broker_id: int, request: ControlRequest, on_response: Callable[[Message], None] | None = None) -> None:
        """Drops the request if the broker was not added: the controller may not have processed its failure yet."""
        ...

    def shutdown(self) -> None:
        """Removes all brokers. A controller that is elected again adds them."""
        ...
