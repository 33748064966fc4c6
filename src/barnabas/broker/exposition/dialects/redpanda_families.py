"""The public metrics of Redpanda that have a counterpart here, under its names: traffic by topic, offsets, groups and their lag.

Each broker shows its part: a partition is shown by its leader, a group by its coordinator, the cluster by its active controller. Latencies
are missing: Redpanda's are cumulative histograms, and here times are kept as recent quantiles.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.exposition.lag import group_lag
from barnabas.broker.exposition.observed import Observed
from barnabas.metrics.registry import Family, Kind, Series, single

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.controller.context import ControllerContext

_KAFKA: Final = "kafka"  # the namespace of topics, and the server of the Kafka protocol
_TOPIC: Final = ("redpanda_namespace", "redpanda_topic")
_PARTITION: Final = (*_TOPIC, "redpanda_partition")
_REQUEST: Final = (*_TOPIC, "redpanda_request")
_GROUP: Final = ("redpanda_group",)
_GROUP_PARTITION: Final = ("redpanda_group", "redpanda_topic", "redpanda_partition")


def redpanda_families(observed: Observed) -> list[Family]:
    return [*_of_cluster(observed), *_of_topics(observed), *_of_partitions(observed), *_of_groups(observed), *_of_process(observed)]


def _family(name: str, meaning: str, read: Callable[[], Iterator[Series]], labels: tuple[str, ...] = (), kind: Kind = Kind.GAUGE) -> Family:
    return Family("", "", f"redpanda_{name}", kind, meaning, read, labels)


def _of_cluster(observed: Observed) -> list[Family]:
    def of_context(name: str, count: Callable[[ControllerContext], float], meaning: str) -> Family:
        def read() -> Iterator[Series]:
            controller = observed.broker.controller
            if controller.context is not None and controller.is_active:
                yield (), count(controller.context)

        return _family(f"cluster_{name}", f"{meaning} Shown by the active controller.", read)

    return [
        of_context("brokers", lambda context: len(context.live_brokers), "Registered brokers."),
        of_context("topics", lambda context: len(context.all_topics), "Topics of the cluster."),
        of_context("partitions", lambda context: sum(map(len, context.assignments.values())), "Partitions of the cluster."),
        of_context("unavailable_partitions", lambda context: context.offline_partition_count, "Partitions without a leader."),
    ]


def _of_topics(observed: Observed) -> list[Family]:
    def traffic() -> Iterator[Series]:
        for topic, metrics in observed.broker.replica_manager.host.topic_metrics.topics():
            yield (_KAFKA, topic, "produce"), metrics.bytes_in
            yield (_KAFKA, topic, "consume"), metrics.bytes_out

    def produced() -> Iterator[Series]:
        for topic, metrics in observed.broker.replica_manager.host.topic_metrics.topics():
            yield (_KAFKA, topic), metrics.messages_in

    def of_first_partitions(value: Callable[[Partition], float]) -> Callable[[], Iterator[Series]]:
        def read() -> Iterator[Series]:
            for hosted in list(observed.broker.replica_manager.online.values()):
                if hosted.is_leader and hosted.partition.partition == 0:
                    yield (_KAFKA, hosted.partition.topic), value(hosted)

        return read

    def partition_count(hosted: Partition) -> float:
        return observed.broker.metadata_cache.partition_count(hosted.partition.topic) or 0

    by, meter = "Shown by the leader of partition 0.", Kind.METER
    return [
        _family("kafka_request_bytes_total", "Bytes of records from producers and to consumers.", traffic, _REQUEST, meter),
        _family("kafka_records_produced_total", "Records appended by producers and coordinators.", produced, _TOPIC, meter),
        _family("kafka_partitions", f"Partitions of a topic. {by}", of_first_partitions(partition_count), _TOPIC),
        _family(
            "kafka_replicas",
            f"Replicas of the partitions of a topic. {by}",
            of_first_partitions(lambda hosted: len(hosted.replicas)),
            _TOPIC,
        ),
    ]


def _of_partitions(observed: Observed) -> list[Family]:
    def ends() -> Iterator[Series]:
        for hosted in list(observed.broker.replica_manager.online.values()):
            log = hosted.leader_log
            if log is not None:
                yield (_KAFKA, hosted.partition.topic, str(hosted.partition.partition)), log.high_watermark

    def behind() -> Iterator[Series]:
        for hosted in list(observed.broker.replica_manager.online.values()):
            if hosted.is_leader:
                count = len(hosted.replicas) - len(hosted.isr.committed)
                yield (_KAFKA, hosted.partition.topic, str(hosted.partition.partition)), max(0, count)

    by = "Shown by the leader."
    return [
        _family("kafka_max_offset", f"The offset after the last record that consumers can read. {by}", ends, _PARTITION),
        _family("kafka_under_replicated_replicas", f"Replicas that are not in sync. {by}", behind, _PARTITION),
    ]


def _of_groups(observed: Observed) -> list[Family]:
    def lags() -> Iterator[tuple[str, str, int, float]]:
        return group_lag.lags(observed)

    def members() -> Iterator[Series]:
        for group_id, group in group_lag.groups(observed):
            yield (group_id,), group.num_members

    def topics() -> Iterator[Series]:
        for shard in observed.broker.groups.shards():
            for group_id, committed in list(shard.offsets.committed.by_group.items()):
                yield (group_id,), len(committed)

    prefix, by = "kafka_consumer_group_", "Shown by the group's coordinator."
    return [
        _family(
            f"{prefix}committed_offset",
            f"The committed offset of a group. {by}",
            group_lag.each(lambda: group_lag.committed(observed)),
            _GROUP_PARTITION,
        ),
        _family(f"{prefix}consumers", f"Members of a group. {by}", members, _GROUP),
        _family(f"{prefix}topics", f"Topics of which a group has committed offsets. {by}", topics, _GROUP),
        _family(f"{prefix}lag_sum", f"The lag of a group, over all partitions. {by}", group_lag.by_group(lags, lambda a, b: a + b), _GROUP),
        _family(f"{prefix}lag_max", f"The lag of the partition with the largest. {by}", group_lag.by_group(lags, max), _GROUP),
    ]


def _of_process(observed: Observed) -> list[Family]:
    def connections() -> Iterator[Series]:
        if observed.sockets is not None:
            yield (_KAFKA,), sum(listener.context.metrics.connections for listener in observed.sockets.listeners.values())

    def disk(value: Callable[[os.statvfs_result], int]) -> Callable[[], float]:
        """The sum over the file systems of log.dirs, each once."""

        def read() -> float:
            systems: dict[int, int] = {}
            for path in observed.broker.replica_manager.log_manager.dirs:
                file_system = os.statvfs(path)
                systems[file_system.f_fsid] = value(file_system)
            return sum(systems.values())

        return read

    return [
        _family("rpc_active_connections", "Open connections.", connections, ("redpanda_server",)),
        Family(
            "",
            "",
            "redpanda_cpu_busy_seconds_total",
            Kind.METER,
            "Seconds that the event loop handled requests.",
            single(lambda: _busy_seconds(observed)),
        ),
        Family(
            "",
            "",
            "redpanda_storage_disk_free_bytes",
            Kind.GAUGE,
            "Free bytes on the disks of log.dirs.",
            single(disk(lambda system: system.f_bavail * system.f_frsize)),
        ),
        Family(
            "",
            "",
            "redpanda_storage_disk_total_bytes",
            Kind.GAUGE,
            "Bytes of the disks of log.dirs.",
            single(disk(lambda system: system.f_blocks * system.f_frsize)),
        ),
    ]


def _busy_seconds(observed: Observed) -> float:
    if observed.sockets is None:
        return 0
    return sum(listener.context.metrics.busy_ns for listener in observed.sockets.listeners.values()) / 1e9
