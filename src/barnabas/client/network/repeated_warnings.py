"""When to log a warning about something that goes on: at once or after a while, then after 10, 20, 40 s … up to 10 minutes.

It decides only, with times that are given. `ConnectionFailures` uses it for addresses, `MetadataUpdater` for topics.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

FIRST_QUIET_MS: Final = 10_000  # after the first warning; twice as long after each further one
QUIET_MS_MAX: Final = 600_000
REASONS_MAX: Final = 8  # of a subject that have a back-off each; all others share one
_OTHERS: Final = ""


class _Reason:
    """When to warn about one reason of a trouble."""

    def __init__(self, warn_at_ms: int) -> None:
        self.warned_count = 0
        self.warn_at_ms = warn_at_ms
        self.quiet_ms = 0


class Trouble:
    """What goes on with a subject, since when (monotonic milliseconds), and how often it was seen.

    `warned_count` counts the warnings about the reason that was last warned about.
    """

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self.seen_count = 0
        self.warned_count = 0
        self.reasons: dict[str, _Reason] = {}


class RepeatedWarnings:
    """By subject: an address, a topic. Each reason has a back-off of its own: two that alternate are as rare as one that stays."""

    def __init__(self) -> None:
        self._troubles: dict[str, Trouble] = {}

    def due(self, subject: str, reason: str, now_ms: int, patience_ms: int = 0) -> Trouble | None:
        """The trouble, if a warning about it is to be logged now. A new reason is due at once, or after `patience_ms`."""
        trouble = self._troubles.get(subject)
        if trouble is None:
            trouble = self._troubles[subject] = Trouble(now_ms)
        trouble.seen_count += 1
        if reason not in trouble.reasons and len(trouble.reasons) >= REASONS_MAX:
            reason = _OTHERS
        seen = trouble.reasons.get(reason)
        if seen is None:
            seen = trouble.reasons[reason] = _Reason(now_ms + patience_ms)
        if now_ms < seen.warn_at_ms:
            return None
        seen.warned_count += 1
        trouble.warned_count = seen.warned_count
        seen.quiet_ms = min(max(2 * seen.quiet_ms, FIRST_QUIET_MS), QUIET_MS_MAX)
        seen.warn_at_ms = now_ms + seen.quiet_ms
        return trouble

    def over(self, subject: str) -> None:
        self._troubles.pop(subject, None)

    def keep_only(self, subjects: Collection[str]) -> None:
        for subject in [subject for subject in self._troubles if subject not in subjects]:
            del self._troubles[subject]
