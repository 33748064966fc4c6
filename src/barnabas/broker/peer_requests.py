"""Things to be told to other brokers, gathered: one request to a broker at a time, with all that has come for it meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


class PeerRequests(Generic[T]):
    """`send` asks one broker for several things, and answers each; it may raise nothing."""

    def __init__(self, send: Callable[[int, list[T]], Awaitable[None]], at_once_max: int) -> None:
        self._send = send
        self._at_once_max = at_once_max
        self._waiting: dict[int, list[T]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def put(self, broker_id: int, what: T) -> None:
        self._waiting.setdefault(broker_id, []).append(what)
        if broker_id not in self._tasks:
            self._tasks[broker_id] = asyncio.ensure_future(self._work(broker_id))

    async def close(self) -> None:
        """Nobody who still waits is answered."""
        self._waiting.clear()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, broker_id: int) -> None:
        try:
            while waiting := self._waiting.get(broker_id):
                together = waiting[: self._at_once_max]
                del waiting[: self._at_once_max]
                try:
                    await self._send(broker_id, together)
                except Exception:
                    _log.exception("Telling broker %d failed in a way it should not", broker_id)
        finally:
            del self._tasks[broker_id]
