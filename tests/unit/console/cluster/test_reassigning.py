"""The progress of reassignments by the sizes of logs, and their throttle."""

from __future__ import annotations

import asyncio
from types import MappingProxyType, SimpleNamespace
from typing import Any

from barnabas.client.admin.cluster.config_entries import Config, ConfigEntry, ConfigResource, ConfigResourceType, ConfigSource
from barnabas.client.admin.outcomes import Outcomes
from barnabas.client.admin.topics.reassignments import PartitionReassignment
from barnabas.console.cluster.reassigning import BrokerThrottle, ReassignmentWatch, remove_throttle
from barnabas.console.cluster.snapshot import BrokerSnapshot, ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from barnabas.topic_partition import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
RATE = "leader.replication.throttled.rate"
LIST = "follower.replication.throttled.replicas"


class Cluster:
    """An admin client: partition 0 moves from broker 1 to 2, partition 1 to 2 and 3, of which 3 has caught up."""

    def __init__(self) -> None:
        self.moving = {P0: PartitionReassignment((1, 2), (2,), (1,)), P1: PartitionReassignment((1, 2, 3), (2, 3), ())}
        self.sizes = {1: {P0: 1_000, P1: 500}, 2: {P0: 250}, 3: {P1: 500}}
        self.altered: dict[ConfigResource, list[str]] = {}

    async def list_partition_reassignments(self) -> dict[TopicPartition, PartitionReassignment]:
        return self.moving

    async def describe_log_dirs(self, brokers: list[int]) -> Any:
        known_moves = {
            broker: {"/d": SimpleNamespace(replica_infos={key: SimpleNamespace(size=size, is_future=False) for key, size in sizes.items()})}
            for broker, sizes in self.sizes.items()
            if broker in brokers
        }
        return SimpleNamespace(successes=known_moves)

    async def describe_configs(self, resources: list[ConfigResource]) -> Any:
        def entries(resource: ConfigResource) -> list[ConfigEntry]:
            if resource.type is ConfigResourceType.TOPIC:
                return [ConfigEntry(LIST, {"t": "0:2", "own": "*"}.get(resource.name, ""))]
            if resource.name == "1":
                return [ConfigEntry(RATE, "4096", ConfigSource.DYNAMIC_BROKER_CONFIG)]
            return [ConfigEntry(RATE, "9223372036854775807", ConfigSource.DEFAULT_CONFIG)]

        return SimpleNamespace(successes={resource: Config(entries(resource)) for resource in resources})

    async def incremental_alter_configs(self, changes: dict[ConfigResource, Any]) -> Any:
        self.altered |= {resource: [operation.name for operation in operations] for resource, operations in changes.items()}
        done = dict.fromkeys(changes)
        return Outcomes(done, done, {})


def snapshot() -> ClusterSnapshot:
    partitions = (PartitionSnapshot(0, 1, (1, 2), (1,), 0, 9, 1_000), PartitionSnapshot(1, 1, (1, 2, 3), (1, 3), 0, 9, 500))
    topic = TopicSnapshot("t", False, "id", partitions, None, None, None, None, None, None, None)
    brokers = tuple(BrokerSnapshot(broker, "h", 1, None, 0, 0, None) for broker in (1, 2, 3))
    return ClusterSnapshot(brokers=brokers, topics=MappingProxyType({"t": topic}))


def test_what_is_left_is_the_size_of_the_leaders_log_without_what_is_copied() -> None:
    admin: Any = Cluster()
    reassigning = asyncio.run(ReassignmentWatch(admin).read(snapshot()))
    first, second = reassigning.partitions
    assert (first.copied, first.size, first.left, first.share, first.caught_up) == (250, 1_000, 750, 0.25, ())
    assert (second.copied, second.size, second.left, second.caught_up) == (500, 1_000, 500, (3,))
    assert reassigning.left == 1_250
    assert reassigning.throttles == (BrokerThrottle(1, 4096, None),)
    assert reassigning.total is not None
    assert (reassigning.total.done_bytes, reassigning.total.total_bytes, reassigning.total.done_copies) == (750, 2_000, 1)


def test_a_throttle_is_removed_from_brokers_and_from_topics_that_have_a_list() -> None:
    """A list of an operator, which is a star, stays."""
    admin: Any = Cluster()
    assert asyncio.run(remove_throttle(admin, ["t", "own", "other"], [1, 2])) == 1
    assert {str(resource) for resource in admin.altered} == {
        "ConfigResource(type=BROKER, name='1')",
        "ConfigResource(type=BROKER, name='2')",
        "ConfigResource(type=TOPIC, name='t')",
    }
