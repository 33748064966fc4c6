"""The metrics that kafka_exporter shows, under its names: brokers, topics, partitions, and the lag of consumer groups.

kafka_exporter asks the whole cluster from outside. Here each broker shows its part: the series of a partition are those of its leader, the
series of a group those of its coordinator. Together the brokers show what one kafka_exporter does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.exposition.families.partition_labels import PartitionLabels
from barnabas.broker.exposition.families.replica_families import is_under_replicated
from barnabas.broker.exposition.lag import group_lag
from barnabas.broker.exposition.observed import Observed
from barnabas.coordinator.group.classic.classic_group import ClassicGroup
from barnabas.coordinator.group.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.group.group import Group
from barnabas.endpoint import host_and_port
from barnabas.metrics.registry import Family, Kind, Series, single

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.storage.log.log import Log

READS_PER_SLICE: Final = 20  # of logs, in one turn of the event loop: about a millisecond
_PARTITION = ("topic", "partition")
_GROUP = ("consumergroup",)
_GROUP_TOPIC = ("consumergroup", "topic")
_GROUP_PARTITION = ("consumergroup", "topic", "partition")


def exporter_families(observed: Observed) -> list[Family]:
    return [*_of_cluster(observed), *_of_partitions(observed), *_of_groups(observed)]


def _gauge(name: str, meaning: str, read: Callable[[], Iterator[Series]], labels: tuple[str, ...]) -> Family:
    return Family("", "", name, Kind.GAUGE, meaning, read, labels)


def _of_cluster(observed: Observed) -> list[Family]:
    def brokers() -> Iterator[Series]:
        broker = observed.broker
        listener = broker.config.static.inter_broker_listener_name
        for alive in broker.metadata_cache.alive_brokers():
            endpoint = alive.endpoint(listener)
            yield (str(alive.id), "" if endpoint is None else host_and_port(endpoint.host, endpoint.port)), 1

    def partition_counts() -> Iterator[Series]:
        cache = observed.broker.metadata_cache
        for hosted in list(observed.broker.replica_manager.online.values()):
            if hosted.is_leader and hosted.partition.partition == 0:
                yield (hosted.partition.topic,), cache.partition_count(hosted.partition.topic) or 0

    return [
        Family(
            "",
            "",
            "kafka_brokers",
            Kind.GAUGE,
            "Brokers of the cluster.",
            single(lambda: len(observed.broker.metadata_cache.alive_brokers())),
        ),
        _gauge("kafka_broker_info", "1 for each broker, with its address for other brokers.", brokers, ("id", "address")),
        _gauge("kafka_topic_partitions", "Partitions of a topic; shown by the leader of partition 0.", partition_counts, ("topic",)),
    ]


def _of_partitions(observed: Observed) -> list[Family]:
    labels = PartitionLabels()

    def partition(name: str, value: Callable[[Partition, Log], float], meaning: str) -> Family:
        def read() -> Iterator[Series]:
            for hosted in list(observed.broker.replica_manager.online.values()):
                log = hosted.leader_log
                if log is not None:
                    yield labels[hosted.partition], value(hosted, log)

        return _gauge(f"kafka_topic_partition_{name}", f"{meaning} Shown by the leader.", read, _PARTITION)

    return [
        partition("current_offset", lambda _, log: log.high_watermark, "The offset after the last record that consumers can read."),
        partition("oldest_offset", lambda _, log: log.log_start_offset, "The first offset that is not deleted."),
        partition("leader", lambda hosted, _: hosted.leader_id, "The id of the leader."),
        partition(
            "leader_is_preferred",
            lambda hosted, _: bool(hosted.replicas) and hosted.replicas[0] == hosted.leader_id,
            "1 if the leader is the first replica.",
        ),
        partition("replicas", lambda hosted, _: len(hosted.replicas), "Replicas."),
        partition("in_sync_replica", lambda hosted, _: len(hosted.isr.committed), "Replicas in sync."),
        partition("under_replicated_partition", lambda hosted, _: is_under_replicated(hosted), "1 if a replica is not in sync."),
    ]


def _of_groups(observed: Observed) -> list[Family]:
    def of_commits() -> Iterator[tuple[str, str, int, float]]:
        return group_lag.committed(observed)

    def of_lags() -> Iterator[tuple[str, str, int, float]]:
        return group_lag.lags(observed)

    def members() -> Iterator[Series]:
        for group_id, group in group_lag.groups(observed):
            yield (group_id,), _member_count(group)

    prefix, by = "kafka_consumergroup_", "Shown by the group's coordinator."
    return [
        _gauge(f"{prefix}current_offset", f"The committed offset of a group. {by}", group_lag.each(of_commits), _GROUP_PARTITION),
        _gauge(
            f"{prefix}current_offset_sum", f"The sum over the partitions of a topic. {by}", group_lag.by_topic(of_commits), _GROUP_TOPIC
        ),
        _gauge(
            f"{prefix}lag",
            f"Records between the committed offset and the end of a partition. {by}",
            group_lag.each(of_lags),
            _GROUP_PARTITION,
        ),
        _gauge(f"{prefix}uncommitted_offsets", f"The same as kafka_consumergroup_lag. {by}", group_lag.each(of_lags), _GROUP_PARTITION),
        _gauge(f"{prefix}lag_sum", f"The sum over the partitions of a topic. {by}", group_lag.by_topic(of_lags), _GROUP_TOPIC),
        Family(
            "",
            "",
            f"{prefix}lag_seconds",
            Kind.GAUGE,
            f"The age of the first record that a group has not read, by its timestamp; 0 if there is none. {by}",
            group_lag.each(lambda: group_lag.lag_seconds(observed)),
            _GROUP_PARTITION,
            READS_PER_SLICE,
        ),
        Family(
            "",
            "",
            "kafka_consumer_lag_millis",
            Kind.GAUGE,
            f"The same as kafka_consumergroup_lag_seconds, in milliseconds. {by}",
            group_lag.each(lambda: group_lag.lag_millis(observed)),
            _GROUP_PARTITION,
            READS_PER_SLICE,
        ),
        _gauge(f"{prefix}members", f"Members of a group. {by}", members, _GROUP),
    ]


def _member_count(group: Group) -> int:
    return len(group.members) if isinstance(group, (ClassicGroup, ConsumerGroup)) else 0
