"""Fetching from any replica, leader or not: an admin client that can also ask a broker for records. It never counts as a replica itself."""

from __future__ import annotations

from typing import Final

from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.protocol.messages.fetch_response import FetchResponse

_VERSION_MAX: Final = 14  # the last one in which a request says with a plain number who asks


class ReplicaReader(AsyncAdmin):
    async def fetch(self, broker_id: int, request: FetchRequest, *, timeout_ms: int) -> FetchResponse:
        """What a broker answers to a fetch; its errors of partitions are in the answer."""
        call = self._calls.begin("fetch", timeout_ms)
        await self._calls.brokers(call)
        response: FetchResponse = await self._calls.send(call, broker_id, request, at_most=_VERSION_MAX)
        return response
