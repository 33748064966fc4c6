"""The timers of heartbeats, of the session and of max.poll.interval.ms. This class sends nothing."""

from __future__ import annotations

from barnabas.client.errors import IllegalArgument
from barnabas.client.network.backoff import ExponentialBackoff


class Heartbeat:
    """`poll_timeout_ms` is max.poll.interval.ms. `polled` may be called from the application's thread."""

    def __init__(self, *, session_timeout_ms: int, interval_ms: int, poll_timeout_ms: int, backoff: ExponentialBackoff) -> None:
        if interval_ms >= session_timeout_ms:
            raise IllegalArgument("Heartbeat must be set lower than the session timeout")
        self.interval_ms = interval_ms
        self.in_flight = False
        self._session_timeout_ms = session_timeout_ms
        self._poll_timeout_ms = poll_timeout_ms
        self._backoff = backoff
        self._failures = 0
        self._next_ms = 0
        self._session_end_ms = 0
        self._poll_end_ms = 0
        self.last_sent_ms: int | None = None

    def polled(self, now_ms: int) -> None:
        self._poll_end_ms = now_ms + self._poll_timeout_ms

    def reset_timeouts(self, now_ms: int) -> None:
        """Starts all timers for a new membership."""
        self.reset_session(now_ms)
        self.polled(now_ms)
        self._next_ms = now_ms + self.interval_ms
        self.in_flight = False

    def reset_session(self, now_ms: int) -> None:
        self._session_end_ms = now_ms + self._session_timeout_ms

    def sent(self, now_ms: int) -> None:
        self.last_sent_ms = now_ms
        self.in_flight = True
        self._next_ms = now_ms + self.interval_ms

    def received(self, now_ms: int) -> None:
        self.in_flight = False
        self._failures = 0
        self.reset_session(now_ms)

    def failed(self, now_ms: int) -> None:
        self.in_flight = False
        self._next_ms = now_ms + self._backoff.backoff_ms(self._failures)
        self._failures += 1

    def is_due(self, now_ms: int) -> bool:
        return not self.in_flight and now_ms >= self._next_ms

    def hurry(self, now_ms: int) -> None:
        """Makes the next heartbeat due now, unless a failure's back-off is running."""
        if not self._failures:
            self._next_ms = now_ms

    def forgive(self, now_ms: int) -> None:
        """Clears the failures, so that the next heartbeat is due now."""
        self._failures = 0
        self._next_ms = now_ms

    def session_expired(self, now_ms: int) -> bool:
        return now_ms >= self._session_end_ms

    def poll_expired(self, now_ms: int) -> bool:
        return now_ms >= self._poll_end_ms

    def ms_to_next(self, now_ms: int) -> int:
        return max(0, self._next_ms - now_ms)

    def ms_to_anything(self, now_ms: int) -> int:
        """The time to the next of: a heartbeat, the session timeout, the poll timeout."""
        ends = [self._session_end_ms, self._poll_end_ms]
        if not self.in_flight:
            ends.append(self._next_ms)
        return max(0, min(ends) - now_ms)
