"""Decides whether there are enough descriptors for another connection.

The kernel assigns the lowest free number. So the number of a socket that was just accepted is a lower bound of the descriptors that the
process has open, whether files, connections of another broker in the same process, or libraries opened them. Nothing has to be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.network.config import INT_MAX

LOG_INTERVAL_MS: Final = 60_000  # between two lines about the same shortage


class DescriptorGuard:
    """`limit` is the process's limit of descriptors, `reserve` the number that connections must leave free. `held_back` returns how many
    of the files' share are not open at the moment, `make_room` closes some files beyond that share and returns their number."""

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
        """Whether the connection with this descriptor may stay. The connection of another broker may use half of the reserve, too: a
        broker flooded by clients must not be cut off from the cluster."""
        if self.is_unlimited:
            return True
        allowed = self.limit - (self.reserve // 2 if is_broker else self.reserve + self._held_back())
        return descriptor < allowed or self._make_room() > 0

    def should_log(self, monotonic_ms: int) -> bool:
        if self._logged_at_ms is not None and monotonic_ms - self._logged_at_ms < LOG_INTERVAL_MS:
            return False
        self._logged_at_ms = monotonic_ms
        return True
