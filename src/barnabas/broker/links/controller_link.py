"""This broker's way to the controller, whoever that is now: what leaders propose, topics that clients ask for, and the wish to stop.

The controller is the one that said something last (`metadata_cache`). Whoever asks tries again: an answer of NOT_CONTROLLER, or none, means
that another may be elected by then.
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
    """`controller_id` is what this broker knows of it, -1 or None if nothing."""

    def __init__(self, links: BrokerLinks, controller_id: Callable[[], int | None], endpoint_of: Callable[[int], EndPoint | None]) -> None:
        self._links = links
        self._controller_id = controller_id
        self._endpoint_of = endpoint_of
        self._asked = -1

    async def ask(self, request: Message, version: int, timeout_ms: int | None = None) -> Message:
        """Raises KafkaError: Disconnected where there is no controller that could be asked."""
        controller_id = self._controller_id()
        endpoint = None if controller_id is None else self._endpoint_of(controller_id)
        if controller_id is None or endpoint is None:
            raise Disconnected("No controller is known yet")
        self._asked = controller_id
        self._links.know(controller_id, endpoint)
        return await self._links.ask(controller_id, request, version, timeout_ms)

    def controller_told(self) -> None:
        """There may be another one: what the one before was asked, and does not answer, is not waited for."""
        now = self._controller_id()
        if now is not None and self._asked not in (now, -1):
            self._links.forget(self._asked)
            self._asked = -1

    async def close(self) -> None:
        await self._links.close()
