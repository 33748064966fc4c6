"""Kafka's metrics of the group coordinator, by the names under which Kafka's documentation lists them.

Gauges are computed on demand; counts are the sums of the sensors since the broker started. Every name is always present, also with the
value zero, so that a reader can tell "nothing happened" from "the name has changed".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.coordinator.group.classic.classic_group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.group.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.group.group import GroupType
from barnabas.coordinator.group.shard import GroupCoordinatorShard
from barnabas.coordinator.metrics import (
    COMPLETED_REBALANCES,
    CONSUMER_GROUP_REBALANCES,
    OFFSET_COMMITS,
    OFFSET_DELETIONS,
    OFFSET_EXPIRATIONS,
)

CLASSIC: Final = "kafka.coordinator.group:type=GroupMetadataManager,name="
MODERN: Final = "kafka.server:type=group-coordinator-metrics,name="

_PROTOCOLS: Final = (GroupType.CLASSIC, GroupType.CONSUMER)
_CONSUMER_STATES: Final = ("empty", "assigning", "reconciling", "stable", "dead")
_COUNTS: Final = {
    OFFSET_COMMITS: "offset-commit-count",
    OFFSET_EXPIRATIONS: "offset-expiration-count",
    OFFSET_DELETIONS: "offset-deletion-count",
    COMPLETED_REBALANCES: "group-completed-rebalance-count",
    CONSUMER_GROUP_REBALANCES: "consumer-group-rebalance-count",
}


def group_gauges(shards: Iterable[GroupCoordinatorShard]) -> dict[str, int]:
    """The number of groups by type and by state, and the number of offsets."""
    gauges = {f"{CLASSIC}NumGroups": 0, f"{CLASSIC}NumOffsets": 0}
    gauges |= {f"{CLASSIC}NumGroups{state.value}": 0 for state in ClassicGroupState}
    gauges |= {f"{MODERN}group-count,protocol={kind.value}": 0 for kind in _PROTOCOLS}
    gauges |= {f"{MODERN}consumer-group-count,state={state}": 0 for state in _CONSUMER_STATES}
    for shard in shards:
        gauges[f"{CLASSIC}NumOffsets"] += shard.offsets.committed.count
        for group in shard.groups.values():
            if isinstance(group, ClassicGroup):
                gauges[f"{CLASSIC}NumGroups"] += 1
                gauges[f"{CLASSIC}NumGroups{group.state_name}"] += 1
            elif isinstance(group, ConsumerGroup):
                gauges[f"{MODERN}consumer-group-count,state={group.state_name.lower()}"] += 1
            gauges[f"{MODERN}group-count,protocol={group.type.value}"] += 1
    return gauges


def partition_gauges(loading: int, active: int, failed: int) -> dict[str, int]:
    """The number of partitions of `__consumer_offsets` that are loading here, are active, or failed to load."""
    counts = {"loading": loading, "active": active, "failed": failed}
    return {f"{MODERN}num-partitions,state={state}": count for state, count in counts.items()}


def group_counts(sensors: Mapping[str, int]) -> dict[str, int]:
    """The counts of the sensors, by metric name."""
    return {f"{MODERN}{name}": sensors.get(sensor, 0) for sensor, name in _COUNTS.items()}
