"""When to log a warning about something that goes on: at once or after a while, then after 10, 20, 40 s … up to 10 minutes.

It decides only, with times that are given. `ConnectionFailures` uses it for addresses, `MetadataUpdater` for topics.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

FIRST_QUIET_MS: Final = 10_000  # after the first warning; twice as long after each further one
QUIET_MS_MAX: Final = 600_000


class Trouble:
    """What goes on, since when (monotonic milliseconds), and how often it was seen."""

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self.reason = ""
        self.seen_count = 0
        self.warned_count = 0
        self.warn_at_ms = 0
        self.quiet_ms = 0


class RepeatedWarnings:
    """By subject: an address, a topic."""

    def __init__(self) -> None:
        self._troubles: dict[str, Trouble] = {}

    def due(self, subject: str, reason: str, now_ms: int, patience_ms: int = 0) -> Trouble | None:
        """The trouble, if a warning about it is to be logged now. A new reason is due at once, or after `patience_ms`."""
        trouble = self._troubles.get(subject)
        if trouble is None:
            trouble = self._troubles[subject] = Trouble(now_ms)
        trouble.seen_count += 1
        if trouble.reason != reason:
            trouble.reason, trouble.warned_count, trouble.quiet_ms = reason, 0, 0
            trouble.warn_at_ms = now_ms + patience_ms
        if now_ms < trouble.warn_at_ms:
            return None
        trouble.warned_count += 1
        trouble.quiet_ms = min(max(2 * trouble.quiet_ms, FIRST_QUIET_MS), QUIET_MS_MAX)
        trouble.warn_at_ms = now_ms + trouble.quiet_ms
        return trouble

    def over(self, subject: str) -> None:
        self._troubles.pop(subject, None)

    def keep_only(self, subjects: Collection[str]) -> None:
        for subject in [subject for subject in self._troubles if subject not in subjects]:
            del self._troubles[subject]
