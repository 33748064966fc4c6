"""The metrics of KMinion that a broker can show, under its names: the cluster, offsets and sizes of topics, groups and their lag.

KMinion asks the whole cluster from outside. Here each broker shows its part: the series of a partition are those of its leader, the series
of a group those of its coordinator. A sum over the partitions of a topic is that of the partitions that the broker leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from barnabas.broker.exposition.lag import group_lag
from barnabas.broker.exposition.observed import Observed
from barnabas.coordinator.group.classic.classic_group import ClassicGroup
from barnabas.metrics.registry import Family, Kind, Series

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log

_TOPIC: Final = ("topic_name",)
_PARTITION: Final = ("topic_name", "partition_id")
_GROUP: Final = ("group_id",)
_GROUP_TOPIC: Final = ("group_id", "topic_name")
_BROKER: Final = ("broker_id", "address", "port", "rack_id")


def kminion_families(observed: Observed) -> list[Family]:
    return [*_of_cluster(observed), *_of_topics(observed), *_of_groups(observed)]


def _gauge(name: str, meaning: str, read: Callable[[], Iterator[Series]], labels: tuple[str, ...]) -> Family:
    return Family("", "", f"kminion_{name}", Kind.GAUGE, meaning, read, labels)


def _of_cluster(observed: Observed) -> list[Family]:
    def up() -> Iterator[Series]:
        yield (_own_version(),), 1

    def cluster() -> Iterator[Series]:
        broker = observed.broker
        controller = broker.metadata_cache.controller_id
        brokers = len(broker.metadata_cache.alive_brokers())
        yield (_own_version(), str(brokers), "" if controller is None else str(controller), broker.cluster_id), 1

    def brokers() -> Iterator[tuple[int, tuple[str, str, str, str]]]:
        cache, listener = observed.broker.metadata_cache, observed.broker.config.static.inter_broker_listener_name
        for alive in cache.alive_brokers():
            endpoint = alive.endpoint(listener)
            host, port = ("", "") if endpoint is None else (endpoint.host, str(endpoint.port))
            yield alive.id, (str(alive.id), host, port, cache.rack(alive.id) or "")

    def broker_info() -> Iterator[Series]:
        controller = observed.broker.metadata_cache.controller_id
        for broker_id, labels in brokers():
            yield (*labels, "true" if broker_id == controller else "false"), 1

    def own_size() -> Iterator[Series]:
        for broker_id, labels in brokers():
            if broker_id == observed.broker.broker_id:
                yield labels, sum(log.size for log in observed.broker.replica_manager.log_manager.logs)

    return [
        _gauge("exporter_up", "1, with the version of this broker.", up, ("version",)),
        _gauge(
            "kafka_cluster_info",
            "1, with facts about the cluster.",
            cluster,
            ("cluster_version", "broker_count", "controller_id", "cluster_id"),
        ),
        _gauge("kafka_broker_info", "1 for each broker.", broker_info, (*_BROKER, "is_controller")),
        _gauge("kafka_broker_log_dir_size_total_bytes", "Bytes of all logs of this broker.", own_size, _BROKER),
    ]


def _own_version() -> str:
    try:
        return version("barnabas")
    except PackageNotFoundError:
        return ""


def _of_topics(observed: Observed) -> list[Family]:
    def leaders() -> Iterator[tuple[str, int, Log]]:
        for hosted in list(observed.broker.replica_manager.online.values()):
            log = hosted.leader_log
            if log is not None:
                yield hosted.partition.topic, hosted.partition.partition, log

    def of_partitions(value: Callable[[Log], int]) -> Callable[[], Iterator[Series]]:
        def read() -> Iterator[Series]:
            for topic, index, log in leaders():
                yield (topic, str(index)), value(log)

        return read

    def summed(rows: Iterator[tuple[str, int]]) -> Iterator[Series]:
        totals: dict[str, int] = {}
        for topic, value in rows:
            totals[topic] = totals.get(topic, 0) + value
        for topic, total in totals.items():
            yield (topic,), total

    def sizes() -> Iterator[Series]:
        logs = observed.broker.replica_manager.log_manager.logs
        return summed((log.partition.topic, log.size) for log in logs)

    def info() -> Iterator[Series]:
        for hosted in list(observed.broker.replica_manager.online.values()):
            if hosted.is_leader and hosted.partition.partition == 0:
                topic = hosted.partition.topic
                count = observed.broker.metadata_cache.partition_count(topic) or 0
                yield (topic, str(count), str(len(hosted.replicas))), 1

    def high(log: Log) -> int:
        return log.high_watermark

    def low(log: Log) -> int:
        return log.log_start_offset

    leader, led = "Shown by the leader.", "The sum over the partitions of a topic that this broker leads."
    return [
        _gauge(
            "kafka_topic_info",
            "1, with facts about a topic. Shown by the leader of partition 0.",
            info,
            (*_TOPIC, "partition_count", "replication_factor"),
        ),
        _gauge("kafka_topic_log_dir_size_total_bytes", "Bytes of the logs of a topic on this broker.", sizes, _TOPIC),
        _gauge("kafka_topic_partition_high_water_mark", f"The high watermark. {leader}", of_partitions(high), _PARTITION),
        _gauge("kafka_topic_partition_low_water_mark", f"The first offset that is not deleted. {leader}", of_partitions(low), _PARTITION),
        _gauge("kafka_topic_high_water_mark_sum", led, lambda: summed((topic, high(log)) for topic, _, log in leaders()), _TOPIC),
        _gauge("kafka_topic_low_water_mark_sum", led, lambda: summed((topic, low(log)) for topic, _, log in leaders()), _TOPIC),
    ]


def _of_groups(observed: Observed) -> list[Family]:
    def lags() -> Iterator[tuple[str, str, int, float]]:
        return group_lag.lags(observed)

    def members() -> Iterator[Series]:
        for group_id, group in group_lag.groups(observed):
            yield (group_id,), group.num_members

    def info() -> Iterator[Series]:
        own_id = str(observed.broker.broker_id)
        for group_id, group in group_lag.groups(observed):
            protocol = (group.protocol_name or "") if isinstance(group, ClassicGroup) else ""
            yield (group_id, protocol, group.protocol_type, group.state_name, own_id), group.state_name == "Stable"

    prefix, by = "kafka_consumer_group_", "Shown by the group's coordinator."
    return [
        _gauge(
            f"{prefix}info",
            f"1 for a group in the state Stable, else 0. {by}",
            info,
            (*_GROUP, "protocol", "protocol_type", "state", "coordinator_id"),
        ),
        _gauge(f"{prefix}members", f"Members of a group. {by}", members, _GROUP),
        _gauge(
            f"{prefix}topic_offset_sum",
            f"The sum of the committed offsets of a topic. {by}",
            group_lag.by_topic(lambda: group_lag.committed(observed)),
            _GROUP_TOPIC,
        ),
        _gauge(f"{prefix}topic_partition_lag", f"The lag of a group. {by}", group_lag.each(lags), (*_GROUP_TOPIC, "partition_id")),
        _gauge(f"{prefix}topic_lag", f"The sum over the partitions of a topic. {by}", group_lag.by_topic(lags), _GROUP_TOPIC),
    ]
