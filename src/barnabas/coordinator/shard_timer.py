# Compiled by mypyc: src/compiled.toml lists this module.
"""The timers of one shard of a coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.coordinator.result import TimerAction


class Scheduled(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    def monotonic_ms(self) -> int:
        """The monotonic clock that measures the delays."""

    def call_later(self, delay_ms: int, action: Callable[[], None]) -> Scheduled: ...


class _Entry:
    """One timer of a shard. It is due at `due_ms`; the scheduler calls it at `wakes_ms`, which may be earlier."""

    __slots__ = ("action", "due_ms", "key", "scheduled", "timer", "wakes_ms")

    def __init__(self, timer: ShardTimer, key: str, due_ms: int, action: TimerAction) -> None:
        self.timer = timer
        self.key = key
        self.due_ms = due_ms
        self.wakes_ms = due_ms
        self.action = action
        self.scheduled: Scheduled | None = None

    def fire(self) -> None:
        self.timer.fired(self)


class ShardTimer:
    """The timers of one shard. Unloading the shard cancels them all.

    Most are session timers, which every request of a member postpones and which hardly ever expire. So a postponed timer keeps its entry
    in the scheduler; when that fires early, the timer is scheduled again for its due time.
    """

    def __init__(self, scheduler: Scheduler, run: Callable[[str, TimerAction], None]) -> None:
        self._scheduler = scheduler
        self._run = run
        self._entries: dict[str, _Entry] = {}

    def schedule(self, key: str, delay_ms: int, action: TimerAction) -> None:
        due_ms = self._scheduler.monotonic_ms() + max(delay_ms, 0)
        entry = self._entries.get(key)
        if entry is not None and entry.wakes_ms <= due_ms:
            entry.due_ms = due_ms
            entry.action = action
            return
        self.cancel(key)
        entry = _Entry(self, key, due_ms, action)
        entry.scheduled = self._scheduler.call_later(max(delay_ms, 0), entry.fire)
        self._entries[key] = entry

    def cancel(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None and entry.scheduled is not None:
            entry.scheduled.cancel()
            entry.scheduled = None

    def cancel_all(self) -> None:
        for key in list(self._entries):
            self.cancel(key)

    def is_scheduled(self, key: str) -> bool:
        return key in self._entries

    def fired(self, entry: _Entry) -> None:
        remaining_ms = entry.due_ms - self._scheduler.monotonic_ms()
        if remaining_ms > 0:
            entry.wakes_ms = entry.due_ms
            entry.scheduled = self._scheduler.call_later(remaining_ms, entry.fire)
            return
        entry.scheduled = None
        del self._entries[entry.key]
        self._run(entry.key, entry.action)

    def __len__(self) -> int:
        return len(self._entries)
