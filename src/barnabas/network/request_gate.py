# Compiled by mypyc: src/compiled.toml lists this module.
"""The bound on unanswered requests: `queued.max.requests` and `queued.max.request.bytes` of one plane.

A connection calls `enter` before it dispatches a request. When the bound is reached the connection is muted, waits here, and is called back
in order. Data plane and control plane have a gate each, so that a flood on one never delays the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.network.config import UNLIMITED


class GateWaiter(Protocol):
    def gate_opened(self) -> None:
        """There may be room again: call `enter` once more."""


class RequestGate:
    """`defer` runs a callback after the current one, as `loop.call_soon` does: a request that leaves must not run another one."""

    def __init__(self, max_requests: int, max_bytes: int, defer: Callable[[Callable[[], None]], object]) -> None:
        self.max_requests = max_requests
        self.max_bytes = max_bytes
        self.requests = 0
        self.request_bytes = 0
        self.times_full = 0
        self._defer = defer
        self._waiting: dict[GateWaiter, None] = {}
        self._calling = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        # As with Kafka's memory pool, the request that exceeds the bound in bytes still enters: otherwise a large one might wait forever.
        return self.requests >= self.max_requests or (self.max_bytes != UNLIMITED and self.request_bytes >= self.max_bytes)

    def enter(self, waiter: GateWaiter, size: int) -> bool:
        """Takes a place for a request of `size` bytes, or adds the waiter to the list and returns False."""
        if self.requests >= self.max_requests or (self.max_bytes != UNLIMITED and self.is_full):
            self.times_full += 1
            self._waiting[waiter] = None
            return False
        self.requests += 1
        self.request_bytes += size
        return True

    def leave(self, size: int) -> None:
        self.requests -= 1
        self.request_bytes -= size
        if self._waiting and not self._calling:
            self._calling = True
            self._defer(self._call_waiting)

    def forget(self, waiter: GateWaiter) -> None:
        """The waiter's connection has closed and must not be called."""
        self._waiting.pop(waiter, None)

    def _call_waiting(self) -> None:
        """Calls as many waiters as there are places; one that finds the gate full again is appended to the list."""
        self._calling = False
        for waiter in list(self._waiting)[: self._places()]:
            if self.is_full:
                break
            # A waiter called before may have closed this one's connection.
            if waiter in self._waiting:
                del self._waiting[waiter]
                waiter.gate_opened()
        # A called waiter may have taken no place, because it was closed or muted for another reason: the next one gets the place.
        if self._waiting and not self.is_full and not self._calling:
            self._calling = True
            self._defer(self._call_waiting)

    def _places(self) -> int:
        return max(0, self.max_requests - self.requests)
