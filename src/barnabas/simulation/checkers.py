"""What a cluster has promised, compared with what it holds. Each check gives sentences about what is wrong; none means that all is well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.records.reader import records_of
from barnabas.simulation.workload import Promises
from barnabas.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.simulation.cluster import SimulatedBroker, SimulatedCluster
    from barnabas.storage.log import Log


def log_bytes(log: Log) -> bytes:
    """All batches of a log, as they stand in its files."""
    return b"".join(segment.file.pread(segment.size, 0) for segment in log.segments)


def log_of(broker: SimulatedBroker, partition: TopicPartition) -> Log | None:
    return None if broker.broker is None else broker.broker.replica_manager.log_manager.get(partition)


def all_promises_kept(held: Iterable[tuple[int, bytes]], promises: Promises) -> list[str]:
    """Every acknowledged value is there once, at its offset and in the order in which it was sent; what was read is still there."""
    by_offset = dict(held)
    places: dict[bytes, list[int]] = {}
    for offset, value in by_offset.items():
        places.setdefault(value, []).append(offset)
    wrong = [f"{value!r} was refused with error {error}" for value, error in promises.refused]
    last = -1
    for value, offset in promises.acknowledged:
        found = places.get(value, [])
        if not found:
            wrong.append(f"{value!r} was acknowledged at {offset} and is lost")
        elif len(found) > 1:
            wrong.append(f"{value!r} is there {len(found)} times, at {found}")
        elif offset >= 0 and found[0] != offset:
            wrong.append(f"{value!r} was acknowledged at {offset} and is at {found[0]}")
        elif found[0] <= last:
            wrong.append(f"{value!r} is at {found[0]}, before what was sent before it")
        last = max(last, found[0] if found else last)
    for offset, value in promises.read.items():
        if by_offset.get(offset) != value:
            wrong.append(f"{value!r} was read at {offset}, where now is {by_offset.get(offset)!r}")
    return wrong


def values_of(data: bytes) -> list[tuple[int, bytes]]:
    return [(record.offset, record.value or b"") for record in records_of(data)]


def replicas_agree(cluster: SimulatedCluster, partition: TopicPartition) -> list[str]:
    """The files of all replicas hold the same batches."""
    contents = {number: log_bytes(log) for number, broker in cluster.brokers.items() if (log := log_of(broker, partition)) is not None}
    first = next(iter(contents.values()), b"")
    return [f"{partition} on broker {number} differs from the others" for number, data in contents.items() if data != first]


class LeadershipWatch:
    """No epoch of a partition has two leaders. To be asked to look again and again while a history runs."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._leaders: dict[tuple[TopicPartition, int], int] = {}
        self.wrong: list[str] = []

    def look(self) -> None:
        for number, broker in self._cluster.brokers.items():
            if broker.broker is None:
                continue
            for partition, found in list(broker.broker.replica_manager.online.items()):
                if not found.is_leader:
                    continue
                known = self._leaders.setdefault((partition, found.leader_epoch), number)
                if known != number:
                    self.wrong.append(f"{partition} is led by {known} and {number} in epoch {found.leader_epoch}")


def in_sync(cluster: SimulatedCluster, partition: TopicPartition) -> Mapping[int, frozenset[int]]:
    """What each broker that thinks it leads takes for the in-sync replicas."""
    found = {}
    for number, broker in cluster.brokers.items():
        if broker.broker is not None:
            hosted = broker.broker.replica_manager.partition(partition)
            if hosted is not None and hosted.is_leader:
                found[number] = hosted.isr.committed
    return found
