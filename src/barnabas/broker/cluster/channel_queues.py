"""The queues of control requests of a controller's channel, one for each broker, and how long the requests wait in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import NamedTuple

from barnabas.controller.channel import ControlRequest
from barnabas.metrics.histogram import Histogram
from barnabas.protocol.message import Message

OnResponse = Callable[[Message], None]


class QueuedRequest(NamedTuple):
    request: ControlRequest
    on_response: OnResponse | None
    queued_ns: int


class ChannelQueue:
    """`waited_us` has the times from queueing a request to sending it, in microseconds."""

    def __init__(self) -> None:
        self.waited_us = Histogram()
        self._requests: deque[QueuedRequest] = deque()

    def __len__(self) -> int:
        """The number of requests that wait."""
        return len(self._requests)

    def put(self, request: ControlRequest, on_response: OnResponse | None) -> None:
        self._requests.append(QueuedRequest(request, on_response, perf_counter_ns()))

    def take(self) -> QueuedRequest:
        """The next request, which is about to be sent."""
        taken = self._requests.popleft()
        self.waited_us.record((perf_counter_ns() - taken.queued_ns) // 1000)
        return taken
