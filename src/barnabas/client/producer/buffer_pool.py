# Compiled by mypyc: src/compiled.toml lists this module.
"""How much of `buffer.memory` is spoken for, and who waits for some of it to come free.

Batches reserve room when they begin and give it back when they have ended. Those who find none wait in a line: whoever came first is served
first, and nobody takes room past those who wait. Python's own allocator does the rest; what is counted here is what Kafka counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from mypy_extensions import i64


class MemoryWaiter:
    """A place in the line. `wake` is called, under the lock of the accumulator, when there is something to see: `granted`, or `closed`."""

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
        """Leaves the line; what was granted in the meantime goes back."""
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
