"""The controller's way to the brokers: what it is given to send with, and the versions in which it speaks.

A channel keeps the order of the requests to one broker and has one of them on its way at a time; a request that fails is tried again until
it is answered or the broker is removed. Answers are only noted by the callbacks, so they may come at any time.
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

# Of Kafka 3.4 and later, in ZooKeeper mode: no versions are asked for, they follow from inter.broker.protocol.version.
REQUEST_VERSIONS: Final[dict[type[ControlRequest], int]] = {LeaderAndIsrRequest: 7, StopReplicaRequest: 4, UpdateMetadataRequest: 8}


class ControllerChannel(Protocol):
    def add_broker(self, broker_id: int, registration: BrokerRegistration) -> None: ...

    def remove_broker(self, broker_id: int) -> None:
        """What was not sent or not answered yet is dropped."""
        ...

    def send(self, broker_id: int, request: ControlRequest, on_response: Callable[[Message], None] | None = None) -> None:
        """Dropped if the broker is not there: that it is gone may not have been dealt with yet."""
        ...

    def shutdown(self) -> None:
        """Removes all brokers. A controller that is elected again adds them again."""
        ...
