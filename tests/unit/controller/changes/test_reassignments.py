"""Partition reassignment: the znodes on the way, the requests to brokers, and the rejected requests."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.metadata import paths
from barnabas.metadata.znodes.admin import decode_reassignment, encode_preferred_replica_election, encode_reassignment
from barnabas.metadata.znodes.topics import (
    PartitionState,
    ReplicaAssignment,
    TopicAssignment,
    decode_topic,
    encode_partition_state,
    encode_topic,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from barnabas.topic_partition import TopicPartition
from tests.unit.controller.cluster import World, controlling

T0, T1 = TopicPartition("T", 0), TopicPartition("T", 1)


async def alter(
    world: World, partition: TopicPartition, replicas: Sequence[int] | None, *, same_size: bool = False
) -> tuple[int, str] | None:
    """Why not, if so."""
    world.channel.take()
    error = (await world.controller.alter_reassignments({partition: replicas}, not same_size))[partition]
    await world.settle()
    return None if error is None else (error.code, str(error))


def assignment(world: World, partition: int = 0) -> ReplicaAssignment:
    return decode_topic("T", world.data(paths.topic("T"))).partitions[partition]


async def in_sync(world: World, *isr: int) -> None:
    """The leader of T-0 proposes these in-sync replicas, and has its way."""
    state, context = world.state("T", 0), world.controller.context
    assert context is not None
    epochs = [BrokerState(broker_id, context.live_brokers[broker_id].epoch) for broker_id in isr]
    proposal = PartitionData(0, state.leader_epoch, [], epochs, 0, world.version(paths.topic_partition_state("T", 0)))
    leader = context.live_brokers[state.leader]
    request = AlterPartitionRequest(state.leader, leader.epoch, [TopicData("", context.topic_ids["T"], [proposal])])
    response = await world.controller.alter_partition(request, 3)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
    await world.settle()


async def test_a_reassignment_adds_the_new_replicas_first() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        epoch = world.state("T", 0).leader_epoch
        assert await alter(world, T0, [1, 2]) is None
        assert assignment(world) == ReplicaAssignment((1, 2, 0), (2,), (0,))
        assert world.state("T", 0).leader_epoch == epoch + 1
        sent = world.channel.leader_and_isr(2)[T0]
        assert (sent.is_new, sent.leader, sent.replicas, sent.adding_replicas, sent.removing_replicas) == (True, 0, [1, 2, 0], [2], [0])
        assert world.channel.leader_and_isr(0)[T0].leader_epoch == epoch + 1


async def test_a_reassignment_ends_when_the_last_target_is_in_sync() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        await alter(world, T0, [1, 2])
        await in_sync(world, 0, 1, 2)
        assert assignment(world) == ReplicaAssignment((1, 2))
        state = world.state("T", 0)
        assert (state.leader, state.isr) == (1, (1, 2))
        sent = world.channel.take()
        assert "0 StopReplica T-0 delete" in sent
        assert [line for line in sent if "UpdateMetadata" in line][-1].endswith("T-0@1")


async def test_a_leader_that_stays_gets_a_new_epoch() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        await alter(world, T0, [0, 2])
        await in_sync(world, 0, 1, 2)
        state = world.state("T", 0)
        assert (state.leader, state.isr) == (0, (0, 2))
        assert world.channel.leader_and_isr(2)[T0].leader_epoch == state.leader_epoch


async def test_the_same_replicas_in_another_order_are_through_at_once() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        assert await alter(world, T0, [1, 0]) is None
        assert assignment(world) == ReplicaAssignment((1, 0))
        assert world.state("T", 0).leader == 0


async def test_fewer_replicas_are_through_at_once() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        assert await alter(world, T0, [1]) is None
        assert assignment(world) == ReplicaAssignment((1,))
        assert (world.state("T", 0).leader, world.state("T", 0).isr) == (1, (1,))


async def test_a_reassignment_is_taken_back() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        await alter(world, T0, [1, 2])
        assert await alter(world, T0, None) is None
        assert assignment(world) == ReplicaAssignment((1, 0))  # nothing tells in which order they were, in Kafka neither
        assert "2 StopReplica T-0 delete" in world.channel.take()


async def test_the_last_reassignment_counts() -> None:
    async with controlling(0, 1, 2, 3) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        await alter(world, T0, [1, 2])
        await alter(world, T0, [1, 3])
        assert assignment(world) == ReplicaAssignment((1, 3, 0), (3,), (0,))
        assert "2 StopReplica T-0 delete" in world.channel.take()


@pytest.mark.parametrize(
    "replicas, code, text",
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list."),
        ((1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes the broker 1 more than once."),
        (
            (0, 7),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ""),
    ],
)
async def test_what_cannot_be_is_refused(replicas: Sequence[int] | None, code: int, text: str) -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        assert await alter(world, T0, replicas) == (code, text)
        assert world.channel.take() == []
        assert assignment(world) == ReplicaAssignment((0,))


async def test_partitions_that_do_not_exist_are_unknown() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await alter(world, T1, [0]) == (unknown, "Unable to find partition T:1.")
        assert await alter(world, TopicPartition("U", 0), [0]) == (unknown, "Unable to find a topic named U.")


async def test_the_replication_factor_changes_only_where_it_may() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        refused = (ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor is changed from 1 to 2")
        assert await alter(world, T0, [0, 1], same_size=True) == refused
        assert await alter(world, T0, [1], same_size=True) is None


async def test_the_next_controller_goes_on_with_it() -> None:
    def prepare(world: World) -> None:
        topic_id = world.create_topic("T", {0: (0, 1)})
        moving = TopicAssignment({0: ReplicaAssignment((1, 2, 0), (2,), (0,))}, topic_id)
        world.set(paths.topic("T"), encode_topic(moving))
        world.set(paths.topic_partitions("T"), None)
        world.set(paths.topic_partition("T", 0), None)
        world.set(paths.topic_partition_state("T", 0), encode_partition_state(PartitionState(0, 3, (0, 1, 2), 0)))

    async with controlling(0, 1, 2, before=prepare) as world:
        assert assignment(world) == ReplicaAssignment((1, 2))
        assert (world.state("T", 0).leader, world.state("T", 0).isr) == (1, (1, 2))


async def test_a_broker_that_comes_back_is_told_of_the_reassignment_that_waits_for_it() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        await alter(world, T0, [1, 2])
        world.kill_broker(2)
        await world.settle()
        world.channel.take()
        world.register_broker(2)
        await world.settle()
        assert world.channel.leader_and_isr(2)[T0].adding_replicas == [2]
        await in_sync(world, 0, 1, 2)
        assert assignment(world) == ReplicaAssignment((1, 2))


# -- the nodes that tools of old write


async def test_a_reassignment_may_be_asked_for_by_its_node_which_goes_when_it_is_done() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        world.set(paths.REASSIGN_PARTITIONS, encode_reassignment({T0: (1, 2)}))
        await world.settle()
        assert assignment(world) == ReplicaAssignment((1, 2, 0), (2,), (0,))
        assert decode_reassignment(world.data(paths.REASSIGN_PARTITIONS)) == {T0: (1, 2)}
        await in_sync(world, 0, 1, 2)
        assert not world.exists(paths.REASSIGN_PARTITIONS)
        world.set(paths.REASSIGN_PARTITIONS, encode_reassignment({T0: (2, 1)}))
        await world.settle()
        assert assignment(world) == ReplicaAssignment((2, 1))


async def test_what_cannot_be_reassigned_is_removed_from_the_node() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        world.set(paths.REASSIGN_PARTITIONS, encode_reassignment({T0: (7,), T1: (0,)}))
        await world.settle()
        assert not world.exists(paths.REASSIGN_PARTITIONS)
        assert assignment(world) == ReplicaAssignment((0,))


async def test_preferred_leaders_may_be_asked_for_by_their_node() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        await alter(world, T0, [1, 0])
        for _ in range(2):
            world.set(paths.PREFERRED_REPLICA_ELECTION, encode_preferred_replica_election([T0]))
            await world.settle()
            assert world.state("T", 0).leader == 1
            assert not world.exists(paths.PREFERRED_REPLICA_ELECTION)


async def test_the_progress_of_a_reassignment_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "barnabas.controller.changes.reassignments")
    async with controlling(0, 1, 2, 3) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        await alter(world, T0, [1, 2, 3])
        await in_sync(world, 0, 1, 2)
        await in_sync(world, 0, 1, 2, 3)
    of_t0 = "replicas have caught up with the leader for partition T-0 being reassigned."
    progress = [record.getMessage() for record in caplog.records if of_t0 in record.getMessage()]
    assert progress == [
        f"2/3 {of_t0} Replica(s) 3 still need to catch up",
        f"3/3 {of_t0} Resuming partition reassignment",
    ]
