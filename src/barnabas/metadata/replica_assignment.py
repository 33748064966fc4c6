"""Assigns the replicas of new partitions to brokers: Kafka's assignReplicasToBrokers, with and without racks.

The first replicas are assigned round-robin from a random broker on; the others follow with a shift that grows with every round, so that two
brokers do not share all their partitions. With racks the brokers are ordered so that racks alternate, and a rack without a replica comes
first. The random source is passed in; nothing here reads the metadata store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from random import Random

from barnabas.errors import InvalidPartitions, InvalidReplicationFactor, KafkaError


class IncompleteRacks(KafkaError):
    """Some brokers have a rack and some do not. UNKNOWN_SERVER_ERROR, as Kafka's AdminOperationException."""


@dataclass(frozen=True, slots=True)
class BrokerMetadata:
    id: int
    rack: str | None = None
    is_cordoned: bool = False  # gets no new replicas


def assign_replicas_to_brokers(
    brokers: Sequence[BrokerMetadata],
    partitions: int,
    replication_factor: int,
    random: Random,
    *,
    fixed_start_index: int = -1,
    start_partition_id: int = -1,
) -> dict[int, tuple[int, ...]]:
    """Replicas by partition, leader first. Negative values mean a random start index, and partition 0 first."""
    if partitions <= 0:
        raise InvalidPartitions("Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise InvalidReplicationFactor("Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        raise InvalidReplicationFactor(f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}.")
    racks = _racks(brokers)
    order = [broker.id for broker in brokers] if racks is None else rack_alternated(racks)
    start = fixed_start_index if fixed_start_index >= 0 else random.randrange(len(order))
    shift = fixed_start_index if fixed_start_index >= 0 else random.randrange(len(order))
    first_partition = max(0, start_partition_id)
    assignment = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(order) == 0:
            shift += 1
        leader_index = (partition + start) % len(order)
        if racks is None:
            assignment[partition] = _spread(order, leader_index, shift, replication_factor)
        else:
            assignment[partition] = _spread_over_racks(order, racks, leader_index, shift, replication_factor)
    return assignment


def without_partial_racks(brokers: Sequence[BrokerMetadata]) -> list[BrokerMetadata]:
    """Kafka's RackAwareMode.Safe: racks are used only if every broker has one."""
    if all(broker.rack is not None for broker in brokers):
        return list(brokers)
    return [BrokerMetadata(broker.id) for broker in brokers]


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """One broker from each rack in turn, racks by name: {0: a, 1: a, 2: b} gives 0, 2, 1."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for turn in rounds for broker in turn if broker is not None]


def _racks(brokers: Sequence[BrokerMetadata]) -> dict[int, str] | None:
    """None if no broker has a rack."""
    racks = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
    if racks and len(racks) < len(brokers):
        raise IncompleteRacks("Not all brokers have rack information for replica rack aware assignment.")
    return racks or None


def _spread(order: Sequence[int], leader_index: int, shift: int, replication_factor: int) -> tuple[int, ...]:
    followers = (order[_replica_index(leader_index, shift, follower, len(order))] for follower in range(replication_factor - 1))
    return (order[leader_index], *followers)


def _spread_over_racks(
    order: Sequence[int], racks: Mapping[int, str], leader_index: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    rack_count = len(set(racks.values()))
    chosen = [order[leader_index]]
    chosen_racks = {racks[chosen[0]]}
    candidate = 0
    while len(chosen) < replication_factor:
        broker = order[_replica_index(leader_index, shift * rack_count, candidate, len(order))]
        candidate += 1
        if racks[broker] in chosen_racks and len(chosen_racks) < rack_count:
            continue
        if broker in chosen:
            continue
        chosen.append(broker)
        chosen_racks.add(racks[broker])
    return tuple(chosen)


def _replica_index(leader_index: int, shift: int, replica: int, brokers: int) -> int:
    return (leader_index + 1 + (shift + replica) % (brokers - 1)) % brokers
