"""The load of each broker, computed from a snapshot. Plain values."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.console.cluster.snapshot import BrokerSnapshot, ClusterSnapshot


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """`records_in_per_s` is the share of the partitions that it leads; a topic's rate is divided among its partitions by their end
    offsets."""

    broker: BrokerSnapshot
    not_in_sync: int
    records_in_per_s: float
    fullest: float | None  # the used share of its fullest disk


def broker_loads(snapshot: ClusterSnapshot) -> list[BrokerLoad]:
    """One entry for each broker that is alive, by id."""
    not_in_sync: dict[int, int] = {}
    rates: dict[int, float] = {}
    for topic in snapshot.topics.values():
        records = sum(partition.end_offset or 0 for partition in topic.partitions)
        for partition in topic.partitions:
            for replica in partition.replicas:
                if replica not in partition.isr:
                    not_in_sync[replica] = not_in_sync.get(replica, 0) + 1
            if partition.leader is not None and topic.records_in_per_s and records:
                share = (partition.end_offset or 0) / records
                rates[partition.leader] = rates.get(partition.leader, 0.0) + topic.records_in_per_s * share
    return [
        BrokerLoad(
            broker,
            not_in_sync.get(broker.id, 0),
            rates.get(broker.id, 0.0),
            max(
                (log_dir.used_share for log_dir in snapshot.log_dirs if log_dir.broker == broker.id and log_dir.used_share is not None),
                default=None,
            ),
        )
        for broker in snapshot.brokers
    ]


def absent_brokers(snapshot: ClusterSnapshot) -> list[int]:
    """The brokers that have replicas and are not alive."""
    alive = {broker.id for broker in snapshot.brokers}
    assigned = {replica for topic in snapshot.topics.values() for partition in topic.partitions for replica in partition.replicas}
    return sorted(assigned - alive)
