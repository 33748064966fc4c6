"""The health of a broker as plain facts: its liveness, its readiness for clients, and the state of its cluster."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from barnabas.broker.exposition.families.replica_families import is_under_replicated
from barnabas.broker.exposition.observed import BrokerState, Observed


@dataclass(frozen=True)
class HealthCheck:
    """One thing that has to be so. `problem` is empty if it is."""

    name: str
    problem: str

    @property
    def is_good(self) -> bool:
        return not self.problem


@dataclass(frozen=True)
class ClusterFacts:
    """`brokers`, `controller_id` and `leaderless` are what this broker knows of the cluster. The other counts are of its own partitions."""

    brokers: tuple[int, ...]
    controller_id: int | None
    partitions: int
    leaderless: int
    under_replicated: int
    under_min_isr: int
    offline_replicas: int

    @property
    def problems(self) -> list[str]:
        problems = []
        if self.controller_id is None:
            problems.append("there is no active controller")
        if self.leaderless:
            problems.append(f"{self.leaderless} partitions have no leader")
        if self.under_min_isr:
            problems.append(f"{self.under_min_isr} partitions refuse acks=all: fewer replicas in sync than min.insync.replicas")
        if self.under_replicated:
            problems.append(f"{self.under_replicated} partitions have replicas that are not in sync")
        if self.offline_replicas:
            problems.append(f"{self.offline_replicas} replicas are on a disk that has failed")
        return problems

    def as_json(self) -> dict[str, object]:
        return {"status": "bad" if self.problems else "good", "problems": self.problems, **asdict(self)}


def readiness(observed: Observed) -> list[HealthCheck]:
    """What a broker must be able to do before clients are sent to it."""
    return [_runs(observed), _sees_metadata(observed), _can_write(observed), _leads(observed)]


def _runs(observed: Observed) -> HealthCheck:
    state = observed.state
    return HealthCheck("state", "" if state is BrokerState.RUNNING else f"the broker is {state.name.lower().replace('_', ' ')}")


def _sees_metadata(observed: Observed) -> HealthCheck:
    broker = observed.broker
    trouble = broker.tree.trouble
    if trouble is not None:
        return HealthCheck("metadata", f"the metadata store {trouble.path} cannot save changes: {trouble.reason}")
    if not broker.tree.is_connected:
        return HealthCheck("metadata", "there is no session with the metadata store")
    if broker.metadata_cache.controller_id is None:
        return HealthCheck("metadata", "the active controller is not known")
    return HealthCheck("metadata", "")


def _can_write(observed: Observed) -> HealthCheck:
    log_manager = observed.broker.replica_manager.log_manager
    return HealthCheck("disks", "" if log_manager.dirs else "no log directory works")


def _leads(observed: Observed) -> HealthCheck:
    """Whether this broker leads the partitions that the controller says it leads."""
    broker = observed.broker
    missing = 0
    for topic in list(broker.metadata_cache.topics()):
        for index in broker.metadata_cache.partitions(topic):
            state = broker.metadata_cache.partition_info(topic, index)
            key = broker.metadata_cache.partition_key(topic, index)
            if state is None or key is None or state.leader != broker.broker_id:
                continue
            hosted = broker.replica_manager.partition(key)
            missing += hosted is None or not hosted.is_leader
    return HealthCheck("leader", f"{missing} partitions that this broker should lead are not led yet" if missing else "")


def cluster_facts(observed: Observed) -> ClusterFacts:
    broker = observed.broker
    cache = broker.metadata_cache
    states = [cache.partition_info(topic, index) for topic in list(cache.topics()) for index in cache.partitions(topic)]
    online = list(broker.replica_manager.online.values())
    return ClusterFacts(
        brokers=tuple(sorted(alive.id for alive in cache.alive_brokers())),
        controller_id=cache.controller_id,
        partitions=len(states),
        leaderless=sum(state is not None and not cache.has_alive_broker(state.leader) for state in states),
        under_replicated=sum(map(is_under_replicated, online)),
        under_min_isr=sum(hosted.is_under_min_isr for hosted in online),
        offline_replicas=len(broker.replica_manager.offline),
    )
