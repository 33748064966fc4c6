"""The controller's way to the brokers of its own process: no socket, no bytes, the same messages and the same order.

Requests to one broker are answered one after another, in turns of the loop of their own: the controller never hears an answer inside
the call that sent the question, just as over a network.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from barnabas.metadata.znodes.cluster import BrokerRegistration
from barnabas.protocol.message import Message
from barnabas.protocol.messages.leader_and_isr_request import LeaderAndIsrRequest
from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest

_log = logging.getLogger(__name__)


class ControlledBroker(Protocol):
    """What a controller may tell a broker."""

    def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> Message: ...

    def stop_replicas(self, request: StopReplicaRequest) -> Message: ...

    def update_metadata(self, request: UpdateMetadataRequest) -> Message: ...


class LocalChannel:
    """`brokers` are those of this process by their ids; the controller may only know of these."""

    def __init__(self, loop: asyncio.AbstractEventLoop, brokers: dict[int, ControlledBroker]) -> None:
        self._loop = loop
        self._brokers = brokers
        self._connected: set[int] = set()
        self._on_the_way = 0  # questions and answers
        self._drained = asyncio.Event()
        self._drained.set()

    def add_broker(self, broker_id: int, registration: BrokerRegistration) -> None:
        self._connected.add(broker_id)

    def remove_broker(self, broker_id: int) -> None:
        self._connected.discard(broker_id)

    def send(self, broker_id: int, request: Message, on_response: Callable[[Message], None] | None = None) -> None:
        if broker_id not in self._connected or broker_id not in self._brokers:
            _log.warning("Not sending %s to broker %d: it is offline", type(request).__name__, broker_id)
            return
        self._later(self._deliver, broker_id, request, on_response)

    def shutdown(self) -> None:
        self._connected.clear()

    async def drained(self) -> None:
        """Returns when everything sent so far, and all that followed from it, has arrived."""
        await self._drained.wait()

    def _deliver(self, broker_id: int, request: Message, on_response: Callable[[Message], None] | None) -> None:
        if broker_id not in self._connected:
            return
        response = _handle(self._brokers[broker_id], request)
        if on_response is not None:
            self._later(on_response, response)

    def _later(self, call: Callable[..., None], *arguments: object) -> None:
        self._on_the_way += 1
        self._drained.clear()
        self._loop.call_soon(self._arrive, call, *arguments)

    def _arrive(self, call: Callable[..., None], *arguments: object) -> None:
        try:
            call(*arguments)
        finally:
            self._on_the_way -= 1
            if self._on_the_way == 0:
                self._drained.set()


def _handle(broker: ControlledBroker, request: Message) -> Message:
    if isinstance(request, LeaderAndIsrRequest):
        return broker.become_leader_or_follower(request)
    if isinstance(request, StopReplicaRequest):
        return broker.stop_replicas(request)
    assert isinstance(request, UpdateMetadataRequest), f"A controller does not send {type(request).__name__}"
    return broker.update_metadata(request)
