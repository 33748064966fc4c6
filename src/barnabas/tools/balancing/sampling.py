"""Reads with the admin client what the brokers of a cluster carry. Traffic is the difference of two samples."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.tools.balancing.cluster_load import BrokerPlace, ClusterLoad, PartitionLoad
from barnabas.tools.command_line.failures import ToolError, message_of
from barnabas.tools.connecting.listening import refusing
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

CORDONED: Final = "cordoned.log.dirs"
ALL_LOG_DIRS: Final = "*"  # as its value

Volume = tuple[int | None, int | None]  # total and usable bytes of the volume of a log directory


@dataclass(frozen=True)
class LogSample:
    """A log at one moment: its bytes, its first offset and its end."""

    bytes: int
    start: int
    end: int


@dataclass(frozen=True)
class ClusterSample:
    """A cluster at one moment."""

    monotonic_s: float
    brokers: tuple[BrokerPlace, ...]
    partitions: tuple[PartitionLoad, ...]
    logs: Mapping[TopicPartition, LogSample]


def sample(admin: Admin, monotonic_s: float) -> ClusterSample:
    nodes = live_nodes(admin)
    partitions = described_partitions(admin)
    ids = sorted(node.id for node in nodes)
    cordons = _cordons(admin, ids)
    sizes, disks = _disks(admin, ids)
    bytes_of = {one.partition: _size_of(sizes, one) for one in partitions}
    starts, ends = _offsets(admin, [one.partition for one in partitions if one.leader is not None])
    logs = {
        partition: LogSample(size, starts.get(partition, 0), ends.get(partition, starts.get(partition, 0)))
        for partition, size in bytes_of.items()
    }
    brokers = tuple(broker_place(node.id, node.rack, disks[node.id], cordons.get(node.id, frozenset())) for node in nodes)
    return ClusterSample(monotonic_s, brokers, partitions, logs)


def load_between(first: ClusterSample, last: ClusterSample) -> ClusterLoad:
    """The state of the last sample, with the bytes a second since the first."""
    elapsed_s = last.monotonic_s - first.monotonic_s
    partitions = tuple(
        PartitionLoad(
            one.partition,
            one.replicas,
            one.leader,
            last.logs[one.partition].bytes,
            rate_between(first.logs.get(one.partition), last.logs[one.partition], elapsed_s),
        )
        for one in last.partitions
    )
    return ClusterLoad(last.brokers, partitions)


def rate_between(first: LogSample | None, last: LogSample, elapsed_s: float) -> int:
    """Bytes a second: by how much the log grew. If segments were deleted meanwhile, new records times the mean size of a record."""
    if first is None or elapsed_s <= 0 or last.end <= first.end:
        return 0
    grown = last.bytes - first.bytes
    if last.start > first.start or grown <= 0:
        grown = (last.end - first.end) * last.bytes // max(last.end - last.start, 1)
    return round(grown / elapsed_s)


def live_nodes(admin: Admin) -> list[Any]:
    """The brokers of the cluster at whose address something listens, by id."""
    nodes = [node for node in admin.describe_cluster().nodes if not node.is_fenced]
    down = refusing(nodes)
    return sorted((node for node in nodes if node.id not in down), key=lambda node: node.id)


def described_partitions(admin: Admin) -> tuple[PartitionLoad, ...]:
    """All partitions, internal ones too, without sizes."""
    listed = admin.list_topics(list_internal=True)
    topics = admin.describe_topics(sorted(listed)).successes if listed else {}  # a topic deleted meanwhile has an error
    return tuple(
        PartitionLoad(
            TopicPartition(name, info.partition),
            tuple(node.id for node in info.replicas),
            None if info.leader is None or info.leader.is_empty else info.leader.id,
        )
        for name, topic in sorted(topics.items())
        for info in topic.partitions
    )


def replica_sizes(admin: Admin, brokers: Collection[int]) -> dict[tuple[TopicPartition, int], int]:
    """The bytes of replicas by partition and broker; brokers that do not answer are left out."""
    dirs = admin.describe_log_dirs(sorted(brokers)).successes if brokers else {}
    return {
        (partition, broker): info.size
        for broker, described in dirs.items()
        for log_dir in described.values()
        for partition, info in log_dir.replica_infos.items()
        if not info.is_future
    }


def broker_place(broker: int, rack: str | None, disks: Mapping[str, Volume], cordons: Collection[str]) -> BrokerPlace:
    """The free space is that of the directories that are not cordoned."""
    # Directories on one volume report the same numbers: they count once.
    volumes = {volume for path, volume in disks.items() if ALL_LOG_DIRS not in cordons and path not in cordons}
    known = [usable for _, usable in volumes if usable is not None]
    return BrokerPlace(broker, rack, sum(known) if len(known) == len(volumes) else None, is_cordoned=bool(disks) and not volumes)


def _cordons(admin: Admin, brokers: Sequence[int]) -> dict[int, frozenset[str]]:
    """cordoned.log.dirs by broker, as absolute paths; brokers that do not know the setting, or do not show it, are left out."""
    from barnabas.client.admin.cluster.config_entries import ConfigResource, ConfigResourceType

    described = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, str(broker)) for broker in brokers]).successes
    values = {int(resource.name): config[CORDONED].value for resource, config in described.items() if CORDONED in config}
    return {broker: frozenset(filter(None, map(str.strip, (value or "").split(",")))) for broker, value in values.items()}


def _disks(admin: Admin, brokers: Sequence[int]) -> tuple[dict[tuple[TopicPartition, int], int], dict[int, dict[str, Volume]]]:
    """The bytes of replicas, and by broker the log directories that are online."""
    outcomes = admin.describe_log_dirs(brokers)
    for broker, error in sorted(outcomes.errors.items()):
        raise ToolError(f"broker {broker} does not list its log directories: {message_of(error)}; nothing was changed")
    sizes: dict[tuple[TopicPartition, int], int] = {}
    disks: dict[int, dict[str, Volume]] = {}
    for broker, dirs in outcomes.successes.items():
        online = {path: described for path, described in dirs.items() if described.error is None}
        disks[broker] = {path: (one.total_bytes, one.usable_bytes) for path, one in online.items()}
        for one in online.values():
            sizes |= {(partition, broker): info.size for partition, info in one.replica_infos.items() if not info.is_future}
    return sizes, disks


def _size_of(sizes: Mapping[tuple[TopicPartition, int], int], one: PartitionLoad) -> int:
    """The leader's size, else the largest."""
    leading = sizes.get((one.partition, -1 if one.leader is None else one.leader))
    return leading if leading is not None else max((sizes.get((one.partition, broker), 0) for broker in one.replicas), default=0)


def _offsets(admin: Admin, partitions: Sequence[TopicPartition]) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    from barnabas.client.admin.topics.offsets import OffsetSpec

    if not partitions:
        return {}, {}
    starts = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.earliest())).successes
    ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.latest())).successes
    return {key: info.offset for key, info in starts.items()}, {key: info.offset for key, info in ends.items()}
