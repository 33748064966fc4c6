"""The controller's way to the brokers of its own process: no socket, no bytes, the same messages and the same order.

Requests to one broker are carried out one after another, in turns of the loop of their own: the controller never hears an answer inside
the call that sent the question, just as over a network.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from barnabas.errors import KafkaError
from barnabas.metadata.znodes.cluster import BrokerRegistration
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.registry import BY_NAME

_log = logging.getLogger(__name__)

CarryOut = Callable[[Message], Awaitable[Message]]
OnResponse = Callable[[Message], None]


class LocalChannel:
    """`brokers` are those of this process by their ids, each as what carries out an order; the controller may only know of these."""

    def __init__(self, brokers: Mapping[int, CarryOut]) -> None:
        self._brokers = brokers
        self._queues: dict[int, deque[tuple[Message, OnResponse | None]]] = {}  # of those that are connected
        self._workers: dict[int, asyncio.Task[None]] = {}  # of those that have something to do

    def add_broker(self, broker_id: int, registration: BrokerRegistration) -> None:
        self._queues.setdefault(broker_id, deque())

    def remove_broker(self, broker_id: int) -> None:
        """What it is doing it does to the end, but nobody hears of it."""
        self._queues.pop(broker_id, None)

    def send(self, broker_id: int, request: Message, on_response: OnResponse | None = None) -> None:
        queue = self._queues.get(broker_id)
        if queue is None or broker_id not in self._brokers:
            _log.warning("Not sending %s to broker %d: it is offline", type(request).__name__, broker_id)
            return
        queue.append((request, on_response))
        if broker_id not in self._workers:
            self._workers[broker_id] = asyncio.ensure_future(self._work(broker_id))

    def shutdown(self) -> None:
        self._queues.clear()

    async def drained(self) -> None:
        """Returns when everything sent so far, and all that followed from it, has been answered."""
        while self._workers:
            await asyncio.wait(list(self._workers.values()))

    async def _work(self, broker_id: int) -> None:
        try:
            while queue := self._queues.get(broker_id):
                request, on_response = queue.popleft()
                response = await self._carry_out(broker_id, request)
                if on_response is not None and self._queues.get(broker_id) is queue:
                    on_response(response)
        finally:
            del self._workers[broker_id]

    async def _carry_out(self, broker_id: int, request: Message) -> Message:
        """An order that fails is answered with an error, as over a network: those behind it are carried out all the same."""
        try:
            return await self._brokers[broker_id](request)
        except Exception as error:
            _log.exception("Broker %d failed to carry out %s", broker_id, type(request).__name__)
            response: Any = BY_NAME[type(request).__name__.removesuffix("Request")].response()
            response.error_code = int(error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR)
            return cast("Message", response)
