"""Things to be told to other brokers, gathered: a request to a broker carries all that has come for it since the last was sent.

Up to a bound of requests to a broker are under way together, so that what comes now does not wait for the answer to what came before.
Beyond the bound things wait, and go together in the next request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


class PerBrokerBatches(Generic[T]):
    """`send` asks one broker for several things, and answers each; it may raise nothing. What it is given has the size `at_once_max` at
    most, or is one thing; `size_of` says how large a thing is. At most `in_flight_max` requests are under way to each broker."""

    def __init__(
        self,
        send: Callable[[int, list[T]], Awaitable[None]],
        at_once_max: int,
        in_flight_max: int = 1,
        size_of: Callable[[T], int] = lambda _: 1,
    ) -> None:
        self._send = send
        self._at_once_max = at_once_max
        self._size_of = size_of
        self._in_flight_max = in_flight_max
        self._waiting: dict[int, list[T]] = {}
        self._tasks: dict[int, set[asyncio.Task[None]]] = {}
        self._about_to_send: set[int] = set()  # brokers of which a task takes all that waits in the next turn of the loop

    def put(self, broker_id: int, what: T) -> None:
        self._waiting.setdefault(broker_id, []).append(what)
        tasks = self._tasks.setdefault(broker_id, set())
        if broker_id not in self._about_to_send and len(tasks) < self._in_flight_max:
            self._about_to_send.add(broker_id)
            tasks.add(asyncio.ensure_future(self._work(broker_id, tasks)))

    async def close(self) -> None:
        """Nobody who still waits is answered."""
        self._waiting.clear()
        tasks = [task for some in self._tasks.values() for task in some]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, broker_id: int, tasks: set[asyncio.Task[None]]) -> None:
        """Is one of `tasks` until the very step in which nothing waits any more: what comes after that finds its place free."""
        self._about_to_send.discard(broker_id)
        try:
            while waiting := self._waiting.get(broker_id):
                together = self._first(waiting)
                del waiting[: len(together)]
                try:
                    await self._send(broker_id, together)
                except Exception:
                    _log.exception("Telling broker %d failed in a way it should not", broker_id)
        finally:
            if (task := asyncio.current_task()) is not None:
                tasks.discard(task)

    def _first(self, waiting: list[T]) -> list[T]:
        """As many as go together."""
        size = 0
        for count, what in enumerate(waiting):
            size += self._size_of(what)
            if size > self._at_once_max:
                return waiting[: max(count, 1)]
        return waiting[:]
