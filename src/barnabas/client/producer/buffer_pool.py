# Compiled by mypyc: src/compiled.toml lists this module.
"""Accounts for `buffer.memory`: how much is reserved, and which callers wait for memory.

A batch reserves memory when it begins and releases it when it completes. Callers that find none wait in a queue and are served in order; no
caller takes memory while others wait. Python's allocator manages the actual memory; this class counts what Kafka counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from mypy_extensions import i64


class MemoryWaiter:
    """A place in the queue. `wake` is called, under the lock of the accumulator, when `granted` or `closed` is set."""

    def __init__(self, size: i64, wake: Callable[[], None]) -> None:
        self.size = size
        self.wake = wake
        self.granted = False
        self.closed = False


class BufferPool:
    """All calls are made under the lock of the accumulator."""

    def __init__(self, total: i64) -> None:
        self.total = total
        self.available: i64 = total
        self.closed = False
        self._line: deque[MemoryWaiter] = deque()

    @property
    def waiting(self) -> int:
        return len(self._line)

    def try_allocate(self, size: i64) -> bool:
        if size > self.available or self._line or self.closed:
            return False
        self.available -= size
        return True

    def wait(self, size: i64, wake: Callable[[], None]) -> MemoryWaiter:
        waiter = MemoryWaiter(size, wake)
        if self.closed:
            waiter.closed = True
            wake()
        else:
            self._line.append(waiter)
            self._serve()
        return waiter

    def give_up(self, waiter: MemoryWaiter) -> None:
        """Leaves the queue; releases memory that was granted in the meantime."""
        if waiter.granted:
            self.deallocate(waiter.size)
        elif waiter in self._line:
            self._line.remove(waiter)
            self._serve()

    def deallocate(self, size: i64) -> None:
        self.available += size
        if self._line:
            self._serve()

    def close(self) -> None:
        self.closed = True
        while self._line:
            waiter = self._line.popleft()
            waiter.closed = True
            waiter.wake()

    def _serve(self) -> None:
        while self._line and self._line[0].size <= self.available:
            waiter = self._line.popleft()
            self.available -= waiter.size
            waiter.granted = True
            waiter.wake()
