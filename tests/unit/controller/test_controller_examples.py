"""Examples of controller decisions from books and courses on Kafka, with their numbers."""

from __future__ import annotations

from dataclasses import replace

from barnabas.controller.events import AutoPreferredReplicaLeaderElection
from barnabas.metadata import paths
from barnabas.metadata.znodes.topics import encode_partition_state
from barnabas.topic_partition import TopicPartition
from tests.unit.controller.cluster import World, controlling

THREE_TIMES_THREE = {0: (0, 1, 2), 1: (1, 2, 0), 2: (2, 0, 1)}


def leaders(world: World) -> list[int]:
    return [world.state("T", number).leader for number in range(3)]


def in_sync(world: World, number: int, *brokers: int) -> None:
    """As the leader would propose: these brokers have caught up."""
    partition = TopicPartition("T", number)
    state = replace(world.state("T", number), isr=brokers)
    world.set(paths.topic_partition_state("T", number), encode_partition_state(state))
    context = world.controller.context
    assert context is not None
    known = context.leadership[partition]
    context.leadership[partition] = replace(known, isr=brokers, partition_epoch=known.partition_epoch + 1)


async def test_the_first_state_of_a_partition_is_the_one_that_is_printed_everywhere() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        state = world.data(paths.topic_partition_state("T", 0))
        assert state == b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'


async def test_a_leader_that_was_away_comes_back_as_a_follower() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (1, 2, 0), 1: (2, 0, 1), 2: (0, 1, 2)})
        await world.settle()
        assert leaders(world) == [1, 2, 0]
        world.kill_broker(2)
        await world.settle()
        world.register_broker(2)
        await world.settle()
        assert leaders(world) == [1, 0, 0]
        assert world.state("T", 1).isr == (0, 1)


async def test_after_two_of_three_were_away_the_third_leads_everything_until_leaders_are_rebalanced() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", THREE_TIMES_THREE)
        await world.settle()
        assert leaders(world) == [0, 1, 2]
        for away in (1, 2):
            world.kill_broker(away)
            await world.settle()
        for back in (1, 2):
            world.register_broker(back)
            await world.settle()
        assert leaders(world) == [0, 0, 0]
        for number in range(3):
            in_sync(world, number, 0, 1, 2)
        world.controller._events.put(AutoPreferredReplicaLeaderElection())
        await world.settle()
        assert leaders(world) == [0, 1, 2]


async def test_without_the_in_sync_replicas_a_partition_waits_unless_an_unclean_leader_is_allowed() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        world.create_topic("U", {0: (0, 1)}, {"unclean.leader.election.enable": "true"})
        await world.settle()
        world.kill_broker(1)
        await world.settle()
        world.kill_broker(0)
        await world.settle()
        world.register_broker(1)
        await world.settle()
        assert (world.state("T", 0).leader, world.state("T", 0).isr) == (-1, (0,))
        assert (world.state("U", 0).leader, world.state("U", 0).isr) == (1, (1,))


async def test_an_assignment_that_is_written_by_hand_may_leave_out_partitions() -> None:
    async with controlling(0, 1, 2) as world:
        by_hand = {10: (0,), 21: (1,), 33: (2,), 40: (0,)}
        world.create_topic("T", by_hand)
        await world.settle()
        assert {number: world.state("T", number).leader for number in by_hand} == {10: 0, 21: 1, 33: 2, 40: 0}
