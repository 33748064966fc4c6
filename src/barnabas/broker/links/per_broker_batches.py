"""Batches items for other brokers: a request to a broker carries all items that were put since the last one was sent.

Up to `in_flight_max` requests to a broker are in flight, so that a new item does not wait for the response to an earlier one. Beyond that
items wait, and go together in the next request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


class PerBrokerBatches(Generic[T]):
    """`send` sends several items to one broker and completes each; it must not raise. Its items have the size `at_once_max` at most, unless
    there is only one; `size_of` returns the size of an item."""

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
        self._about_to_send: set[int] = set()  # brokers for which a task will take all waiting items in the next iteration of the loop

    def put(self, broker_id: int, item: T) -> None:
        self._waiting.setdefault(broker_id, []).append(item)
        tasks = self._tasks.setdefault(broker_id, set())
        if broker_id not in self._about_to_send and len(tasks) < self._in_flight_max:
            self._about_to_send.add(broker_id)
            tasks.add(asyncio.ensure_future(self._work(broker_id, tasks)))

    async def close(self) -> None:
        """Items that still wait are not completed."""
        self._waiting.clear()
        tasks = [task for broker_tasks in self._tasks.values() for task in broker_tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, broker_id: int, tasks: set[asyncio.Task[None]]) -> None:
        """Sends until no item waits. It leaves `tasks` in the same step, so that an item that is put after it starts a new task."""
        self._about_to_send.discard(broker_id)
        try:
            while waiting := self._waiting.get(broker_id):
                items = self._first(waiting)
                del waiting[: len(items)]
                try:
                    await self._send(broker_id, items)
                except Exception:
                    _log.exception("Telling broker %d failed in a way it should not", broker_id)
        finally:
            if (task := asyncio.current_task()) is not None:
                tasks.discard(task)

    def _first(self, waiting: list[T]) -> list[T]:
        """The items of the next request."""
        size = 0
        for count, item in enumerate(waiting):
            size += self._size_of(item)
            if size > self._at_once_max:
                return waiting[: max(count, 1)]
        return waiting[:]
