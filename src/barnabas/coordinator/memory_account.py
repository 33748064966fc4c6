"""How many bytes some state of a coordinator holds, and how many it may: a plain number that whoever adds or removes state keeps right.

Nothing is measured. One account is shared by all shards of a broker.
"""

from __future__ import annotations

from barnabas.config_def import LONG_MAX


class MemoryAccount:
    """`used` is the sum of what is held; the owners of the state add and subtract."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int = LONG_MAX) -> None:
        self.limit = limit
        self.used = 0

    def has_room(self, more: int) -> bool:
        """Whether state may grow by so much. What does not grow is always let through."""
        return more <= 0 or self.used + more <= self.limit
