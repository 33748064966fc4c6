"""The health of a cluster, as `barnabas status` shows it: plain values and the problems in them. This module sends nothing and prints
nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from barnabas.metadata.embedded import STORE_NAME

Severity = Literal["critical", "warning"]
_FULL_SHARE: Final = 0.9  # the used share of a disk above which it is a problem
_NAMES_MAX: Final = 5


@dataclass(frozen=True)
class BrokerHealth:
    id: int
    address: str
    rack: str | None
    is_fenced: bool
    leads: int
    replicas: int
    apis: int | None  # the number of APIs it supports; None if it did not answer
    version: str | None  # the highest metadata version it supports, if it reports one
    is_down: bool = False  # nothing listens at its address, although the cluster still lists it


@dataclass(frozen=True)
class PartitionHealth:
    name: str
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int  # min.insync.replicas as it is set

    @property
    def is_offline(self) -> bool:
        return self.leader is None

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def min_isr_asked(self) -> int:
        """The in-sync replicas that a leader requires for acks=all: never more than the partition has replicas, as in Kafka."""
        return min(self.min_isr, len(self.replicas))

    @property
    def is_under_min_isr(self) -> bool:
        return len(self.isr) < self.min_isr_asked

    @property
    def is_at_min_isr(self) -> bool:
        """With one in-sync replica less, producers with acks=all would be refused. False for a partition that has no more replicas than
        that."""
        return len(self.isr) == self.min_isr_asked < len(self.replicas)

    @property
    def has_other_leader(self) -> bool:
        """Whether the leader is not the preferred replica."""
        return self.leader is not None and self.leader != self.replicas[0]


@dataclass(frozen=True)
class LogDirHealth:
    broker: int
    path: str
    replicas: int
    bytes: int
    volume_bytes: int | None
    free_bytes: int | None
    error: str | None

    @property
    def used_share(self) -> float | None:
        """The used share of the volume."""
        if not self.volume_bytes or self.free_bytes is None:
            return None
        return 1 - self.free_bytes / self.volume_bytes


@dataclass(frozen=True)
class GroupHealth:
    name: str
    type: str
    state: str
    members: int | None
    lag: int | None  # records between the committed offsets and the log end offsets; None without an offset


@dataclass(frozen=True)
class Problem:
    severity: Severity
    text: str


@dataclass
class Health:
    """The state of a cluster at one moment. `unknown` has the reason for each part that could not be read."""

    cluster_id: str | None = None
    controller: int | None = None
    brokers: list[BrokerHealth] = field(default_factory=list)
    features: dict[str, str] = field(default_factory=dict)
    topics: int = 0
    internal_topics: int = 0
    partitions: list[PartitionHealth] = field(default_factory=list)
    reassigning: int | None = None
    groups: list[GroupHealth] = field(default_factory=list)
    log_dirs: list[LogDirHealth] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)
    not_ready: dict[int, str] = field(default_factory=dict)  # by broker, what /health/ready says

    @property
    def replicas(self) -> int:
        return sum(len(partition.replicas) for partition in self.partitions)

    @property
    def machines(self) -> dict[str, list[BrokerHealth]]:
        """The brokers of each machine that has several, by the host of their addresses: those of one rack, as `--processes` gives them."""
        hosts: dict[tuple[str, str], list[BrokerHealth]] = {}
        for broker in self.brokers:
            if broker.rack is not None:
                hosts.setdefault((broker.address.rpartition(":")[0], broker.rack), []).append(broker)
        return {host: brokers for (host, _), brokers in hosts.items() if len(brokers) > 1}

    def count(self, condition: str) -> int:
        return len(self.which(condition))

    def which(self, condition: str) -> list[str]:
        """The partitions for which a property of PartitionHealth holds."""
        return [partition.name for partition in self.partitions if getattr(partition, condition)]

    @property
    def verdict(self) -> str:
        severities = {problem.severity for problem in self.problems()}
        return "CRITICAL" if "critical" in severities else "WARNING" if severities else "HEALTHY"

    def problems(self) -> list[Problem]:
        """The problems, the worst first."""
        return sorted(self._problems(), key=lambda problem: problem.severity)

    def _problems(self) -> Iterator[Problem]:
        if self.controller is None:
            yield Problem("critical", "there is no controller: topics cannot be changed and no leader can be elected")
        for condition, severity, meaning in _CONDITIONS:
            names = self.which(condition)
            if names:
                yield Problem(severity, f"{_counted(len(names), 'partition')} {meaning}: {_some(names)}")
        for log_dir in self.log_dirs:
            where = f"{log_dir.path} of broker {log_dir.broker}"
            share = log_dir.used_share
            # A broker lists its metadata store among its log directories while writing to the store fails.
            if log_dir.error is not None and log_dir.path.endswith(f"/{STORE_NAME}"):
                yield Problem("critical", f"the metadata store {where} cannot keep changes: check the space and the health of its disk")
            elif log_dir.error is not None:
                yield Problem("critical", f"log directory {where} is offline: {log_dir.error}")
            elif share is not None and share >= _FULL_SHARE:
                yield Problem("warning", f"the disk of {where} is {share:.0%} full")
        for broker in self.brokers:
            if broker.is_down:
                leads = f"; it leads {_counted(broker.leads, 'partition')} until the cluster notices" if broker.leads else ""
                yield Problem("critical", f"broker {broker.id} is down: {broker.address} refuses connections{leads}")
        fenced = [str(broker.id) for broker in self.brokers if broker.is_fenced]
        if fenced:
            yield Problem("warning", f"{_counted(len(fenced), 'broker')} fenced: {_some(fenced)}")
        for broker_id, why in sorted(self.not_ready.items()):
            yield Problem("warning", f"broker {broker_id} is not ready: {why}")
        for part, why in self.unknown.items():
            yield Problem("warning", f"{part} unknown: {why}")

    def as_json(self) -> dict[str, Any]:
        """For programs; partitions only as counts and, where something is wrong, names."""
        return {
            "status": self.verdict,
            "problems": [_as_json(problem) for problem in self.problems()],
            "clusterId": self.cluster_id,
            "controller": self.controller,
            "features": self.features,
            "brokers": [_as_json(broker) for broker in self.brokers],
            "topics": self.topics,
            "internalTopics": self.internal_topics,
            "partitions": len(self.partitions),
            "replicas": self.replicas,
            "reassigningPartitions": self.reassigning,
            "offlinePartitions": self.which("is_offline"),
            "underReplicatedPartitions": self.which("is_under_replicated"),
            "underMinIsrPartitions": self.which("is_under_min_isr"),
            "atMinIsrPartitions": self.which("is_at_min_isr"),
            "partitionsNotLedByPreferredReplica": self.which("has_other_leader"),
            "groups": [_as_json(group) for group in self.groups],
            "logDirs": [_as_json(log_dir) for log_dir in self.log_dirs],
        }


_CONDITIONS: Final[tuple[tuple[str, Severity, str], ...]] = (
    ("is_offline", "critical", "without a leader, so that nobody can read or write"),
    ("is_under_min_isr", "critical", "with fewer in-sync replicas than min.insync.replicas, so that acks=all is refused"),
    ("is_under_replicated", "warning", "with replicas that are not in sync"),
)


def _as_json(value: Problem | BrokerHealth | GroupHealth | LogDirHealth) -> dict[str, Any]:
    """The fields, named as in all JSON of the tools: isFenced."""
    return {_camel(name): content for name, content in asdict(value).items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_MAX
    return ", ".join(names[:_NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
