"""What a coordinator decides: the records to write, and what to answer once they are written.

Everything that handles a request returns a `Result` and leaves the state its records speak of alone; `replay` of the written records
changes it, now and after every restart. A `Result` is a plan: nothing in here may touch a log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from barnabas.protocol.coordinator_log import write_key, write_value
from barnabas.protocol.message import Message

R = TypeVar("R")


class Record(NamedTuple):
    """One record of a coordinator's log. Without a value it is a tombstone: what was under the key is gone."""

    type: int  # of the key: 2 is GroupMetadata, 3 is ConsumerGroupMetadata…
    key: Message
    value: Message | None = None
    value_version: int = 0

    def key_bytes(self) -> bytes:
        return write_key(self.type, self.key)

    def value_bytes(self) -> bytes | None:
        return None if self.value is None else write_value(self.value_version, self.value)


@dataclass(slots=True)
class Result(Generic[R]):
    """Records to append, in one batch, and the answer to give when they are committed.

    - `response` of None with `on_appended`: the answer is given elsewhere (a member waits for others).
    - `on_appended` is called with None once the records are committed, or with the error that kept them from it.
    - `replay` is False when the deciding code has already changed the state and `on_appended` undoes it on failure.
    - `atomic` is False when the records may be cut into several batches (tombstones of a clean-up).
    """

    records: list[Record] = field(default_factory=list)
    response: R | None = None
    on_appended: Callable[[Exception | None], None] | None = None
    replay: bool = True
    atomic: bool = True


class Clock(Protocol):
    def now_ms(self) -> int: ...


class Timer(Protocol):
    """Things to do later, one per key. What an action returns is written as if a request had asked for it."""

    def schedule(self, key: str, delay_ms: int, action: Callable[[], Result[None] | None]) -> None:
        """Run `action` after `delay_ms`; replaces what was scheduled under the same key."""

    def cancel(self, key: str) -> None: ...

    def is_scheduled(self, key: str) -> bool: ...
