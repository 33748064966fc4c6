"""The flushes that logs have requested and that a thread has not run yet.

A flush is a `FlushPlan`, which runs on any thread while appends go on. The queue makes the plans and passes the results to the logs.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.storage.disk.disk import is_shortage
from barnabas.storage.log.durability import NEVER_MS, FlushPlan
from barnabas.storage.log.log import Log
from barnabas.storage.management.log_manager_hooks import LogManagerHooks
from barnabas.storage.management.log_registry import LogRegistry


class FlushQueue:
    def __init__(self, logs: LogRegistry, disk_failed: Callable[[str, str, Exception], None], hooks: LogManagerHooks) -> None:
        self._on_requested = hooks.flush_requested
        self._on_flushed = hooks.flushed
        self._logs = logs
        self._disk_failed = disk_failed
        self._requested: dict[Log, int] = {}  # with the offset below which records must become durable
        self._deferred: dict[Log, int] = {}  # no descriptor was left; they are requested again at the next tick

    def request(self, log: Log, offset: int) -> None:
        self._requested[log] = max(offset, self._requested.get(log, 0))
        self._on_requested()

    def request_due(self, monotonic_ms: int) -> None:
        """Requests a flush of every log whose last flush is flush.ms ago. The first call starts the interval of a log never flushed."""
        for log in self._logs.live():
            durability = log.durability
            if durability.last_flush_ms == NEVER_MS:
                durability.last_flush_ms = monotonic_ms
            if log.unflushed_messages > 0 and monotonic_ms - durability.last_flush_ms >= log.config.flush_ms:
                self.request(log, log.log_end_offset)

    def request_deferred(self) -> None:
        deferred, self._deferred = self._deferred, {}
        for log, offset in deferred.items():
            if self._logs.holds(log):
                self.request(log, offset)

    def discard(self, log: Log) -> None:
        """The log is deleted, or its disk has failed."""
        self._requested.pop(log, None)

    def take(self) -> list[tuple[Log, FlushPlan]]:
        """The plans of all requested flushes. The caller runs each plan on a thread, then calls `ran`, or `failed` for an OSError."""
        requested, self._requested = self._requested, {}
        plans = []
        for log, offset in requested.items():
            try:
                plan = log.prepare_flush(offset)
            except OSError as e:
                self.failed(log, offset, e)
                continue
            if plan is not None:
                plans.append((log, plan))
        return plans

    def run_all(self, monotonic_ms: int) -> None:
        """Runs all requested flushes on this thread."""
        for log, plan in self.take():
            try:
                is_durable = plan.run()
            except OSError as e:
                self.failed(log, plan.recovery_point, e, plan)
            else:
                self.ran(log, plan, is_durable, monotonic_ms)

    def failed(self, log: Log, below: int, error: OSError, plan: FlushPlan | None = None) -> None:
        """Without descriptors the flush is tried again at the next tick. Any other error means that the disk has failed."""
        self._disk_failed(log.log_dir, f"Error while flushing log for {log.partition} in dir {log.log_dir}: {error}", error)
        if is_shortage(error) and self._logs.holds(log):
            if plan is not None:
                log.not_flushed(plan)
            self._deferred[log] = max(below, self._deferred.get(log, 0))

    def ran(self, log: Log, plan: FlushPlan, is_durable: bool, monotonic_ms: int) -> None:
        """A plan has run. It is not durable if the directory was renamed meanwhile: then the flush is requested again."""
        if is_durable:
            log.flushed(plan, monotonic_ms)
        elif self._logs.holds(log):
            self.request(log, plan.recovery_point)
        self._on_flushed(log)
