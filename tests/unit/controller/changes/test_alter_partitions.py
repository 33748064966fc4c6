"""AlterPartition: a proposed ISR is written and sent to all brokers, or rejected for its partition alone."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.controller.changes.reassignments import Reassignments
from barnabas.controller.steps import Steps
from barnabas.metadata import paths
from barnabas.metadata.znodes.topics import PartitionState, encode_partition_state
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from barnabas.topic_partition import TopicPartition
from barnabas.uuid import Uuid
from tests.unit.controller.cluster import World, controlling

T0 = TopicPartition("T", 0)
VERSION = 3


def epoch_of(world: World, broker_id: int) -> int:
    assert world.controller.context is not None
    return world.controller.context.live_brokers[broker_id].epoch


async def propose(
    world: World,
    topic_id: Uuid,
    isr: list[int],
    *,
    broker: int = 0,
    broker_epoch: int | None = None,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    replica_epochs: dict[int, int] | None = None,
) -> Any:
    epochs = replica_epochs or {}
    states = [
        BrokerState(broker_id, epochs.get(broker_id, epoch_of(world, broker_id) if broker_id in world.brokers else -1)) for broker_id in isr
    ]
    data = PartitionData(0, leader_epoch, new_isr_with_epochs=states, partition_epoch=partition_epoch)
    request = AlterPartitionRequest(
        broker, epoch_of(world, broker) if broker_epoch is None else broker_epoch, [TopicData(topic_id=topic_id, partitions=[data])]
    )
    return await world.controller.alter_partition(request, VERSION)


def error_of(response: Any) -> int:
    assert response.error_code == 0
    code: int = response.topics[0].partitions[0].error_code
    return code


async def test_a_set_that_is_taken_over_is_written_and_told_to_all() -> None:
    async with controlling(0, 1, 2) as world:
        topic_id = world.create_topic("T", {0: (0, 1, 2)})
        await world.settle()
        world.channel.take()
        response = await propose(world, topic_id, [0, 2])
        answer = response.topics[0].partitions[0]
        assert (answer.error_code, answer.isr, answer.leader_id, answer.leader_epoch, answer.partition_epoch) == (0, [0, 2], 0, 0, 1)
        assert world.state("T", 0) == PartitionState(0, 0, (0, 2), 1)
        assert world.channel.take() == [f"{number} UpdateMetadata brokers=0,1,2 T-0@0" for number in range(3)]


async def test_a_failure_after_the_isr_was_written_does_not_change_the_response(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(reassignments: Reassignments, partitions: object) -> Steps[None]:
        raise OSError("the reassignment cannot be completed")
        yield

    monkeypatch.setattr(Reassignments, "isr_changed", fail)
    async with controlling(0, 1) as world:
        topic_id = world.create_topic("T", {0: (0, 1)})
        await world.settle()
        assert error_of(await propose(world, topic_id, [0])) == 0


async def test_a_controller_that_has_shut_down_answers_that_it_is_not_the_controller() -> None:
    async with controlling(0, 1) as world:
        epoch = epoch_of(world, 0)
        await world.controller.shutdown()
        response = await world.controller.alter_partition(AlterPartitionRequest(0, epoch, []), VERSION)
        assert response.error_code == ErrorCode.NOT_CONTROLLER


async def test_the_same_once_more_is_answered_and_not_written() -> None:
    async with controlling(0, 1) as world:
        topic_id = world.create_topic("T", {0: (0, 1)})
        await world.settle()
        await propose(world, topic_id, [0])
        world.channel.take()
        response = await propose(world, topic_id, [0])  # the leader did not hear the answer, and asks with what it knew before
        assert response.topics[0].partitions[0].partition_epoch == 1
        assert world.channel.take() == []


async def test_a_broker_that_has_come_back_since_is_not_heard() -> None:
    async with controlling(0, 1) as world:
        topic_id = world.create_topic("T", {0: (0, 1)})
        await world.settle()
        response = await propose(world, topic_id, [0], broker_epoch=epoch_of(world, 0) - 1)
        assert response.error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("proposal", "error"),
    [
        ({"leader_epoch": 7}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 7}, ErrorCode.NOT_CONTROLLER),
        ({"broker": 1}, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
async def test_who_is_not_the_leader_or_knows_another_state_is_refused(proposal: dict[str, int], error: ErrorCode) -> None:
    async with controlling(0, 1) as world:
        topic_id = world.create_topic("T", {0: (0, 1)})
        await world.settle()
        assert error_of(await propose(world, topic_id, [0], **proposal)) == error  # type: ignore[arg-type]
        assert world.state("T", 0).isr == (0, 1)


async def test_a_write_whose_response_was_lost_counts_as_written() -> None:
    """The store's client writes again after a lost connection and gets BadVersion, because the first write was done."""
    async with controlling(0, 1, 2) as world:
        topic_id = world.create_topic("T", {0: (0, 1, 2)})
        await world.settle()
        world.set(paths.topic_partition_state("T", 0), encode_partition_state(PartitionState(0, 0, (0, 2), 1)))
        world.channel.take()
        response = await propose(world, topic_id, [0, 2])
        partition = response.topics[0].partitions[0]
        assert (partition.error_code, partition.isr, partition.partition_epoch) == (0, [0, 2], 1)
        assert world.channel.take() == [f"{number} UpdateMetadata brokers=0,1,2 T-0@0" for number in range(3)]
        assert error_of(await propose(world, topic_id, [0, 1, 2], partition_epoch=1)) == 0


