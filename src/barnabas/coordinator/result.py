# Compiled by mypyc: src/compiled.toml lists this module.
"""What a coordinator decides: the records to write, and what to answer once they are written.

Everything that handles a request returns a `Result` and leaves the state its records speak of alone; `replay` of the written records
changes it, now and after every restart. A `Result` is a plan: nothing in here may touch a log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from barnabas.protocol.coordinator_log import write_key, write_value
from barnabas.protocol.message import Message

R = TypeVar("R")


class Record:
    """One record of a coordinator's log. Without a value it is a tombstone: what was under the key is gone."""

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
        return isinstance(other, Record) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.type, self.key_bytes()))

    def __repr__(self) -> str:
        return f"Record(type={self.type}, key={self.key!r}, value={self.value!r}, value_version={self.value_version})"

    def _parts(self) -> tuple[int, Message, Message | None, int]:
        return self.type, self.key, self.value, self.value_version


class Result(Generic[R]):
    """Records to append, in one batch, and the answer to give when they are committed.

    - `response` of None with `on_appended`: the answer is given elsewhere (a member waits for others).
    - `on_appended` is called with None once the records are committed, or with the error that kept them from it.
    - `replay` is False when the deciding code has already changed the state and `on_appended` undoes it on failure.
    - `atomic` is False when the records may be cut into several batches (tombstones of a clean-up).
    """

    __slots__ = ("atomic", "on_appended", "records", "replay", "response")

    def __init__(
        self,
        records: list[Record] | None = None,
        response: R | None = None,
        on_appended: Callable[[Exception | None], None] | None = None,
        replay: bool = True,
        atomic: bool = True,
    ) -> None:
        self.records: list[Record] = [] if records is None else records
        self.response = response
        self.on_appended = on_appended
        self.replay = replay
        self.atomic = atomic

    def __repr__(self) -> str:
        return f"Result({self.records!r}, {self.response!r})"


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall time, for timestamps in records and what is compared with them."""

    def monotonic_ms(self) -> int:
        """For intervals and deadlines."""


class Timer(Protocol):
    """Things to do later, one per key. What an action returns is written as if a request had asked for it."""

    def schedule(self, key: str, delay_ms: int, action: Callable[[], Result[None] | None]) -> None:
        """Run `action` after `delay_ms`; replaces what was scheduled under the same key."""

    def cancel(self, key: str) -> None: ...

    def is_scheduled(self, key: str) -> bool: ...
