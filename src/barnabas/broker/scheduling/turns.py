"""Turns of the event loop for work that is too long for one: requests of many elements, batches that unfold into megabytes.

Such work is done in slices and awaits `next` before each. In one iteration of the loop one slice is done, whoever it belongs to; everything
else that is ready is served in the same iteration. So a thousand long requests delay the others by one slice, and each other by turns.

Requests of brokers wait in a queue of their own, and every second turn is theirs: a follower whose fetches waited for the slices of all
clients would fall out of the ISR. Not more than every second one, because nothing proves yet that a request is a broker's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

ELEMENTS_PER_SLICE: Final = 100  # of a request: partitions, topics, groups. At 10 µs each, which few take, a slice is a millisecond
ELEMENTS_AT_ONCE: Final = 500  # a request with no more is handled in a plain call
BYTES_AT_ONCE: Final = 1 << 20  # the same: parsing copies texts and metadata, and a copy of 20 MB takes 10 ms

_Queue = deque[tuple["asyncio.Future[None]", object]]  # a future that is done when the turn has come, and whose turn it is


class Turns:
    """`taken` counts the turns. `last_taker` is who had the last, for the log."""

    def __init__(self) -> None:
        self.taken = 0
        self.last_taker: object = None
        self._brokers: _Queue = deque()
        self._clients: _Queue = deque()
        self._is_brokers_turn = False
        self._is_scheduled = False

    @property
    def waiting(self) -> int:
        return len(self._brokers) + len(self._clients)

    async def next(self, taker: object = None, *, is_broker: bool = False) -> None:
        """Returns when it is the caller's turn, in an iteration of the loop in which nobody else has one."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        (self._brokers if is_broker else self._clients).append((future, taker))
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._give)
        await future

    async def run(self, work: Generator[None, None, T], taker: object = None, *, is_broker: bool = False) -> T:
        """What the generator returns; it yields at the end of each slice."""
        while True:
            await self.next(taker, is_broker=is_broker)
            try:
                next(work)
            except StopIteration as end:
                result: T = end.value
                return result

    def _give(self) -> None:
        """The one who gets the turn runs in the next iteration, and so does this call for the one after."""
        while self.waiting:
            is_broker = bool(self._brokers) and (self._is_brokers_turn or not self._clients)
            future, taker = (self._brokers if is_broker else self._clients).popleft()
            if not future.done():  # cancelled, with its task
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
    """What the generator returns, all slices in one go: for work that is known to be short."""
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
