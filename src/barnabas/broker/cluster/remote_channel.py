"""The controller's channel to the brokers of a cluster: to its own broker without a socket, to the others over links.

The requests to one broker are sent one after the other. Each is retried until it has a response or the broker is removed: a broker that
received a later state before an earlier one would take the earlier one for new.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from barnabas.broker.cluster.channel_log import log_not_sent, log_response
from barnabas.broker.cluster.channel_queues import ChannelQueue, OnResponse
from barnabas.broker.cluster.local_channel import LocalChannel
from barnabas.broker.links.broker_links import BrokerLinks
from barnabas.controller.channel import REQUEST_VERSIONS, ControlRequest
from barnabas.errors import KafkaError
from barnabas.metadata.znodes.cluster import BrokerRegistration
from barnabas.protocol.message import Message

RETRY_S: Final = 0.1

_log = logging.getLogger(__name__)


class RemoteChannel:
    """`listener_name` is the listener for control requests, `versions` are their versions."""

    def __init__(
        self,
        broker_id: int,
        local: LocalChannel,
        links: BrokerLinks,
        listener_name: str,
        versions: Mapping[type[ControlRequest], int] = REQUEST_VERSIONS,
    ) -> None:
        self._broker_id = broker_id
        self._local = local
        self._links = links
        self._listener_name = listener_name
        self._versions = versions
        self._queues: dict[int, ChannelQueue] = {}
        self._workers: dict[int, asyncio.Task[None]] = {}

    @property
    def queues(self) -> dict[int, ChannelQueue]:
        """By broker, this one included."""
        return {**self._local.queues, **self._queues}

    def add_broker(self, broker_id: int, registration: BrokerRegistration) -> None:
        if broker_id == self._broker_id:
            self._local.add_broker(broker_id, registration)
            return
        endpoint = next((endpoint for endpoint in registration.endpoints if endpoint.listener_name == self._listener_name), None)
        if endpoint is None:
            _log.error("Broker %d has no listener %s: the controller cannot reach it", broker_id, self._listener_name)
            return
        self._links.set_endpoint(broker_id, endpoint)
        self._queues.setdefault(broker_id, ChannelQueue())

    def remove_broker(self, broker_id: int) -> None:
        if broker_id == self._broker_id:
            self._local.remove_broker(broker_id)
            return
        self._queues.pop(broker_id, None)
        worker = self._workers.pop(broker_id, None)
        if worker is not None:
            worker.cancel()
        self._links.forget(broker_id)

    def send(self, broker_id: int, request: ControlRequest, on_response: OnResponse | None = None) -> None:
        if broker_id == self._broker_id:
            self._local.send(broker_id, request, on_response)
            return
        queue = self._queues.get(broker_id)
        if queue is None:
            log_not_sent(request, broker_id)
            return
        queue.put(request, on_response)
        if broker_id not in self._workers:
            self._workers[broker_id] = asyncio.ensure_future(self._work(broker_id, queue))

    def shutdown(self) -> None:
        self._local.shutdown()
        for broker_id in list(self._queues):
            self.remove_broker(broker_id)

    async def drained(self) -> None:
        """Returns when this broker itself has responded to every request."""
        await self._local.drained()

    async def _work(self, broker_id: int, queue: ChannelQueue) -> None:
        try:
            while queue:
                request, on_response, _ = queue.take()
                response = await self._send_until_response(broker_id, request)
                log_response(request, response, broker_id)
                if on_response is not None:
                    on_response(response)
        finally:
            if self._workers.get(broker_id) is asyncio.current_task():
                del self._workers[broker_id]

    async def _send_until_response(self, broker_id: int, request: ControlRequest) -> Message:
        while True:
            try:
                return await self._links.ask(broker_id, request, self._versions[type(request)])
            except KafkaError as error:
                self._links.warnings.failed(logging.WARNING, broker_id, type(request).__name__.removesuffix("Request"), error)
            await asyncio.sleep(RETRY_S)
