"""Calls that are made after a delay: the removal of files that readers may still hold."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class Later:
    """A delay begins with the next call of `take_due`, because the callers of `add` have no clock."""

    def __init__(self) -> None:
        self._new: list[tuple[int, Callable[[], None]]] = []
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._new) + len(self._heap)

    def add(self, action: Callable[[], None], delay_ms: int) -> None:
        self._new.append((delay_ms, action))

    def take_due(self, monotonic_ms: int) -> list[Callable[[], None]]:
        for delay_ms, action in self._new:
            heapq.heappush(self._heap, (monotonic_ms + delay_ms, next(self._order), action))
        self._new.clear()
        due: list[Callable[[], None]] = []
        while self._heap and self._heap[0][0] <= monotonic_ms:
            due.append(heapq.heappop(self._heap)[2])
        return due