@pytest.mark.parametrize("state", [PartitionState(0, 0, (0, 1), 1), PartitionState(0, 0, (0, 2), 2)])
async def test_what_another_has_written_is_not_taken_for_an_own_write(state: PartitionState) -> None:
    async with controlling(0, 1, 2) as world:
        topic_id = world.create_topic("T", {0: (0, 1, 2)})
        await world.settle()
        world.set(paths.topic_partition_state("T", 0), encode_partition_state(state))
        assert error_of(await propose(world, topic_id, [0, 2])) == ErrorCode.INVALID_UPDATE_VERSION


async def test_an_older_state_is_refused() -> None:
    async with controlling(0, 1, 2) as world:
        topic_id = world.create_topic("T", {0: (0, 1, 2)})
        await world.settle()
        await propose(world, topic_id, [0, 1])
        assert error_of(await propose(world, topic_id, [0, 2])) == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("isr", [[], [1], [0, 9]])
async def test_a_set_without_its_leader_or_with_a_stranger_is_refused(isr: list[int]) -> None:
    async with controlling(0, 1) as world:
        topic_id = world.create_topic("T", {0: (0, 1)})
        await world.settle()
        assert error_of(await propose(world, topic_id, isr)) == ErrorCode.INVALID_REQUEST


async def test_a_replica_whose_broker_is_gone_or_another_life_of_it_cannot_join() -> None:
    async with controlling(0, 1) as world:
        topic_id = world.create_topic("T", {0: (0, 1, 2)})
        await world.settle()
        assert error_of(await propose(world, topic_id, [0, 1, 2])) == ErrorCode.INELIGIBLE_REPLICA
        world.register_broker(2)
        await world.settle()
        stale = {2: epoch_of(world, 2) - 1}
        assert error_of(await propose(world, topic_id, [0, 1, 2], replica_epochs=stale)) == ErrorCode.INELIGIBLE_REPLICA
        assert error_of(await propose(world, topic_id, [0, 1, 2])) == 0


async def test_a_topic_that_is_not_known_is_an_error_of_its_own() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        assert error_of(await propose(world, Uuid(bytes(16)), [0])) == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_controller_that_is_none_says_so() -> None:
    async with controlling(0) as world:
        await world.controller.shutdown()
        response = await world.controller.alter_partition(AlterPartitionRequest(0), VERSION)
        assert response.error_code == ErrorCode.NOT_CONTROLLER
