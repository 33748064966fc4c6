"""The health of a cluster in one sentence, and the partitions that need attention. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from barnabas.console.cluster.snapshot import ClusterSnapshot, PartitionSnapshot, TopicSnapshot

Level = Literal["good", "warning", "bad"]
FULL_SHARE: Final = 0.9  # the used share of a disk above which it is a problem


@dataclass(frozen=True, slots=True)
class AilingPartition:
    """A partition that needs attention, and why."""

    topic: str
    partition: PartitionSnapshot
    why: str
    is_offline: bool


@dataclass(frozen=True, slots=True)
class HealthSummary:
    """`sentence` names the worst problem first; `partitions` are all that need attention, the worst first."""

    level: Level
    sentence: str
    partitions: tuple[AilingPartition, ...]


def health_of(snapshot: ClusterSnapshot) -> HealthSummary:
    ailing = sorted(_ailing(snapshot), key=lambda partition: (not partition.is_offline, partition.topic, partition.partition.partition))
    offline = sum(partition.is_offline for partition in ailing)
    too_few = sum(partition.why.startswith("fewer") for partition in ailing)
    behind = len(ailing) - offline - too_few
    bad: list[str] = []
    warnings: list[str] = []
    if "cluster" in snapshot.unknown:
        bad.append(f"the cluster does not answer ({snapshot.unknown['cluster']})")
    if snapshot.controller_id is None:
        bad.append("there is no controller")
    if offline:
        bad.append(f"{_many(offline, 'partition')} without a leader")
    if too_few:
        bad.append(f"{_many(too_few, 'partition')} with fewer in-sync replicas than min.insync.replicas")
    failed = [log_dir for log_dir in snapshot.log_dirs if log_dir.error is not None]
    if failed:
        bad.append(f"{_many(len(failed), 'log directory', 'log directories')} offline")
    if behind:
        warnings.append(f"{_many(behind, 'partition')} under-replicated")
    full = [log_dir for log_dir in snapshot.log_dirs if (log_dir.used_share or 0) > FULL_SHARE]
    if full:
        worst = max(full, key=lambda log_dir: log_dir.used_share or 0)
        warnings.append(f"the disk of {worst.path} on broker {worst.broker} is {(worst.used_share or 0) * 100:.0f} % full")
    stuck = sum(bool(group.stuck) for group in snapshot.groups.values())
    if stuck:
        warnings.append(f"{_many(stuck, 'group')} with partitions that nobody reads on")
    if bad or warnings:
        return HealthSummary("bad" if bad else "warning", _sentence([*bad, *warnings]), tuple(ailing))
    brokers = _many(len(snapshot.brokers), "broker")
    topics, partitions = _many(len(snapshot.topics), "topic"), _many(snapshot.partitions, "partition")
    return HealthSummary("good", f"All is well: {brokers}, {topics}, {partitions}, every replica in sync.", ())


def _ailing(snapshot: ClusterSnapshot) -> list[AilingPartition]:
    return [
        AilingPartition(topic.name, partition, why, partition.is_offline)
        for topic in snapshot.topics.values()
        for partition in topic.partitions
        if (why := _why(topic, partition)) is not None
    ]


def _why(topic: TopicSnapshot, partition: PartitionSnapshot) -> str | None:
    if partition.is_offline:
        return "no leader: none of its in-sync replicas is on a running broker"
    if not partition.is_under_replicated:
        return None
    missing = ", ".join(str(replica) for replica in partition.replicas if replica not in partition.isr)
    required = min(topic.min_insync_replicas or 1, len(partition.replicas))
    if len(partition.isr) < required:
        return f"fewer in-sync replicas than min.insync.replicas={required}: producers with acks=all are refused; missing: broker {missing}"
    return f"the replica on broker {missing} is not in sync"


def _many(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _sentence(parts: list[str]) -> str:
    text = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"{text[:1].upper()}{text[1:]}."
