"""An admin client that can also fetch records from any replica, leader or follower. Brokers do not count it as a replica."""

from __future__ import annotations

from typing import Final

from barnabas.client.admin.async_admin import AsyncAdmin
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.protocol.messages.fetch_response import FetchResponse

_VERSION_MAX: Final = 14  # the last version with the plain replica_id field


class ReplicaReader(AsyncAdmin):
    async def fetch(self, broker_id: int, request: FetchRequest, *, timeout_ms: int) -> FetchResponse:
        """Returns the Fetch response of a broker; errors of single partitions are in the response."""
        call = self._calls.begin("fetch", timeout_ms)
        await self._calls.brokers(call)
        response: FetchResponse = await self._calls.send(call, broker_id, request, at_most=_VERSION_MAX)
        return response
