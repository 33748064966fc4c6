"""The controller's channel to brokers of its own process: the same messages in the same order, without a socket or encoding.

The requests to one broker are carried out one after the other, each in a loop iteration of its own. As over a network, the controller never
gets a response inside the call that sent the request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from barnabas.broker.cluster.channel_log import log_not_sent, log_response
from barnabas.broker.cluster.channel_queues import ChannelQueue, OnResponse
from barnabas.controller.channel import ControlRequest
from barnabas.errors import KafkaError
from barnabas.metadata.znodes.cluster import BrokerRegistration
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.registry import BY_NAME

_log = logging.getLogger(__name__)

HandleRequest = Callable[[Message], Awaitable[Message]]


class LocalChannel:
    """`brokers` has the request handler of each broker of this process, by broker id."""

    def __init__(self, brokers: Mapping[int, HandleRequest]) -> None:
        self._brokers = brokers
        self._queues: dict[int, ChannelQueue] = {}  # of the brokers that were added
        self._workers: dict[int, asyncio.Task[None]] = {}  # of the brokers with queued requests

    @property
    def queues(self) -> dict[int, ChannelQueue]:
        """By broker."""
        return dict(self._queues)

    def add_broker(self, broker_id: int, registration: BrokerRegistration) -> None:
        self._queues.setdefault(broker_id, ChannelQueue())

    def remove_broker(self, broker_id: int) -> None:
        """A request that is being carried out continues, but its response is dropped."""
        self._queues.pop(broker_id, None)

    def send(self, broker_id: int, request: ControlRequest, on_response: OnResponse | None = None) -> None:
        queue = self._queues.get(broker_id)
        if queue is None or broker_id not in self._brokers:
            log_not_sent(request, broker_id)
            return
        queue.put(request, on_response)
        if broker_id not in self._workers:
            self._workers[broker_id] = asyncio.ensure_future(self._work(broker_id))

    def shutdown(self) -> None:
        self._queues.clear()

    async def drained(self) -> None:
        """Returns when there is a response to every request, including the requests that followed from responses."""
        while self._workers:
            await asyncio.wait(list(self._workers.values()))

    async def _work(self, broker_id: int) -> None:
        try:
            while queue := self._queues.get(broker_id):
                request, on_response, _ = queue.take()
                response = await self._handle(broker_id, request)
                log_response(request, response, broker_id)
                if on_response is not None and self._queues.get(broker_id) is queue:
                    on_response(response)
        finally:
            del self._workers[broker_id]

    async def _handle(self, broker_id: int, request: Message) -> Message:
        """A request that fails gets an error response, as over a network, and the next request is carried out."""
        try:
            return await self._brokers[broker_id](request)
        except Exception as error:
            _log.exception("Broker %d failed to carry out %s", broker_id, type(request).__name__)
            response: Any = BY_NAME[type(request).__name__.removesuffix("Request")].response()
            response.error_code = int(error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR)
            return cast("Message", response)
