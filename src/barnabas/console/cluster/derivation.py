"""Makes snapshots of readings: rates by comparing with earlier readings, lag, and partitions whose readers are stuck. Plain values only."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from barnabas.client.admin.topics.topic_descriptions import TopicDescription
from barnabas.console.cluster.broker_metrics import ByteTotals
from barnabas.console.cluster.reader import Readings
from barnabas.console.cluster.snapshot import (
    BrokerSnapshot,
    ClusterSnapshot,
    GroupSnapshot,
    LogDirSnapshot,
    PartitionSnapshot,
    ReassignmentSnapshot,
    TopicSnapshot,
)
from barnabas.topic_partition import TopicPartition

STUCK_MS: Final = 60_000
_RATE_SAMPLES: Final = 3  # a rate is that over the last two intervals


@dataclass
class _SeenCommit:
    offset: int
    since_ms: int


@dataclass
class _Ends:
    monotonic_ms: int
    by_topic: dict[str, int]


@dataclass
class Derivation:
    """What is remembered from one snapshot to the next. Its size is that of the cluster."""

    _ends: deque[_Ends] = field(default_factory=lambda: deque(maxlen=_RATE_SAMPLES))
    _commits: dict[tuple[str, TopicPartition], _SeenCommit] = field(default_factory=dict)
    _commits_ms: int | None = None
    _commits_ends: Mapping[TopicPartition, int] = field(default_factory=dict)  # as they were when the offsets were read
    _records_out: float | None = None
    _bytes: deque[tuple[int, ByteTotals]] = field(default_factory=lambda: deque(maxlen=_RATE_SAMPLES))
    _topics_out: dict[str, float] = field(default_factory=dict)

    def note_ends(self, readings: Readings, monotonic_ms: int) -> None:
        """After end offsets were read."""
        totals: dict[str, int] = {}
        for partition, end in readings.ends.items():
            totals[partition.topic] = totals.get(partition.topic, 0) + end
        self._ends.append(_Ends(monotonic_ms, totals))

    def note_commits(self, readings: Readings, monotonic_ms: int) -> None:
        """After the offsets of groups were read."""
        commits: dict[tuple[str, TopicPartition], _SeenCommit] = {}
        consumed: dict[str, int] = {}
        for group, offsets in readings.committed.items():
            for partition, committed in offsets.items():
                if committed is None:
                    continue
                before = self._commits.get((group, partition))
                if before is not None and before.offset == committed.offset:
                    commits[group, partition] = before
                    consumed.setdefault(partition.topic, 0)
                    continue
                if before is not None:
                    consumed[partition.topic] = consumed.get(partition.topic, 0) + max(0, committed.offset - before.offset)
                else:
                    consumed.setdefault(partition.topic, 0)
                commits[group, partition] = _SeenCommit(committed.offset, monotonic_ms)
        if self._commits_ms is not None and monotonic_ms > self._commits_ms:
            seconds = (monotonic_ms - self._commits_ms) / 1_000
            self._records_out = sum(consumed.values()) / seconds
            self._topics_out = {topic: records / seconds for topic, records in consumed.items()}
        self._commits, self._commits_ms, self._commits_ends = commits, monotonic_ms, readings.ends

    def note_bytes(self, totals: ByteTotals, monotonic_ms: int) -> None:
        """After the brokers' metrics were read."""
        if self._bytes and totals.bytes_in < self._bytes[-1][1].bytes_in:
            self._bytes.clear()  # a broker has started again
        self._bytes.append((monotonic_ms, totals))

    def forget_bytes(self) -> None:
        """After the brokers' metrics could not be read."""
        self._bytes.clear()

    def _byte_rates(self) -> tuple[float | None, float | None]:
        if len(self._bytes) < 2 or self._bytes[-1][0] <= self._bytes[0][0]:
            return None, None
        (since_ms, first), (until_ms, last) = self._bytes[0], self._bytes[-1]
        seconds = (until_ms - since_ms) / 1_000
        return (last.bytes_in - first.bytes_in) / seconds, max(0.0, last.bytes_out - first.bytes_out) / seconds

    def snapshot(self, readings: Readings, now_ms: int, monotonic_ms: int) -> ClusterSnapshot:
        sizes = _leader_sizes(readings)
        groups, worst = self._groups(readings, monotonic_ms)
        topics = {name: self._topic(description, readings, sizes, worst.get(name)) for name, description in sorted(readings.topics.items())}
        cluster = readings.cluster
        own = [topic for topic in topics.values() if not topic.is_internal]  # commits of offsets are no traffic of applications
        rates = [topic.records_in_per_s for topic in own if topic.records_in_per_s is not None]
        bytes_in = [topic.bytes_in_per_s for topic in own if topic.bytes_in_per_s is not None]
        measured_in, measured_out = self._byte_rates()
        return ClusterSnapshot(
            cluster_id=cluster.cluster_id if cluster else None,
            controller_id=cluster.controller.id if cluster and cluster.controller else None,
            brokers=_brokers(readings),
            topics=MappingProxyType(topics),
            groups=MappingProxyType(groups),
            log_dirs=_log_dirs(readings),
            reassignments=MappingProxyType(
                {
                    partition: ReassignmentSnapshot(tuple(moving.replicas), tuple(moving.adding_replicas), tuple(moving.removing_replicas))
                    for partition, moving in readings.reassignments.items()
                }
            ),
            records_in_per_s=sum(rates) if rates else None,
            records_out_per_s=self._records_out,
            bytes_in_per_s=measured_in if measured_in is not None else sum(bytes_in) if bytes_in else None,
            bytes_out_per_s=measured_out,
            taken_ms=now_ms,
            unknown=MappingProxyType(dict(readings.unknown)),
        )

    def _rate(self, topic: str) -> float | None:
        if len(self._ends) < 2:
            return None
        first, last = self._ends[0], self._ends[-1]
        if topic not in first.by_topic or topic not in last.by_topic or last.monotonic_ms <= first.monotonic_ms:
            return None
        grown = last.by_topic[topic] - first.by_topic[topic]
        return grown * 1_000 / (last.monotonic_ms - first.monotonic_ms) if grown >= 0 else None  # less after it was made anew

    def _topic(
        self, description: TopicDescription, readings: Readings, sizes: Mapping[TopicPartition, int], worst: tuple[str, int] | None
    ) -> TopicSnapshot:
        name = description.name
        partitions: list[PartitionSnapshot] = []
        records = size = 0
        for info in description.partitions:
            key = TopicPartition(name, info.partition)
            made = PartitionSnapshot(
                info.partition,
                info.leader.id if info.leader is not None else None,
                tuple(node.id for node in info.replicas),
                tuple(node.id for node in info.isr),
                readings.starts.get(key),
                readings.ends.get(key),
                sizes.get(key),
            )
            partitions.append(made)
            records += made.records or 0
            size += made.size_bytes or 0
        rate = self._rate(name)
        config = readings.configs.get(name, {})
        return TopicSnapshot(
            name,
            description.is_internal,
            str(description.topic_id),
            tuple(partitions),
            rate,
            rate * size / records if rate is not None and records else None if rate else rate,
            _number(config.get("retention.ms")),
            _number(config.get("retention.bytes")),
            config.get("cleanup.policy"),
            _number(config.get("min.insync.replicas")),
            worst,
            self._topics_out.get(name),
        )

    def _groups(self, readings: Readings, monotonic_ms: int) -> tuple[dict[str, GroupSnapshot], dict[str, tuple[str, int]]]:
        groups: dict[str, GroupSnapshot] = {}
        worst: dict[str, tuple[str, int]] = {}
        for group_id, listing in sorted(readings.groups.items()):
            described = readings.described_groups.get(group_id)
            lag_by_topic: dict[str, int] = {}
            stuck: list[TopicPartition] = []
            offsets = readings.committed.get(group_id)
            for partition, committed in (offsets or {}).items():
                end = self._commits_ends.get(partition, readings.ends.get(partition))
                if committed is None or end is None:
                    continue
                lag = max(0, end - committed.offset)
                lag_by_topic[partition.topic] = lag_by_topic.get(partition.topic, 0) + lag
                commit = self._commits.get((group_id, partition))
                if lag and commit is not None and monotonic_ms - commit.since_ms >= STUCK_MS:
                    stuck.append(partition)
            for topic, lag in lag_by_topic.items():
                if topic not in worst or lag > worst[topic][1]:
                    worst[topic] = (group_id, lag)
            groups[group_id] = GroupSnapshot(
                group_id,
                str(listing.type or (described.type if described else "")) or "Classic",
                str(described.group_state if described else listing.group_state or "Unknown"),
                listing.protocol,
                len(described.members) if described else None,
                described.coordinator.id if described else None,
                sum(lag_by_topic.values()) if offsets is not None else None,
                MappingProxyType(lag_by_topic),
                tuple(sorted(stuck)),
            )
        return groups, worst


