"""The metrics of replicas, partitions, logs and purgatories. Series of a partition are there as long as this broker has a replica of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.exposition.families.partition_labels import PartitionLabels
from barnabas.broker.exposition.families.windows import HistogramWindows
from barnabas.broker.exposition.observed import Observed
from barnabas.metrics.histogram import quantiles
from barnabas.metrics.registry import QUANTILES, Distribution, Family, Kind, Series, single

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.storage.log.log import Log

_PARTITION = ("topic", "partition")


def replica_families(observed: Observed) -> list[Family]:
    labels = PartitionLabels()

    def online() -> list[Partition]:
        return list(observed.broker.replica_manager.online.values())

    def count(condition: Callable[[Partition], bool]) -> Callable[[], float]:
        return lambda: sum(map(condition, online()))

    def manager(name: str, kind: Kind, value: Callable[[], float], meaning: str) -> Family:
        return Family("kafka.server", "ReplicaManager", name, kind, meaning, single(value))

    def partition(name: str, value: Callable[[Partition], float], meaning: str) -> Family:
        def read() -> Iterator[Series]:
            for hosted in online():
                yield labels[hosted.partition], value(hosted)

        return Family("kafka.cluster", "Partition", name, Kind.GAUGE, meaning, read, _PARTITION)

    gauge, meter = Kind.GAUGE, Kind.METER
    return [
        manager(
            "PartitionCount",
            gauge,
            lambda: len(observed.broker.replica_manager.online) + len(observed.broker.replica_manager.offline),
            "Replicas on this broker, also those whose disk has failed.",
        ),
        manager("LeaderCount", gauge, count(lambda hosted: hosted.is_leader), "Partitions that this broker leads."),
        manager(
            "OfflineReplicaCount",
            gauge,
            lambda: len(observed.broker.replica_manager.offline),
            "Replicas on this broker whose disk has failed.",
        ),
        manager("UnderReplicatedPartitions", gauge, count(is_under_replicated), "Partitions led here with a replica that is not in sync."),
        manager(
            "UnderMinIsrPartitionCount",
            gauge,
            count(lambda hosted: hosted.is_under_min_isr),
            "Partitions led here that refuse acks=all: fewer replicas in sync than min.insync.replicas.",
        ),
        manager("AtMinIsrPartitionCount", gauge, count(is_at_min_isr), "Partitions led here that refuse acks=all after one more failure."),
        manager("ReassigningPartitions", gauge, count(is_reassigning), "Partitions led here whose replicas are being moved."),
        manager("IsrShrinksPerSec", meter, lambda: observed.broker.replica_manager.host.isr_shrinks, "Followers removed from an ISR."),
        manager("IsrExpandsPerSec", meter, lambda: observed.broker.replica_manager.host.isr_expands, "Followers added to an ISR."),
        manager(
            "FailedIsrUpdatesPerSec",
            meter,
            lambda: observed.broker.replica_manager.host.failed_isr_updates,
            "Changes of an ISR that the controller did not make.",
        ),
        partition("UnderReplicated", lambda hosted: is_under_replicated(hosted), "1 if a replica of a partition led here is not in sync."),
        partition("UnderMinIsr", lambda hosted: hosted.is_under_min_isr, "1 if fewer replicas than min.insync.replicas are in sync."),
        partition("AtMinIsr", lambda hosted: is_at_min_isr(hosted), "1 if exactly min.insync.replicas are in sync."),
        partition(
            "InSyncReplicasCount",
            lambda hosted: len(hosted.isr.committed) if hosted.is_leader else 0,
            "Replicas in sync of a partition led here; 0 on a follower.",
        ),
        partition("ReplicasCount", lambda hosted: len(hosted.replicas) if hosted.is_leader else 0, "Replicas of a partition led here."),
        partition(
            "LastStableOffsetLag",
            _stable_lag,
            "Records between the last stable offset and the high watermark: those of open transactions, and what follows them.",
        ),
    ]


def is_under_replicated(hosted: Partition) -> bool:
    return hosted.is_leader and len(hosted.isr.committed) < len(hosted.replicas)


def is_at_min_isr(hosted: Partition) -> bool:
    log = hosted.leader_log
    return log is not None and len(hosted.isr.committed) == min(log.config.min_insync_replicas, len(hosted.replicas))


def is_reassigning(hosted: Partition) -> bool:
    return hosted.is_leader and bool(hosted.adding_replicas or hosted.removing_replicas)


def _stable_lag(hosted: Partition) -> float:
    log = hosted.leader_log
    return 0 if log is None else max(0, log.high_watermark - log.last_stable_offset)


def log_families(observed: Observed) -> list[Family]:
    labels = PartitionLabels()

    def of_logs(name: str, value: Callable[[Log], float], meaning: str) -> Family:
        def read() -> Iterator[Series]:
            for log in observed.broker.replica_manager.log_manager.logs:
                if not log.is_future:
                    yield labels[log.partition], value(log)

        return Family("kafka.log", "Log", name, Kind.GAUGE, meaning, read, _PARTITION)

    def offline_dirs() -> Iterator[Series]:
        log_manager = observed.broker.replica_manager.log_manager
        for path in (*log_manager.dirs, *log_manager.offline_dirs):
            yield (path,), path in log_manager.offline_dirs

    windows = HistogramWindows(lambda: observed.flush_us.rotate())

    def flushes() -> Iterator[Series]:
        windows.advance(observed.broker.clock.monotonic_ms())
        histogram = observed.flush_us
        yield (), Distribution(histogram.count, tuple(value / 1000 for value in quantiles(histogram.counts(), QUANTILES)))

    return [
        Family(
            "kafka.log",
            "LogFlushStats",
            "LogFlushRateAndTimeMs",
            Kind.HISTOGRAM,
            "Flushes of logs to disk while the broker runs, and how long they took, waiting for a thread included.",
            flushes,
        ),
        of_logs("Size", lambda log: log.size, "Bytes of the log of a partition."),
        of_logs("NumLogSegments", lambda log: len(log.segments), "Segments of the log of a partition."),
        of_logs("LogStartOffset", lambda log: log.log_start_offset, "The first offset that is not deleted."),
        of_logs("LogEndOffset", lambda log: log.log_end_offset, "The offset of the next record."),
        Family(
            "kafka.log",
            "LogManager",
            "OfflineLogDirectoryCount",
            Kind.GAUGE,
            "Directories of log.dirs whose disk has failed.",
            single(lambda: len(observed.broker.replica_manager.log_manager.offline_dirs)),
        ),
        Family(
            "kafka.log",
            "LogManager",
            "LogDirectoryOffline",
            Kind.GAUGE,
            "1 for a directory of log.dirs whose disk has failed.",
            offline_dirs,
            ("logDirectory",),
        ),
    ]


def purgatory_families(observed: Observed) -> list[Family]:
    def of_purgatories(name: str, meaning: str) -> Family:
        def read() -> Iterator[Series]:
            for purgatory in observed.expirations.purgatories:
                yield (purgatory.name,), purgatory.metrics()[name]

        return Family("kafka.server", "DelayedOperationPurgatory", name, Kind.GAUGE, meaning, read, ("delayedOperation",))

    def expired_fetches() -> Iterator[Series]:
        metrics = observed.broker.replica_manager.metrics
        yield ("follower",), metrics.expired_follower_fetches
        yield ("consumer",), metrics.expired_consumer_fetches

    return [
        of_purgatories("PurgatorySize", "Entries of delayed operations, one for each key that may complete them."),
        of_purgatories("NumDelayedOperations", "Delayed operations that have not timed out."),
        Family(
            "kafka.server",
            "DelayedProduceMetrics",
            "ExpiresPerSec",
            Kind.METER,
            "Partitions of Produce requests that timed out while they waited for replicas.",
            single(lambda: observed.broker.replica_manager.metrics.expired_produces),
        ),
        Family(
            "kafka.server",
            "DelayedFetchMetrics",
            "ExpiresPerSec",
            Kind.METER,
            "Fetches that timed out while they waited for fetch.min.bytes.",
            expired_fetches,
            ("fetcherType",),
        ),
    ]
