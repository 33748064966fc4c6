"""Things to do when the clock has come far enough: removing files that readers may still hold."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class Later:
    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, action: Callable[[], None], at_ms: int) -> None:
        heapq.heappush(self._heap, (at_ms, next(self._order), action))

    def take_due(self, now_ms: int) -> list[Callable[[], None]]:
        due: list[Callable[[], None]] = []
        while self._heap and self._heap[0][0] <= now_ms:
            due.append(heapq.heappop(self._heap)[2])
        return due
