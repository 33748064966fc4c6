# Compiled by mypyc: src/compiled.toml lists this module.
"""Holds delayed operations, each under the keys of the events that may complete it, and in a timer for its timeout.

Requests that have to wait leave operations here. Appends and moves of the high watermark call `check_and_complete`, and `Expirations` calls
`advance`. There are no locks, because there is one thread, but it is re-entrant: completing an operation may check keys, watch new
operations and complete others. An error of an operation is logged here and never reaches the caller whose event woke it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from barnabas.broker.waiting.delayed_operation import DelayedOperation
from barnabas.broker.waiting.timing_wheel import Timer

PURGE_INTERVAL: Final = 1000

Operation = TypeVar("Operation", bound=DelayedOperation)

_log = logging.getLogger(__name__)


class DelayedOperationPurgatory(Generic[Operation]):
    """`purge_interval` is the number of completed operations that may remain under other keys before all keys are swept. `wake_at` is
    called with the time of every new timeout, so that `advance` is called in time."""

    def __init__(
        self, name: str, start_ms: int, purge_interval: int = PURGE_INTERVAL, wake_at: Callable[[int], None] = lambda _: None
    ) -> None:
        self.name = name
        self.purge_interval = purge_interval
        self._wake_at = wake_at
        self._timer = Timer(start_ms)
        self._watchers: dict[Hashable, list[Operation]] = {}
        self._estimated_total = 0
        # Keys to check. A check inside a running check only adds its key here, so that the stack stays flat however long the chain of
        # operations is that complete each other.
        self._to_check: dict[Hashable, None] = {}
        self._checking = False
        self._checks = 0

    def try_complete_else_watch(self, operation: Operation, keys: Sequence[Hashable], monotonic_ms: int) -> bool:
        """Completes the operation now (True), or watches it under the keys until its timeout (False)."""
        assert keys, "The watch key list can't be empty"
        checks = self._checks
        if operation.try_complete():
            return True
        if operation.completed:
            return False
        for key in keys:
            self._watchers.setdefault(key, []).append(operation)
        self._estimated_total += 1
        # With one thread only `try_complete` itself can have checked keys before the operation was watched.
        if self._checks != checks and operation.try_complete():
            return True
        if not operation.completed:
            self._timer.add(operation, operation.delay_ms, monotonic_ms)
            self._wake_at(operation.expiration_ms)
        self._purge_if_due()
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Checks the operations of a key after an event, and returns how many it has completed.

        Inside a running check it returns 0, and the running check does the work before it returns.
        """
        self._checks += 1
        if not self._watchers or key not in self._watchers:
            return 0
        self._to_check[key] = None
        return 0 if self._checking else self._check()

    def is_watched(self, key: Hashable) -> bool:
        """Whether operations may be waiting for a key."""
        return key in self._watchers

    def cancel_for_key(self, key: Hashable) -> list[Operation]:
        """Removes the operations that wait for a key, and their timeouts, without completing them."""
        cancelled = [operation for operation in self._watchers.pop(key, []) if not operation.completed]
        for operation in cancelled:
            operation.cancel()
        return cancelled

    def complete_all(self) -> None:
        """Completes all operations with their current results, because the broker is about to stop."""
        for operations in list(self._watchers.values()):
            for operation in list(operations):
                self._safely(operation.force_complete)
        self._sweep(list(self._watchers))

    def advance(self, monotonic_ms: int) -> int:
        """Completes the operations whose timeout has passed; returns how many."""
        expired = sum(self._safely(task.expire) for task in self._timer.advance(monotonic_ms) if isinstance(task, DelayedOperation))
        self._purge_if_due()
        return expired

    def next_expiry_ms(self) -> int | None:
        """When `advance` has to be called next; None while nothing waits."""
        return self._timer.next_expiry_ms()

    def metrics(self) -> dict[str, int]:
        """Kafka's gauges, to be tagged delayedOperation=<name>."""
        return {"PurgatorySize": self.watched, "NumDelayedOperations": self.num_delayed}

    @property
    def watched(self) -> int:
        """Entries under all keys. An operation counts once for each of its keys, until it is swept."""
        return sum(map(len, self._watchers.values()))

    @property
    def num_delayed(self) -> int:
        """Operations whose timeout is pending."""
        return self._timer.size

    def _check(self) -> int:
        self._checking = True
        completed = 0
        try:
            while self._to_check:
                key = next(iter(self._to_check))
                del self._to_check[key]
                completed += self._check_key(key)
        finally:
            self._checking = False
        if completed:
            _log.debug("Unblocked %d %s operations", completed, self.name)
        return completed

    def _check_key(self, key: Hashable) -> int:
        completed = 0
        # A copy, because a completion may watch under this key, cancel it or sweep it.
        for operation in list(self._watchers.get(key, ())):
            if not operation.completed and self._safely(operation.try_complete):
                completed += 1
        self._sweep((key,))
        return completed

    def _safely(self, step: Callable[[], bool]) -> bool:
        try:
            return step()
        except Exception:
            _log.exception("A delayed operation of purgatory %s failed", self.name)
            return False

    def _purge_if_due(self) -> None:
        if self._estimated_total - self._timer.size > self.purge_interval:
            self._estimated_total = self._timer.size
            purged = self._sweep(list(self._watchers))
            _log.debug("Purged %d elements from the watch lists of %s", purged, self.name)

    def _sweep(self, keys: Iterable[Hashable]) -> int:
        """Removes completed operations from these keys, and keys without operations."""
        purged = 0
        for key in keys:
            operations = self._watchers.get(key)
            if operations is None:
                continue
            waiting = [operation for operation in operations if not operation.completed]
            purged += len(operations) - len(waiting)
            if waiting:
                operations[:] = waiting
            else:
                del self._watchers[key]
        return purged
