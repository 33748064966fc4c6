"""Turns of the event loop for long work: requests of many elements, batches that decompress to megabytes.

Such work is done in slices and awaits `next` before each slice. One slice of all long work is done in one iteration of the loop; everything
else that is ready is served in the same iteration. So a thousand long requests delay short ones by one slice, and take turns themselves.

Requests of brokers wait in a queue of their own, which gets every second turn: a follower whose fetches waited for the slices of all
clients would fall out of the ISR. It does not get more, because a client could claim to be a broker: nothing verifies that yet.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Generator, Iterable, Iterator
from typing import Any, Final, TypeVar

from barnabas.broker.scheduling.steps import StepTimer, timed

T = TypeVar("T")

ELEMENTS_PER_SLICE: Final = 100  # of a request: partitions, topics, groups. Few take 10 µs each, so a slice takes at most a millisecond
ELEMENTS_AT_ONCE: Final = 500  # a request with no more elements is handled in one call
BYTES_AT_ONCE: Final = 1 << 20  # as is one with no more bytes: parsing copies strings and metadata, and a copy of 20 MB takes 10 ms

_Queue = deque[tuple["asyncio.Future[None]", object]]  # a future that is done at its turn, and the object that takes the turn


class Turns:
    """`taken` counts the turns. `last_taker` had the last one, for the log. `usage` counts the time of the request that is being handled
    now, if its client has a quota on time."""

    def __init__(self) -> None:
        self.taken = 0
        self.last_taker: object = None
        self.usage: StepTimer | None = None
        self._brokers: _Queue = deque()
        self._clients: _Queue = deque()
        self._is_brokers_turn = False
        self._is_scheduled = False

    @property
    def waiting(self) -> int:
        return len(self._brokers) + len(self._clients)

    async def next(self, taker: object = None, *, is_broker: bool = False) -> None:
        """Returns at the caller's turn, in an iteration of the loop in which no other caller has one."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        (self._brokers if is_broker else self._clients).append((future, taker))
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._give)
        await future

    async def run(self, work: Generator[None, None, T], taker: object = None, *, is_broker: bool = False) -> T:
        """Runs a generator that yields after each slice, and returns its result."""
        while True:
            await self.next(taker, is_broker=is_broker)
            try:
                next(work)
            except StopIteration as end:
                result: T = end.value
                return result

    def counted(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """The same work, whose steps count for the request that is being handled now. Not for work that an event of another request may
        begin, such as the end of a wait in the purgatory: that has to be `timed` for its own request."""
        return timed(self.usage, work)

    def _give(self) -> None:
        """Gives the next turn. Its taker runs in the next iteration of the loop, and so does this function for the turn after."""
        while self.waiting:
            is_broker = bool(self._brokers) and (self._is_brokers_turn or not self._clients)
            future, taker = (self._brokers if is_broker else self._clients).popleft()
            if not future.done():  # a done one was cancelled with its task
                future.set_result(None)
                self.taken += 1
                self.last_taker = taker
                self._is_brokers_turn = not is_broker
                break
        if self.waiting:
            asyncio.get_running_loop().call_soon(self._give)
        else:
            self._is_scheduled = False


def at_once(work: Generator[None, None, T]) -> T:
    """Runs all slices of a generator in one call, for work that is known to be short, and returns its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def slices(elements: Iterable[T], size: int = ELEMENTS_PER_SLICE) -> Iterator[list[T]]:
    """The elements in lists of up to `size`."""
    part: list[T] = []
    for element in elements:
        part.append(element)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part
