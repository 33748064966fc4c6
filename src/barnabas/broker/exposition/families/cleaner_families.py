"""The metrics of compaction: kafka.log LogCleaner and LogCleanerManager."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.exposition.observed import Observed
from barnabas.metrics.registry import Family, Kind, Series, single

if TYPE_CHECKING:
    from barnabas.storage.compaction.manager import CleanerManager
    from barnabas.storage.compaction.stats import CleanerStats

_CLEANER = "LogCleaner"
_MANAGER = "LogCleanerManager"
_DIRECTORY = ("logDirectory",)


def cleaner_families(observed: Observed) -> list[Family]:
    def cleaner() -> CleanerManager:
        return observed.broker.replica_manager.log_manager.cleaner

    def of_last(value: Callable[[CleanerStats], float]) -> Callable[[], float]:
        def read() -> float:
            stats = cleaner().last_stats
            return 0 if stats is None else value(stats)

        return read

    def by_directory(value: Callable[[str], float]) -> Callable[[], Iterator[Series]]:
        def read() -> Iterator[Series]:
            for path in observed.broker.replica_manager.log_manager.dirs:
                yield (path,), value(path)

        return read

    def gauge(of: str, name: str, value: Callable[[], float], meaning: str) -> Family:
        return Family("kafka.log", of, name, Kind.GAUGE, meaning, single(value))

    return [
        gauge(
            _CLEANER,
            "cleaner-recopy-percent",
            of_last(lambda stats: 100 * stats.bytes_written // max(1, stats.bytes_read)),
            "Percent of the bytes of the last cleaning that it wrote again.",
        ),
        gauge(
            _CLEANER,
            "max-buffer-utilization-percent",
            of_last(lambda stats: int(100 * stats.buffer_utilization)),
            "Percent of log.cleaner.dedupe.buffer.size that the last cleaning used.",
        ),
        gauge(_CLEANER, "max-clean-time-secs", of_last(lambda stats: int(stats.elapsed_seconds)), "Seconds that the last cleaning took."),
        gauge(
            _CLEANER,
            "max-compaction-delay-secs",
            lambda: cleaner().max_compaction_delay_ms // 1000,
            "How long the log that has waited longest is past its max.compaction.lag.ms, in seconds.",
        ),
        gauge(_CLEANER, "DeadThreadCount", lambda: observed.dead_cleaners(), "Cleaners that have ended by an error. It ends the broker."),
        gauge(
            _MANAGER,
            "max-dirty-percent",
            lambda: int(100 * cleaner().max_dirty_ratio),
            "Percent of the bytes of the dirtiest log that were not cleaned yet.",
        ),
        gauge(
            _MANAGER,
            "time-since-last-run-ms",
            lambda: max(0, observed.broker.clock.monotonic_ms() - cleaner().last_run_ms) if cleaner().last_run_ms else 0,
            "Milliseconds since a cleaner last looked for a log to clean.",
        ),
        Family(
            "kafka.log",
            _MANAGER,
            "uncleanable-partitions-count",
            Kind.GAUGE,
            "Partitions that cannot be cleaned because of an error.",
            by_directory(lambda path: len(cleaner().uncleanable_partitions(path))),
            _DIRECTORY,
        ),
        Family(
            "kafka.log",
            _MANAGER,
            "uncleanable-bytes",
            Kind.GAUGE,
            "The bytes of these partitions that were never cleaned.",
            by_directory(lambda path: cleaner().uncleanable_bytes(path)),
            _DIRECTORY,
        ),
        Family(
            "kafka.utils",
            "Throttler",
            "cleaner-io",
            Kind.METER,
            "Bytes that cleanings have read and written.",
            single(lambda: cleaner().io_bytes),
        ),
    ]
