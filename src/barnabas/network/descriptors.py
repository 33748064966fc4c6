"""Whether there are descriptors for another connection: the listeners ask before they let one in.

The system gives the lowest number that is free. So the number of a socket that was just accepted says how many descriptors the process has
at the least, whoever opened them: files, connections of another broker in the same process, libraries. Nothing has to be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.network.config import INT_MAX

LOG_INTERVAL_MS: Final = 60_000  # between two lines about the same shortage


class DescriptorGuard:
    """`limit` is what the process may open, `reserve` what connections must leave. `held_back` tells how many of the files' share are not
    open at the moment, `make_room` closes some files beyond that share and gives how many."""

    def __init__(
        self,
        limit: int = INT_MAX,
        reserve: int = 0,
        held_back: Callable[[], int] = lambda: 0,
        make_room: Callable[[], int] = lambda: 0,
    ) -> None:
        self.limit = limit
        self.reserve = reserve
        self._held_back = held_back
        self._make_room = make_room
        self._logged_at_ms: int | None = None

    @property
    def is_unlimited(self) -> bool:
        return self.limit >= INT_MAX

    def admits(self, descriptor: int, *, is_broker: bool = False) -> bool:
        """Whether the connection with this descriptor may stay. Another broker's may use half of the reserve, too: a broker flooded by
        clients must not lose its place in the cluster."""
        if self.is_unlimited:
            return True
        most = self.limit - (self.reserve // 2 if is_broker else self.reserve + self._held_back())
        return descriptor < most or self._make_room() > 0

    def should_log(self, monotonic_ms: int) -> bool:
        if self._logged_at_ms is not None and monotonic_ms - self._logged_at_ms < LOG_INTERVAL_MS:
            return False
        self._logged_at_ms = monotonic_ms
        return True
