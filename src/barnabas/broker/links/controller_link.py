"""Sends the requests of this broker to the current controller: AlterPartition, CreateTopics and ControlledShutdown.

The controller is the sender of the last UpdateMetadata (`metadata_cache`). Callers retry: after NOT_CONTROLLER, or without a response,
another broker may be elected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.client.errors import Disconnected
from barnabas.protocol.message import Message

if TYPE_CHECKING:
    from barnabas.broker.links.broker_links import BrokerLinks
    from barnabas.endpoint import EndPoint


class ControllerLink:
    """`controller_id` returns the current controller, -1 or None if it is unknown."""

    def __init__(self, links: BrokerLinks, controller_id: Callable[[], int | None], endpoint_of: Callable[[int], EndPoint | None]) -> None:
        self._links = links
        self._controller_id = controller_id
        self._endpoint_of = endpoint_of
        self._controller_id_used = -1

    async def ask(self, request: Message, version: int, timeout_ms: int | None = None) -> Message:
        """The response. Raises KafkaError: Disconnected if no controller is known."""
        controller_id = self._controller_id()
        endpoint = None if controller_id is None else self._endpoint_of(controller_id)
        if controller_id is None or endpoint is None:
            raise Disconnected("No controller is known yet")
        self._controller_id_used = controller_id
        self._links.set_endpoint(controller_id, endpoint)
        return await self._links.ask(controller_id, request, version, timeout_ms)

    def controller_may_have_changed(self) -> None:
        """Called after a control request. If the controller has changed, requests in flight to the old one are dropped."""
        now = self._controller_id()
        if now is not None and self._controller_id_used not in (now, -1):
            self._links.forget(self._controller_id_used)
            self._controller_id_used = -1

    async def close(self) -> None:
        await self._links.close()
