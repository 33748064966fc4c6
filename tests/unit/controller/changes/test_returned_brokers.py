"""Brokers that restarted while there was no controller do not lead before brokers that did not restart."""

from __future__ import annotations

from barnabas.metadata import paths
from barnabas.metadata.znodes.topics import PartitionState, encode_partition_state
from tests.unit.controller.cluster import World, controlling


def led_by(world: World, leader: int, isr: tuple[int, ...]) -> None:
    """A topic as an earlier controller left it."""
    world.create_topic("T", {0: (1, 2, 3)})
    for path in (paths.topic_partitions("T"), paths.topic_partition("T", 0)):
        world.set(path, None)
    world.set(paths.topic_partition_state("T", 0), encode_partition_state(PartitionState(leader, 4, isr, 1)))


async def test_a_leader_that_came_back_leaves_the_isr_to_those_that_stayed() -> None:
    def before(world: World) -> None:
        led_by(world, 1, (1, 2, 3))
        world.kill_broker(1)
        world.register_broker(1)

    async with controlling(0, 1, 2, 3, before=before) as world:
        assert world.state("T", 0) == PartitionState(2, 5, (2, 3), 1)


async def test_a_follower_that_came_back_leaves_the_isr_and_the_leader_stays() -> None:
    def before(world: World) -> None:
        led_by(world, 1, (1, 2, 3))
        world.kill_broker(3)
        world.register_broker(3)

    async with controlling(0, 1, 2, 3, before=before) as world:
        assert world.state("T", 0) == PartitionState(1, 5, (1, 2), 1)


async def test_where_all_came_back_all_stay() -> None:
    def before(world: World) -> None:
        led_by(world, 1, (1, 2, 3))
        for broker_id in (1, 2, 3):
            world.kill_broker(broker_id)
            world.register_broker(broker_id)

    async with controlling(0, 1, 2, 3, before=before) as world:
        assert world.state("T", 0) == PartitionState(1, 4, (1, 2, 3), 1)


async def test_where_nobody_left_nothing_is_written() -> None:
    async with controlling(0, 1, 2, 3, before=lambda world: led_by(world, 2, (2, 1))) as world:
        assert world.state("T", 0) == PartitionState(2, 4, (2, 1), 1)
