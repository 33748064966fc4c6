"""Expires the delayed operations of all purgatories, with one timer of the event loop.

Each purgatory decides which operations are due; this class calls it at the right time. No timer is set while nothing waits.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeVar

from barnabas.broker.clock import Clock
from barnabas.broker.waiting.delayed_operation import DelayedOperation
from barnabas.broker.waiting.purgatory import PURGE_INTERVAL, DelayedOperationPurgatory

Operation = TypeVar("Operation", bound=DelayedOperation)

_NEVER: Final = 2**62


class Expirations:
    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self.purgatories: list[DelayedOperationPurgatory[Any]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._next_ms = _NEVER

    def new_purgatory(self, name: str, purge_interval: int = PURGE_INTERVAL) -> DelayedOperationPurgatory[Any]:
        """A purgatory whose operations this object expires."""
        purgatory: DelayedOperationPurgatory[Any] = DelayedOperationPurgatory(
            name, self._clock.monotonic_ms(), purge_interval, self._wake_at
        )
        self.purgatories.append(purgatory)
        return purgatory

    def complete_all(self) -> None:
        """Completes all operations of all purgatories."""
        for purgatory in self.purgatories:
            purgatory.complete_all()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake_at(self, at_ms: int) -> None:
        if at_ms >= self._next_ms:
            return
        self._next_ms = at_ms
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0, at_ms - self._clock.monotonic_ms()) / 1000, self._advance)

    def _advance(self) -> None:
        self._timer = None
        self._next_ms = _NEVER
        monotonic_ms = self._clock.monotonic_ms()
        for purgatory in self.purgatories:
            purgatory.advance(monotonic_ms)
            next_ms = purgatory.next_expiry_ms()
            if next_ms is not None:
                # At least one millisecond ahead: a loop that wakes slightly too early must not spin until the tick has passed.
                self._wake_at(max(next_ms, monotonic_ms + 1))
