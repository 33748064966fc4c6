"""Kafka's metrics of the group coordinator: the names Kafka 4.2 has, for both kinds of group, and what they say."""

from __future__ import annotations

from collections import Counter

from barnabas.coordinator.group.config import GroupCoordinatorConfig
from barnabas.coordinator.group.group_metrics import CLASSIC, MODERN, group_counts, group_gauges, partition_gauges
from barnabas.errors import NotLeaderOrFollower
from tests.unit.coordinator.consumer_world import Topics, World
from tests.unit.coordinator.coordinator_host import Host, MemoryLog

# As Kafka 4.2's GroupCoordinatorMetrics registers them.
NAMES_OF_CLASSIC = {
    "NumGroups",
    "NumOffsets",
    "NumGroupsPreparingRebalance",
    "NumGroupsCompletingRebalance",
    "NumGroupsStable",
    "NumGroupsDead",
    "NumGroupsEmpty",
}
NAMES_OF_MODERN = {
    "group-count,protocol=classic",
    "group-count,protocol=consumer",
    "consumer-group-count,state=empty",
    "consumer-group-count,state=assigning",
    "consumer-group-count,state=reconciling",
    "consumer-group-count,state=stable",
    "consumer-group-count,state=dead",
}


class Sensors:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def record(self, sensor: str, count: int) -> None:
        self.counts[sensor] += count


def test_every_gauge_is_there_before_there_is_a_group() -> None:
    gauges = group_gauges([])
    assert gauges == dict.fromkeys([f"{CLASSIC}{name}" for name in NAMES_OF_CLASSIC] + [f"{MODERN}{name}" for name in NAMES_OF_MODERN], 0)


def test_classic_groups_are_counted_by_state() -> None:
    host = Host(group_initial_rebalance_delay_ms=0)
    host.stable(group="stable")
    host.commit(5, group="empty")
    host.member("preparing")
    gauges = host.coordinator.gauges()
    assert {name: gauges[f"{CLASSIC}{name}"] for name in NAMES_OF_CLASSIC} == {
        "NumGroups": 3,
        "NumOffsets": 1,
        "NumGroupsPreparingRebalance": 1,
        "NumGroupsCompletingRebalance": 0,
        "NumGroupsStable": 1,
        "NumGroupsDead": 0,
        "NumGroupsEmpty": 1,
    }
    assert gauges[f"{MODERN}group-count,protocol=classic"] == 3


def test_consumer_groups_are_counted_by_state() -> None:
    world = World(Topics(t=2))
    world.join("a", "t")
    gauges = group_gauges([world.shard])
    assert gauges[f"{MODERN}group-count,protocol=consumer"] == gauges[f"{MODERN}consumer-group-count,state=stable"] == 1
    world.heartbeat(member_id="a", member_epoch=-1)
    gauges = group_gauges([world.shard])
    assert gauges[f"{MODERN}consumer-group-count,state=stable"] == 0
    assert gauges[f"{MODERN}consumer-group-count,state=empty"] == 1
    assert gauges[f"{CLASSIC}NumGroups"] == 0


def test_partitions_are_counted_while_they_load_and_once_they_are_loaded() -> None:
    host = Host(partitions=2)
    loading = host.coordinator.on_election(2, 0)
    assert partitions_of(host) == partition_gauges(loading=1, active=2, failed=0)
    for _ in loading:
        pass
    assert partitions_of(host) == partition_gauges(loading=0, active=3, failed=0)
    host.coordinator.on_resignation(2, None)
    assert partitions_of(host) == partition_gauges(loading=0, active=2, failed=0)


class UnreadableLog(MemoryLog):
    def log_start_offset(self, partition: int) -> int:
        raise NotLeaderOrFollower


def test_a_partition_that_cannot_be_loaded_is_counted_until_another_leads_it() -> None:
    host = Host(UnreadableLog())
    assert partitions_of(host) == partition_gauges(loading=0, active=0, failed=1)
    host.coordinator.on_resignation(0, 1)
    assert partitions_of(host) == partition_gauges(loading=0, active=0, failed=0)


def test_what_the_sensors_of_both_kinds_of_group_record_has_kafkas_names() -> None:
    sensors = Sensors()
    world = World(Topics(t=2), GroupCoordinatorConfig())
    world.shard, world.consumer = world.make_shard(sensors)
    world.join("a", "t")
    assert group_counts(sensors.counts) == {
        f"{MODERN}offset-commit-count": 0,
        f"{MODERN}offset-expiration-count": 0,
        f"{MODERN}offset-deletion-count": 0,
        f"{MODERN}group-completed-rebalance-count": 0,
        f"{MODERN}consumer-group-rebalance-count": 1,
    }


def partitions_of(host: Host) -> dict[str, int]:
    return {name: count for name, count in host.coordinator.gauges().items() if "num-partitions" in name}
