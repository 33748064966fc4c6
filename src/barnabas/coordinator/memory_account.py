"""Counts how many bytes some state of a coordinator holds, against a limit. The code that adds or removes state updates the count.

Nothing is measured. All shards of a broker share one account.
"""

from __future__ import annotations

from barnabas.config_def import LONG_MAX


class MemoryAccount:
    """`used` is the sum of the bytes held; the owners of the state add and subtract."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int = LONG_MAX) -> None:
        self.limit = limit
        self.used = 0

    def has_room(self, more: int) -> bool:
        """Whether state may grow by `more` bytes. A change that does not grow is always allowed."""
        return more <= 0 or self.used + more <= self.limit
