"""The state of a cluster at one moment: frozen plain values that pages are rendered from, so that no page waits for a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from barnabas.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerSnapshot:
    """A broker that is alive. `leads` and `replicas` are numbers of partitions; `size_bytes` is None if it is unknown."""

    id: int
    host: str
    port: int
    rack: str | None
    leads: int
    replicas: int
    size_bytes: int | None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """`leader` is None while there is none. Offsets are None while they are unknown; `size_bytes` is that of the leader's replica."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start_offset: int | None
    end_offset: int | None
    size_bytes: int | None

    @property
    def records(self) -> int | None:
        """The offsets between start and end: an upper bound of the records, because of compaction and markers of transactions."""
        return None if self.start_offset is None or self.end_offset is None else max(0, self.end_offset - self.start_offset)

    @property
    def is_offline(self) -> bool:
        return self.leader is None

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """Rates and settings are None while they are unknown. `bytes_in_per_s` is the rate of records times their average size on disk."""

    name: str
    is_internal: bool
    topic_id: str
    partitions: tuple[PartitionSnapshot, ...]
    records_in_per_s: float | None
    bytes_in_per_s: float | None
    retention_ms: int | None  # -1 is without end
    retention_bytes: int | None
    cleanup_policy: str | None
    min_insync_replicas: int | None
    worst_reader: tuple[str, int] | None  # the group that is behind most, and its lag
    records_out_per_s: float | None = None  # by the offsets that groups commit

    @property
    def replication_factor(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)

    @property
    def size_bytes(self) -> int | None:
        """Of the leaders' replicas."""
        sizes = [partition.size_bytes for partition in self.partitions if partition.size_bytes is not None]
        return sum(sizes) if sizes else None

    @property
    def records(self) -> int | None:
        counts = [partition.records for partition in self.partitions if partition.records is not None]
        return sum(counts) if counts else None


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """`lag` is None while it is unknown. A partition is `stuck` if it has records to read and its committed offset has not moved for a
    minute."""

    group_id: str
    type: str
    state: str
    protocol: str
    members: int | None
    coordinator: int | None
    lag: int | None
    lag_by_topic: Mapping[str, int]
    stuck: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class LogDirSnapshot:
    """A log directory of a broker; `error` is set if it is offline."""

    broker: int
    path: str
    replicas: int
    size_bytes: int
    volume_bytes: int | None
    free_bytes: int | None
    error: str | None

    @property
    def used_share(self) -> float | None:
        """The used share of the volume."""
        return None if not self.volume_bytes or self.free_bytes is None else 1 - self.free_bytes / self.volume_bytes


@dataclass(frozen=True, slots=True)
class ReassignmentSnapshot:
    """A reassignment in progress."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """A cluster. `unknown` says in words what could not be read, by the name of the field: a user may not see it, or the broker does not
    offer it."""

    cluster_id: str | None = None
    controller_id: int | None = None
    brokers: tuple[BrokerSnapshot, ...] = ()
    topics: Mapping[str, TopicSnapshot] = field(default_factory=lambda: MappingProxyType({}))
    groups: Mapping[str, GroupSnapshot] = field(default_factory=lambda: MappingProxyType({}))
    log_dirs: tuple[LogDirSnapshot, ...] = ()
    reassignments: Mapping[TopicPartition, ReassignmentSnapshot] = field(default_factory=lambda: MappingProxyType({}))
    records_in_per_s: float | None = None
    records_out_per_s: float | None = None  # by the offsets that groups commit
    bytes_in_per_s: float | None = None
    bytes_out_per_s: float | None = None  # only from the brokers' metrics
    taken_ms: int = 0  # wall time
    unknown: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def partitions(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())

    def broker(self, broker_id: int) -> BrokerSnapshot | None:
        return next((broker for broker in self.brokers if broker.id == broker_id), None)
