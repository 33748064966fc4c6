"""Automatic preferred leader election where a broker leads too few of its preferred partitions."""

from __future__ import annotations

from dataclasses import replace

from barnabas.controller.config import ControllerConfig
from barnabas.controller.events import AutoPreferredReplicaLeaderElection
from barnabas.metadata import paths
from barnabas.metadata.znodes.topics import encode_partition_state
from barnabas.topic_partition import TopicPartition
from tests.unit.controller.cluster import World, controlling


async def elect_by_itself(world: World) -> None:
    world.controller._events.put(AutoPreferredReplicaLeaderElection())
    await world.settle()


def leaders(world: World) -> list[int]:
    return [world.state("T", number).leader for number in range(4)]


def in_sync_again(world: World, number: int, broker_id: int) -> None:
    """As the leader would propose: the broker has caught up."""
    state = world.state("T", number)
    larger = replace(state, isr=(*state.isr, broker_id))
    world.set(paths.topic_partition_state("T", number), encode_partition_state(larger))
    context = world.controller.context
    assert context is not None
    partition = TopicPartition("T", number)
    known = context.leadership[partition]
    context.leadership[partition] = replace(known, isr=larger.isr, partition_epoch=known.partition_epoch + 1)


async def returned(world: World) -> None:
    """Broker 1 has been away and is back; broker 2 leads everything."""
    world.create_topic("T", {0: (1, 2), 1: (1, 2), 2: (2, 1), 3: (2, 1)})
    await world.settle()
    world.kill_broker(1)
    await world.settle()
    world.register_broker(1)
    await world.settle()
    assert leaders(world) == [2, 2, 2, 2]


async def test_a_broker_that_leads_too_little_leads_again_what_it_should() -> None:
    async with controlling(0, 1, 2) as world:
        await returned(world)
        for number in range(4):
            in_sync_again(world, number, 1)
        await elect_by_itself(world)
        assert leaders(world) == [1, 1, 2, 2]


async def test_what_is_not_in_sync_stays_where_it_is() -> None:
    async with controlling(0, 1, 2) as world:
        await returned(world)
        in_sync_again(world, 1, 1)
        await elect_by_itself(world)
        assert leaders(world) == [2, 1, 2, 2]


async def test_a_small_imbalance_is_left_alone() -> None:
    async with controlling(0, 1, 2, config=ControllerConfig(leader_imbalance_per_broker_percentage=100)) as world:
        await returned(world)
        for number in range(4):
            in_sync_again(world, number, 1)
        await elect_by_itself(world)
        assert leaders(world) == [2, 2, 2, 2]
