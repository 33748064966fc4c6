"""A call of a user on its way: its deadline, how often it was tried, and what nodes have said about the keys it asks for.

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
    """There is no node yet that could be asked."""


class Time(Protocol):
    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...


@dataclass
class Answer(Generic[K, V]):
    """What a node said about some keys: those in `moved` are to be looked up anew, those in `throttled` asked for again after a while.

    Where keys may move, one that is not named at all is asked for again at the same node.
    """

    done: dict[K, V] = field(default_factory=dict)
    failed: dict[K, KafkaError] = field(default_factory=dict)
    moved: set[K] = field(default_factory=set)
    throttled: dict[K, KafkaError] = field(default_factory=dict)
    throttle_time_ms: int = 0

    def names(self, key: K) -> bool:
        return key in self.done or key in self.failed or key in self.moved


@dataclass
class Located(Generic[K]):
    """Where keys live. Those that it does not name are looked up again after the back-off."""

    found: dict[K, int] = field(default_factory=dict)
    failed: dict[K, KafkaError] = field(default_factory=dict)


class Call:
    """One call of a user: what it is called, when it must end, and how often it was tried."""

    def __init__(self, name: str, timeout_ms: int, clock: Time) -> None:
        self.name = name
        self.tries = 0
        self._clock = clock
        self._deadline_ms = clock.monotonic_ms() + timeout_ms
        self._wall_deadline_ms = clock.now_ms() + timeout_ms
        self._next_try_ms = 0
        self.last_error: KafkaError | None = None  # what the last attempt ended with
        self.api: str | None = None  # the request sent last, for calls that consist of several

    def remaining_ms(self) -> int:
        return max(0, self._deadline_ms - self._clock.monotonic_ms())

    def wait_from_now(self, wait_ms: int) -> None:
        self.tries += 1
        self._next_try_ms = self._clock.now_ms() + wait_ms

    def branch(self) -> Call:
        """The same call, to be tried and counted at one node by itself."""
        twin = Call(self.name, 0, self._clock)
        twin._deadline_ms = self._deadline_ms
        twin._wall_deadline_ms = self._wall_deadline_ms
        twin.api = self.api
        return twin

    def timed_out(self, failures: ConnectionFailures, cause: BaseException | None = None, *, assigned: bool = True) -> Timeout:
        """Kafka's words for a call that took too long; what stood in the way is its cause."""
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
