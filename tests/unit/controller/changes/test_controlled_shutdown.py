"""ControlledShutdown: other brokers lead, the ISRs shrink, and the response names partitions that no other broker can lead."""

from __future__ import annotations

from barnabas.metadata.znodes.topics import PartitionState
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition
from tests.unit.controller.cluster import World, controlling


def epoch_of(world: World, broker_id: int) -> int:
    assert world.controller.context is not None
    return world.controller.context.live_brokers[broker_id].epoch


async def test_what_it_led_is_led_by_the_next_in_sync_and_it_hears_of_that() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (1, 2, 0)})
        await world.settle()
        world.channel.take()
        assert await world.controller.shut_down_broker(1, epoch_of(world, 1)) == []
        assert world.state("T", 0) == PartitionState(2, 1, (2, 0), 1)
        assert "1 LeaderAndIsr T-0@2/1" in world.channel.take()


async def test_what_it_followed_is_stopped_and_leaves_the_isr() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        world.channel.take()
        assert await world.controller.shut_down_broker(1, epoch_of(world, 1)) == []
        assert world.state("T", 0) == PartitionState(0, 1, (0,), 1)
        sent = world.channel.take()
        assert sent[0] == "1 StopReplica T-0"
        assert "0 LeaderAndIsr T-0@0/1" in sent


async def test_what_nobody_else_has_in_sync_is_named() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1, 0), 1: (1,)})
        await world.settle()
        world.kill_broker(0)
        await world.settle()
        assert await world.controller.shut_down_broker(1, epoch_of(world, 1)) == [TopicPartition("T", 0)]  # the other has one replica


async def test_a_broker_in_an_earlier_life_or_unknown_is_not_let_go() -> None:
    async with controlling(0, 1) as world:
        assert await world.controller.shut_down_broker(1, epoch_of(world, 1) - 1) is ErrorCode.STALE_BROKER_EPOCH
        assert await world.controller.shut_down_broker(7, 1) is ErrorCode.BROKER_NOT_AVAILABLE


async def test_a_controller_that_is_none_says_so() -> None:
    async with controlling(0) as world:
        await world.controller.shutdown()
        assert await world.controller.shut_down_broker(0, 1) is ErrorCode.NOT_CONTROLLER
