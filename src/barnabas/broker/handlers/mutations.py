"""The quota on changes of topics, for one CreateTopics, DeleteTopics or CreatePartitions request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.broker.requests.request import set_throttle_time
from barnabas.protocol.message import Message

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request

M = TypeVar("M", bound=Message)


class Mutations:
    """From version `strict_since` on, a client above its quota gets THROTTLING_QUOTA_EXCEEDED. Older clients do not know that error: their
    topics are changed, and they wait afterwards."""

    def __init__(self, broker: Broker, request: Request[Any], strict_since: int) -> None:
        self._clock = broker.clock
        self._request = request
        quotas = broker.quotas.controller_mutation
        self._quota = None
        if quotas.is_in_use:
            is_strict = request.version >= strict_since
            self._quota = quotas.of(request.session.principal, request.client_id, is_strict, self._clock.monotonic_ms())

    def record(self, partitions: int) -> None:
        """Called before so many partitions are created or deleted. Raises ThrottlingQuotaExceeded where the quota forbids it."""
        if self._quota is not None:
            self._quota.record(partitions, self._clock.monotonic_ms())

    def throttled(self, response: M) -> M:
        """The response, with the time that the client has to wait. Its connection is not read for that long."""
        if self._quota is not None:
            monotonic_ms = self._clock.monotonic_ms()
            throttle_ms = self._quota.throttle_ms(monotonic_ms)
            if throttle_ms > 0:
                self._request.throttle(throttle_ms, monotonic_ms)
                set_throttle_time(response, throttle_ms)
        return response
