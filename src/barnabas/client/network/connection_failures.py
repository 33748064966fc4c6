"""The connection failures of a client: the last error goes into every Timeout, and repeated warnings become rarer.

Each client has one in its `Metadata`. `Connections` reports failed attempts, lost connections and successes on the event loop. `timeout`
creates every Timeout of a client, in any thread. The class only decides; `Connections` logs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final, TypeVar

from barnabas.client.clock import SystemClock
from barnabas.client.errors import KafkaError, Timeout
from barnabas.client.network.repeated_warnings import RepeatedWarnings

SLOW_MS: Final = 1000  # a pending attempt that has taken this long counts as a failure for a caller that times out

E = TypeVar("E", bound=KafkaError)

_VARYING: Final = re.compile(r" \([^)]*\)|\d+")  # the setting of an address, and limits that grow from attempt to attempt


class _Attempt:
    """A connection attempt in progress."""

    def __init__(self, place: str, since_ms: int) -> None:
        self.place = place
        self.since_ms = since_ms
        self.is_accepted = False


class ConnectionFailures:
    """By address, "host:port". Several nodes may share an address, such as a server of bootstrap.servers and the broker at that address."""

    def __init__(self, now_ms: Callable[[], int] | None = None) -> None:
        self._now_ms = now_ms or SystemClock().monotonic_ms
        self._last: KafkaError | None = None
        self._errors: dict[str, KafkaError] = {}  # the oldest first
        self._warnings = RepeatedWarnings()
        self._attempts: dict[str, _Attempt] = {}

    def begun(self, address: str, place: str) -> None:
        """A connection attempt starts."""
        self._attempts[address] = _Attempt(place, self._now_ms())

    def accepted(self, address: str) -> None:
        """The connection is established, but the broker has not responded yet."""
        if address in self._attempts:
            self._attempts[address].is_accepted = True

    def given_up(self, address: str) -> None:
        """An attempt was cancelled, without a result."""
        self._attempts.pop(address, None)

    def failed(self, address: str, error: KafkaError) -> str | None:
        """A connection attempt failed. Returns the warning to log; None while the last warning for the same reason is recent."""
        now_ms = self._now_ms()
        self.given_up(address)
        self.lost(address, error)
        reason = f"{type(error).__name__}: {_VARYING.sub('', str(error))}"
        trouble = self._warnings.due(address, reason, now_ms)
        if trouble is None:
            return None
        if trouble.warned_count == 1:
            return f"{error}; the client tries again"
        return f"{error}; {trouble.seen_count} attempts in {(now_ms - trouble.since_ms) // 1000} s failed"

    def lost(self, address: str, error: KafkaError) -> None:
        """A ready connection ended with an error, and its pending requests failed."""
        self._errors.pop(address, None)
        self._errors[address] = self._last = error

    def connected(self, address: str) -> None:
        """A connection is ready: earlier failures of this address are cleared."""
        self._attempts.pop(address, None)
        if self._errors:
            self._warnings.over(address)
            if self._errors.pop(address, None) is not None:
                self._last = next(reversed(self._errors.values()), None)

    def keep_only(self, addresses: Collection[str]) -> None:
        """Drops addresses that no known node has."""
        for address in [address for address in self._errors if address not in addresses]:
            self.connected(address)

    def last(self) -> KafkaError | None:
        """The last failure of an address that is not connected; otherwise the oldest attempt that takes long. May be called from any
        thread."""
        if self._last is not None:
            return self._last
        attempt = next(iter(tuple(self._attempts.values())), None)
        waited_ms = 0 if attempt is None else self._now_ms() - attempt.since_ms
        if attempt is None or waited_ms < SLOW_MS:
            return None
        if attempt.is_accepted:
            return Timeout(f"{attempt.place} accepted a connection and has not answered for {waited_ms} ms: is it a Kafka broker?")
        return Timeout(f"{attempt.place} has not answered for {waited_ms} ms: is a firewall in the way, or the host down?")

    def timeout(self, message: str, *, cause: BaseException | None = None) -> Timeout:
        """A Timeout with the last connection error in its text and as its cause; without such an error, `cause` is its cause."""
        return self.error(Timeout, message, cause=cause)

    def error(self, kind: type[E], message: str, *, cause: BaseException | None = None) -> E:
        """Like `timeout`, for other kinds of errors."""
        last = self.last()
        error = kind(message if last is None else f"{message.removesuffix('.')}; the last connection error: {last}")
        error.__cause__ = cause if last is None else last
        return error


NO_FAILURES: Final = ConnectionFailures()  # for components that are used without a network
