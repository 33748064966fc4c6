"""Elections that an administrator requests: their outcomes, errors, and the requests to brokers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from barnabas.controller.elections import ElectionStrategy
from barnabas.errors import KafkaError
from barnabas.metadata import paths
from barnabas.metadata.tree import Create
from barnabas.metadata.znodes.admin import encode_preferred_replica_election
from barnabas.metadata.znodes.topics import NO_LEADER, RECOVERING, PartitionState, encode_partition_state
from barnabas.protocol.errors import ErrorCode
from barnabas.topic_partition import TopicPartition
from tests.unit.controller.cluster import World, controlling, done, turn_of_the_loop

PREFERRED, UNCLEAN = ElectionStrategy.PREFERRED, ElectionStrategy.OFFLINE_UNCLEAN
T0, T1, U0 = TopicPartition("T", 0), TopicPartition("T", 1), TopicPartition("U", 0)

# The texts are those of Kafka 4.2.
NOT_NEEDED = (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
NO_PREFERRED = (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
NO_ELIGIBLE = (ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available.")

Shown = dict[TopicPartition, int | tuple[int, str]]


def shown(outcomes: Mapping[TopicPartition, int | KafkaError]) -> Shown:
    return {
        partition: (outcome.code, str(outcome)) if isinstance(outcome, KafkaError) else outcome for partition, outcome in outcomes.items()
    }


async def elect(world: World, strategy: ElectionStrategy, *partitions: TopicPartition) -> Shown:
    world.channel.take()
    outcomes = shown(await world.controller.elect_leaders(partitions, strategy))
    await world.settle()
    return outcomes


async def led_by_the_second(world: World) -> None:
    """T-0 is led by broker 0 though broker 1 is the preferred one, alive and in sync."""
    world.create_topic("T", {0: (1, 0)})
    await world.settle()
    world.kill_broker(1)
    await world.settle()
    world.register_broker(1)
    await world.settle()
    state = world.state("T", 0)
    assert (state.leader, state.isr) == (0, (0,))
    caught_up = PartitionState(0, state.leader_epoch, (0, 1), state.controller_epoch)
    world.set(paths.topic_partition_state("T", 0), encode_partition_state(caught_up))


async def test_the_preferred_replica_leads_again_and_all_are_told() -> None:
    async with controlling(0, 1) as world:
        await led_by_the_second(world)
        epoch = world.state("T", 0).leader_epoch
        assert await elect(world, PREFERRED, T0) == {T0: 1}
        state = world.state("T", 0)
        assert (state.leader, state.isr, state.leader_epoch) == (1, (0, 1), epoch + 1)
        assert world.channel.metadata(0)[T0].leader == world.channel.metadata(1)[T0].leader == 1
        assert world.channel.leader_and_isr(0)[T0].leader == world.channel.leader_and_isr(1)[T0].leader == 1


@pytest.mark.parametrize("strategy", [PREFERRED, UNCLEAN])
async def test_a_partition_that_is_well_led_is_left_alone(strategy: ElectionStrategy) -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1, 0)})
        await world.settle()
        assert await elect(world, strategy, T0, T0) == {T0: NOT_NEEDED}
        assert world.channel.take() == []


async def test_an_unclean_election_does_not_move_a_living_leader() -> None:
    async with controlling(0, 1) as world:
        await led_by_the_second(world)
        assert await elect(world, UNCLEAN, T0) == {T0: NOT_NEEDED}
        assert world.state("T", 0).leader == 0


async def test_a_preferred_replica_that_is_not_in_sync_is_not_elected() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1, 0)})
        await world.settle()
        world.kill_broker(1)
        await world.settle()
        world.register_broker(1)
        await world.settle()
        assert await elect(world, PREFERRED, T0) == {T0: NO_PREFERRED}
        assert world.state("T", 0).leader == 0


async def test_a_preferred_replica_that_is_dead_is_not_elected() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1, 0)})
        await world.settle()
        world.kill_broker(1)
        await world.settle()
        assert await elect(world, PREFERRED, T0) == {T0: NO_PREFERRED}


async def test_an_unclean_election_takes_who_lives_though_it_was_not_in_sync() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (1, 2)})
        await world.settle()
        world.kill_broker(2)
        await world.settle()
        world.kill_broker(1)
        await world.settle()
        world.register_broker(2)
        await world.settle()
        assert world.state("T", 0).leader == NO_LEADER
        assert await elect(world, UNCLEAN, T0) == {T0: 2}
        state = world.state("T", 0)
        assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), RECOVERING)


async def test_where_nobody_lives_there_is_no_leader_to_elect() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1,)})
        await world.settle()
        world.kill_broker(1)
        await world.settle()
        assert await elect(world, UNCLEAN, T0) == {T0: NO_ELIGIBLE}


async def test_a_partition_that_never_had_a_leader_has_none_to_elect_either() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (1,)})
        await world.settle()
        assert await elect(world, UNCLEAN, T0) == {T0: NO_ELIGIBLE}


async def test_what_is_not_there_is_unknown() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        nowhere = TopicPartition("nowhere", 0)
        assert await elect(world, PREFERRED, nowhere, T1) == {
            nowhere: (unknown, "No such topic as nowhere"),
            T1: (unknown, "No such partition as T-1"),
        }


async def test_a_topic_that_is_being_deleted_gets_no_leaders() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1, 0)})
        await world.settle()
        world.channel.silent = {0, 1}  # nobody says that it has deleted anything
        world.mark_for_deletion("T")
        await world.settle()
        assert await elect(world, PREFERRED, T0) == {T0: (ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")}


async def test_one_partition_that_cannot_be_elected_does_not_hold_up_the_others() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("U", {0: (2, 0)})
        await led_by_the_second(world)
        world.kill_broker(2)
        await world.settle()
        assert await elect(world, PREFERRED, U0, T0) == {U0: NO_PREFERRED, T0: 1}


async def test_a_broker_that_is_not_the_controller_elects_nobody() -> None:
    async with controlling(0, 1) as world:
        await led_by_the_second(world)
        world.set(paths.CONTROLLER, b'{"version":2,"brokerid":1,"timestamp":"1","kraftControllerEpoch":-1}')
        await world.settle()
        assert await elect(world, PREFERRED, T0) == {}
        assert world.state("T", 0).leader == 0


async def test_an_election_that_waits_when_the_controller_stops_comes_to_nothing() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        await world.controller.shutdown()
        await turn_of_the_loop()
        assert await world.controller.elect_leaders([T0], PREFERRED) == {}


async def test_an_unclean_election_warns_of_data_loss(caplog: pytest.LogCaptureFixture) -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (1, 2)})
        await world.settle()
        world.kill_broker(2)
        await world.settle()
        world.kill_broker(1)
        await world.settle()
        world.register_broker(2)
        await world.settle()
        await elect(world, UNCLEAN, T0)
    assert (
        "[PartitionStateMachine controllerId=0] No broker in ISR is alive for T-0. Elect leader 2 from live brokers 2. "
        "There's potential data loss."
    ) in caplog.messages


async def test_preferred_elections_of_a_topic_that_is_being_deleted_are_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1, 0)})
        await world.settle()
        world.channel.silent = {0, 1}
        world.mark_for_deletion("T")
        await world.settle()
        done(world.admin.handle_now([Create(paths.PREFERRED_REPLICA_ELECTION, encode_preferred_replica_election([T0]))]))
        await world.settle()
    assert "Skipping preferred replica election for partitions T-0 since the respective topics are being deleted" in caplog.messages
