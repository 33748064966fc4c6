"""A user's call in progress: its deadline, its number of attempts, and the results so far for its keys.

Plain values; `Calls` acts on them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from barnabas.client.errors import Disconnected, Timeout
from barnabas.client.network.connection_failures import ConnectionFailures
from barnabas.errors import KafkaError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class NotAssigned(Disconnected):
    """No node is known yet to which the request can be sent."""


class Time(Protocol):
    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...


@dataclass
class ApiResult(Generic[K, V]):
    """The result of one request for some keys. Keys in `moved` are looked up again; keys in `throttled` are requested again after a pause.

    Where keys may move between nodes, a key that the result does not name is requested again from the same node.
    """

    done: dict[K, V] = field(default_factory=dict)
    failed: dict[K, KafkaError] = field(default_factory=dict)
    moved: set[K] = field(default_factory=set)
    throttled: dict[K, KafkaError] = field(default_factory=dict)
    throttle_time_ms: int = 0

    def names(self, key: K) -> bool:
        return key in self.done or key in self.failed or key in self.moved


@dataclass
class LookupResult(Generic[K]):
    """The nodes that hold keys. Keys that it does not name are looked up again after the back-off."""

    mapped: dict[K, int] = field(default_factory=dict)
    failed: dict[K, KafkaError] = field(default_factory=dict)


class Call:
    """One call of a user: its name, its deadline and its number of attempts."""

    def __init__(self, name: str, timeout_ms: int, clock: Time) -> None:
        self.name = name
        self.tries = 0
        self._clock = clock
        self._deadline_ms = clock.monotonic_ms() + timeout_ms
        self._wall_deadline_ms = clock.now_ms() + timeout_ms
        self._next_try_ms = 0
        self.last_error: KafkaError | None = None  # the error of the last attempt
        self.api: str | None = None  # the last request sent, for calls that consist of several requests

    def remaining_ms(self) -> int:
        return max(0, self._deadline_ms - self._clock.monotonic_ms())

    def wait_from_now(self, wait_ms: int) -> None:
        self.tries += 1
        self._next_try_ms = self._clock.now_ms() + wait_ms

    def branch(self) -> Call:
        """The same call with a retry count of its own, for the requests to one node."""
        branched = Call(self.name, 0, self._clock)
        branched._deadline_ms = self._deadline_ms
        branched._wall_deadline_ms = self._wall_deadline_ms
        branched.api = self.api
        return branched

    def timed_out(self, failures: ConnectionFailures, cause: BaseException | None = None, *, assigned: bool = True) -> Timeout:
        """The Timeout of this call in Kafka's words, with the last error as its cause."""
        name = self.name if self.api is None else f"{self.name}(api={self.api})"
        if not assigned:
            return failures.timeout(f"Timed out waiting for a node assignment. Call: {name}", cause=cause)
        if isinstance(cause, Timeout):
            return cause
        return failures.timeout(
            f"Call(callName={name}, deadlineMs={self._wall_deadline_ms}, tries={self.tries}, "
            f"nextAllowedTryMs={self._next_try_ms}) timed out at {self._clock.now_ms()} after {self.tries} attempt(s)",
            cause=cause,
        )
