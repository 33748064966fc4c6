"""Decides when to log a warning about a continuing problem: at once or after a while, then after 10, 20, 40 s … up to 10 minutes.

The class only decides, with times as arguments. `ConnectionFailures` uses it for addresses, `MetadataUpdater` for topics.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

FIRST_QUIET_MS: Final = 10_000  # after the first warning; doubles after each further one
QUIET_MS_MAX: Final = 600_000
REASONS_MAX: Final = 8  # reasons of a subject with a back-off of their own; all others share one
_OTHERS: Final = ""


class _Reason:
    """When to warn about one reason of a problem."""

    def __init__(self, warn_at_ms: int) -> None:
        self.warned_count = 0
        self.warn_at_ms = warn_at_ms
        self.quiet_ms = 0


class Trouble:
    """The problem of a subject: its start (monotonic milliseconds), and the number of its occurrences.

    `warned_count` is the number of warnings about the reason of the last warning.
    """

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self.seen_count = 0
        self.warned_count = 0
        self.reasons: dict[str, _Reason] = {}


class RepeatedWarnings:
    """By subject: an address, a topic. Each reason has a back-off of its own, so that two alternating reasons cause no more warnings
    than one."""

    def __init__(self) -> None:
        self._troubles: dict[str, Trouble] = {}

    def due(self, subject: str, reason: str, now_ms: int, patience_ms: int = 0) -> Trouble | None:
        """The problem, if a warning about it must be logged now. A new reason is due at once, or after `patience_ms`."""
        trouble = self._troubles.get(subject)
        if trouble is None:
            trouble = self._troubles[subject] = Trouble(now_ms)
        trouble.seen_count += 1
        if reason not in trouble.reasons and len(trouble.reasons) >= REASONS_MAX:
            reason = _OTHERS
        reason_state = trouble.reasons.get(reason)
        if reason_state is None:
            reason_state = trouble.reasons[reason] = _Reason(now_ms + patience_ms)
        if now_ms < reason_state.warn_at_ms:
            return None
        reason_state.warned_count += 1
        trouble.warned_count = reason_state.warned_count
        reason_state.quiet_ms = min(max(2 * reason_state.quiet_ms, FIRST_QUIET_MS), QUIET_MS_MAX)
        reason_state.warn_at_ms = now_ms + reason_state.quiet_ms
        return trouble

    def over(self, subject: str) -> None:
        self._troubles.pop(subject, None)

    def keep_only(self, subjects: Collection[str]) -> None:
        for subject in [subject for subject in self._troubles if subject not in subjects]:
            del self._troubles[subject]
