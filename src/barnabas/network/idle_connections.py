# Compiled by mypyc: src/compiled.toml lists this module.
"""The connections by their last activity: which ones have been idle for longer than `connections.max.idle.ms`, and which for longest.

The server reports all activity and asks for the next expiry. This class closes nothing itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)


class IdleConnections(Generic[C]):
    """Connections in the order of their last activity. A negative `max_idle_ms` disables expiry."""

    def __init__(self, max_idle_ms: int) -> None:
        self.max_idle_ms = max_idle_ms
        self._last_active_ms: OrderedDict[C, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last_active_ms)

    def active(self, connection: C, monotonic_ms: int) -> None:
        self._last_active_ms[connection] = monotonic_ms
        self._last_active_ms.move_to_end(connection)

    def remove(self, connection: C) -> None:
        self._last_active_ms.pop(connection, None)

    def last_active_ms(self, connection: C) -> int:
        return self._last_active_ms[connection]

    def least_recently_active(self) -> Iterator[C]:
        return iter(self._last_active_ms)

    def expired(self, monotonic_ms: int) -> list[C]:
        """The connections that have been idle for the full time, the longest idle first."""
        if self.max_idle_ms < 0:
            return []
        idle = []
        for connection, last_active_ms in self._last_active_ms.items():
            if last_active_ms + self.max_idle_ms > monotonic_ms:
                break
            idle.append(connection)
        return idle

    def next_expiry_ms(self) -> int | None:
        """When the next connection will have been idle for too long; None if none will."""
        if self.max_idle_ms < 0 or not self._last_active_ms:
            return None
        return next(iter(self._last_active_ms.values())) + self.max_idle_ms
