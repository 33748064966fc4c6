# Compiled by mypyc: src/compiled.toml lists this module.
"""The decision of a coordinator: the records to write, and the response to send once they are committed.

Code that handles a request returns a `CoordinatorResult` and does not change the state its records describe. `replay` of the written
records changes that state, now and after every restart. A `CoordinatorResult` is a plan: this module must not touch a log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from barnabas.protocol.coordinator_log import write_key, write_value
from barnabas.protocol.message import Message

R = TypeVar("R")


class CoordinatorRecord:
    """One record of a coordinator's log. A record without a value is a tombstone: it deletes the state under its key."""

    __slots__ = ("key", "type", "value", "value_version")

    def __init__(self, type: int, key: Message, value: Message | None = None, value_version: int = 0) -> None:
        self.type = type  # of the key: 2 is GroupMetadata, 3 is ConsumerGroupMetadata…
        self.key = key
        self.value = value
        self.value_version = value_version

    def key_bytes(self) -> bytes:
        return write_key(self.type, self.key)

    def value_bytes(self) -> bytes | None:
        return None if self.value is None else write_value(self.value_version, self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoordinatorRecord) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.type, self.key_bytes()))

    def __repr__(self) -> str:
        return f"CoordinatorRecord(type={self.type}, key={self.key!r}, value={self.value!r}, value_version={self.value_version})"

    def _parts(self) -> tuple[int, Message, Message | None, int]:
        return self.type, self.key, self.value, self.value_version


class CoordinatorResult(Generic[R]):
    """Records to append in one batch, and the response to send when they are committed.

    - `response` of None with `on_appended`: the response is sent elsewhere (a JoinGroup waits for the other members).
    - `on_appended` is called with None once the records are committed, or with the error if they could not be.
    - `replay` is False when the deciding code has already changed the state and `on_appended` reverts it on failure.
    - `atomic` is False when the records may be split into several batches (tombstones of a clean-up).
    """

    __slots__ = ("atomic", "on_appended", "records", "replay", "response")

    def __init__(
        self,
        records: list[CoordinatorRecord] | None = None,
        response: R | None = None,
        on_appended: Callable[[Exception | None], None] | None = None,
        replay: bool = True,
        atomic: bool = True,
    ) -> None:
        self.records: list[CoordinatorRecord] = [] if records is None else records
        self.response = response
        self.on_appended = on_appended
        self.replay = replay
        self.atomic = atomic

    def __repr__(self) -> str:
        return f"CoordinatorResult({self.records!r}, {self.response!r})"


TimerAction = Callable[[], "CoordinatorResult[None] | None"]


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock time, for timestamps in records and comparisons with them."""

    def monotonic_ms(self) -> int:
        """Monotonic time, for intervals and deadlines."""


class CoordinatorTimer(Protocol):
    """Delayed actions, one per key. A Result that an action returns is written like the Result of a request."""

    def schedule(self, key: str, delay_ms: int, action: TimerAction) -> None:
        """Run `action` after `delay_ms`. Replaces the action scheduled under the same key."""

    def cancel(self, key: str) -> None: ...

    def is_scheduled(self, key: str) -> bool: ...