def _brokers(readings: Readings) -> tuple[BrokerSnapshot, ...]:
    leads: dict[int, int] = {}
    replicas: dict[int, int] = {}
    for topic in readings.topics.values():
        for info in topic.partitions:
            if info.leader is not None:
                leads[info.leader.id] = leads.get(info.leader.id, 0) + 1
            for node in info.replicas:
                replicas[node.id] = replicas.get(node.id, 0) + 1
    nodes = readings.cluster.nodes if readings.cluster else ()
    return tuple(
        BrokerSnapshot(
            node.id,
            node.host,
            node.port,
            node.rack,
            leads.get(node.id, 0),
            replicas.get(node.id, 0),
            sum(replica.size for log_dir in readings.log_dirs[node.id].values() for replica in log_dir.replica_infos.values())
            if node.id in readings.log_dirs
            else None,
        )
        for node in sorted(nodes, key=lambda node: node.id)
    )


def _log_dirs(readings: Readings) -> tuple[LogDirSnapshot, ...]:
    return tuple(
        LogDirSnapshot(
            broker,
            path,
            len(log_dir.replica_infos),
            sum(replica.size for replica in log_dir.replica_infos.values()),
            log_dir.total_bytes,
            log_dir.usable_bytes,
            None if log_dir.error is None else str(log_dir.error) or type(log_dir.error).__name__,
        )
        for broker, log_dirs in sorted(readings.log_dirs.items())
        for path, log_dir in sorted(log_dirs.items())
    )


def _leader_sizes(readings: Readings) -> dict[TopicPartition, int]:
    leaders = {
        TopicPartition(topic.name, info.partition): info.leader.id
        for topic in readings.topics.values()
        for info in topic.partitions
        if info.leader is not None
    }
    return {
        partition: replica.size
        for broker, log_dirs in readings.log_dirs.items()
        for log_dir in log_dirs.values()
        for partition, replica in log_dir.replica_infos.items()
        if not replica.is_future and leaders.get(partition) == broker
    }


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
