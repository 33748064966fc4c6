# Compiled by mypyc: src/compiled.toml lists this module.
"""The bound on requests that have been taken in and not been answered: `queued.max.requests` and `queued.max.request.bytes` of one plane.

A connection asks before it hands a request over; when the bound is reached it waits here, muted, and is called in its turn.
Data plane and control plane have a gate each, so that a flood of the one never keeps the other waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.network.config import UNLIMITED


class Waiting(Protocol):
    def gate_opened(self) -> None:
        """There is room again: ask once more."""


class RequestGate:
    """`defer` runs a call after the current one, as `loop.call_soon` does: whoever frees a place must not run somebody else's request."""

    def __init__(self, max_requests: int, max_bytes: int, defer: Callable[[Callable[[], None]], object]) -> None:
        self.max_requests = max_requests
        self.max_bytes = max_bytes
        self.requests = 0
        self.request_bytes = 0
        self.times_full = 0
        self._defer = defer
        self._waiting: dict[Waiting, None] = {}
        self._calling = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        # As with Kafka's memory pool, the request that passes the bound in bytes is still let in: otherwise a large one might wait forever.
        return self.requests >= self.max_requests or (self.max_bytes != UNLIMITED and self.request_bytes >= self.max_bytes)

    def enter(self, visitor: Waiting, size: int) -> bool:
        """Takes a place for a request of `size` bytes, or puts the visitor on the list of those who wait."""
        if self.requests >= self.max_requests or (self.max_bytes != UNLIMITED and self.is_full):
            self.times_full += 1
            self._waiting[visitor] = None
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

    def forget(self, visitor: Waiting) -> None:
        """The visitor has gone and must not be called."""
        self._waiting.pop(visitor, None)

    def _call_waiting(self) -> None:
        """Calls as many as there are places; one that finds the gate full again is back at the end of the list."""
        self._calling = False
        for visitor in list(self._waiting)[: self._places()]:
            if self.is_full:
                break
            # Somebody called before may have taken this one's connection down.
            if visitor in self._waiting:
                del self._waiting[visitor]
                visitor.gate_opened()
        # Whoever was called may have taken no place, having closed or been muted for another reason: the next one gets it.
        if self._waiting and not self.is_full and not self._calling:
            self._calling = True
            self._defer(self._call_waiting)

    def _places(self) -> int:
        return max(0, self.max_requests - self.requests)
