# Compiled by mypyc: src/compiled.toml lists this module.
"""Which connections have been quiet for too long (`connections.max.idle.ms`), and which has been so for longest.

The server tells it of every sign of life and asks when to look again; it decides, and closes nothing itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)


class IdleConnections(Generic[C]):
    """Connections in the order of their last sign of life. A negative `max_idle_ms` lets all live."""

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
        """Those that have been quiet for the full time, the quietest first."""
        if self.max_idle_ms < 0:
            return []
        found = []
        for connection, last_active_ms in self._last_active_ms.items():
            if last_active_ms + self.max_idle_ms > monotonic_ms:
                break
            found.append(connection)
        return found

    def next_expiry_ms(self) -> int | None:
        """When the next connection will have been quiet for too long; None when that cannot happen."""
        if self.max_idle_ms < 0 or not self._last_active_ms:
            return None
        return next(iter(self._last_active_ms.values())) + self.max_idle_ms
