"""Brokers that start, stop, restart, change their listeners or lose log directories."""

from __future__ import annotations

from barnabas.controller.config import ControllerConfig
from barnabas.controller.context import ControllerContext, ReplicaStatus
from barnabas.endpoint import EndPoint
from barnabas.metadata import paths
from barnabas.metadata.tree import Multi, SetData
from barnabas.metadata.znodes import admin, cluster, configs
from barnabas.metadata.znodes.topics import NO_LEADER, RECOVERING, PartitionState, encode_partition_state
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.update_metadata_request import UpdateMetadataRequest
from barnabas.topic_partition import TopicPartition
from tests.unit.controller.cluster import World, controlling

T0 = TopicPartition("T", 0)
LOG_DIR_EVENT = f"{paths.LOG_DIR_EVENT_NOTIFICATION}/{paths.LOG_DIR_EVENT_PREFIX}0000000000"


async def test_a_new_broker_learns_everything_and_the_others_learn_of_it() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        world.channel.take()
        world.register_broker(1)
        await world.settle()
        assert world.channel.take() == [
            "0 UpdateMetadata brokers=0,1",
            "1 UpdateMetadata brokers=0,1 T-0@0",
            "1 LeaderAndIsr T-0@0/0",
            "0 UpdateMetadata brokers=0,1 T-0@0",
            "1 UpdateMetadata brokers=0,1 T-0@0",
        ]


async def test_when_the_leader_dies_the_next_in_sync_leads() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1, 0)})
        await world.settle()
        world.channel.take()
        world.kill_broker(1)
        await world.settle()
        assert world.state("T", 0) == PartitionState(0, 1, (0,), 1)
        assert world.channel.take() == [
            "0 LeaderAndIsr T-0@0/1",
            "0 UpdateMetadata brokers=0 T-0@0",
            "0 LeaderAndIsr T-0@0/1",
            "0 UpdateMetadata brokers=0 T-0@0",
        ]


async def test_when_a_follower_dies_it_leaves_the_isr() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        world.kill_broker(1)
        await world.settle()
        assert world.state("T", 0) == PartitionState(0, 1, (0,), 1)
        assert world.channel.leader_and_isr(0)[T0].isr == [0]
        assert world.channel.metadata(0)[T0].offline_replicas == [1]


async def test_the_last_of_the_isr_stays_in_it_and_nobody_leads() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1,)})
        await world.settle()
        world.kill_broker(1)
        await world.settle()
        assert world.state("T", 0) == PartitionState(NO_LEADER, 1, (1,), 1)
        assert context(world).offline_partition_count == 1


async def test_the_last_of_the_isr_leads_again_when_it_is_back() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1,)})
        await world.settle()
        world.kill_broker(1)
        await world.settle()
        world.register_broker(1)
        await world.settle()
        assert world.state("T", 0) == PartitionState(1, 2, (1,), 1)
        assert context(world).offline_partition_count == 0


async def test_a_replica_out_of_sync_does_not_lead() -> None:
    async with controlling(0, 1) as world:
        await lose_the_isr(world)
        assert world.state("T", 0).leader == NO_LEADER


async def test_a_replica_out_of_sync_leads_where_the_topic_allows_it_and_is_then_recovering() -> None:
    async with controlling(0, 1) as world:
        await lose_the_isr(world, {"unclean.leader.election.enable": "true"})
        assert world.state("T", 0) == PartitionState(0, 2, (0,), 1, RECOVERING)
        assert world.channel.leader_and_isr(0)[T0].leader_recovery_state == RECOVERING
        assert context(world).unclean_leader_elections == 1


async def test_a_topic_may_forbid_what_the_broker_allows() -> None:
    async with controlling(0, 1, config=ControllerConfig(unclean_leader_election_enable=True)) as world:
        await lose_the_isr(world, {"unclean.leader.election.enable": "false"})
        assert world.state("T", 0).leader == NO_LEADER


async def test_a_topic_that_begins_to_allow_unclean_leaders_gets_one() -> None:
    async with controlling(0, 1) as world:
        await lose_the_isr(world)
        world.set(paths.config_entity("topics/T"), configs.encode_config({"unclean.leader.election.enable": "true"}))
        world.controller.enable_unclean_leader_election("T")
        await world.settle()
        assert world.state("T", 0).leader == 0


async def test_a_broker_that_bounced_is_treated_as_gone_and_come() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1, 0)})
        await world.settle()
        before = context(world).live_brokers[1].epoch
        world.channel.take()
        world.channel.log.clear()
        world.kill_broker(1)
        world.register_broker(1)  # before the controller could look
        await world.settle()
        assert context(world).live_brokers[1].epoch > before
        assert world.channel.log == ["-1", "+1"]
        assert world.state("T", 0) == PartitionState(0, 1, (0,), 1)
        assert world.channel.leader_and_isr(1)[T0].leader == 0


async def test_requests_to_a_bounced_broker_carry_its_new_epoch() -> None:
    async with controlling(0, 1) as world:
        world.kill_broker(1)
        world.register_broker(1)
        await world.settle()
        last = [request for to, request in world.channel.sent if to == 1 and isinstance(request, UpdateMetadataRequest)][-1]
        assert last.broker_epoch == context(world).live_brokers[1].epoch


async def test_a_broker_that_held_nothing_dies_and_the_others_are_told() -> None:
    async with controlling(0, 1) as world:
        world.channel.take()
        world.kill_broker(1)
        await world.settle()
        assert world.channel.take() == ["0 UpdateMetadata brokers=0"]


async def test_other_listeners_of_a_broker_are_told_to_all() -> None:
    async with controlling(0, 1) as world:
        world.channel.take()
        moved = cluster.BrokerRegistration((EndPoint("PLAINTEXT", "elsewhere", 1),), 1)
        world.brokers[1].handle_now([SetData(paths.broker_id(1), cluster.encode_broker(moved))])
        await world.settle()
        requests = [
            (to, request.live_brokers[1].endpoints[0].host)
            for to, request in world.channel.sent
            if isinstance(request, UpdateMetadataRequest)
        ]
        assert requests == [(0, "elsewhere"), (1, "elsewhere")]


async def test_a_broker_with_a_failed_disk_is_asked_and_its_lost_replicas_go_offline() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (1, 0), 1: (1, 0)})
        await world.settle()
        world.channel.errors[1, T0] = ErrorCode.KAFKA_STORAGE_ERROR
        world.set(LOG_DIR_EVENT, admin.encode_log_dir_event(1))
        await world.settle()
        assert not world.exists(LOG_DIR_EVENT)
        assert context(world).replicas_on_offline_dirs[1] == {T0}
        assert world.state("T", 0) == PartitionState(0, 1, (0,), 1)
        assert world.state("T", 1).leader == 1
        assert world.channel.metadata(0)[T0].offline_replicas == [1]


async def test_a_replica_whose_disk_is_back_is_online_again() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        world.channel.errors[1, T0] = ErrorCode.KAFKA_STORAGE_ERROR
        world.set(LOG_DIR_EVENT, admin.encode_log_dir_event(1))
        await world.settle()
        world.channel.errors.clear()
        world.kill_broker(1)
        world.register_broker(1)
        await world.settle()
        assert not context(world).replicas_on_offline_dirs[1]
        assert ReplicaStatus.ONLINE in context(world).replica_states.values()


async def test_notifications_of_an_earlier_term_are_deleted_unread() -> None:
    def prepare(world: World) -> None:
        world.set(LOG_DIR_EVENT, b"not even json")

    async with controlling(0, before=prepare) as world:
        assert world.controller.is_active
        assert not world.exists(LOG_DIR_EVENT)


async def test_an_isr_that_a_leader_shrank_in_between_is_not_grown_again_when_a_follower_dies() -> None:
    """The state changes between the controller's reading and its writing: it reads again and decides on what is there then."""
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (0, 1, 2)})
        await world.settle()
        raced = race(world, PartitionState(0, 0, (0, 1), 1))
        world.kill_broker(1)
        await world.settle()
        assert raced == [True]
        assert world.state("T", 0) == PartitionState(0, 1, (0,), 1)


async def test_an_isr_that_a_leader_shrank_in_between_is_not_grown_again_when_that_leader_dies() -> None:
    async with controlling(0, 1, 2) as world:
        world.create_topic("T", {0: (1, 2, 0)})
        await world.settle()
        raced = race(world, PartitionState(1, 0, (1, 0), 1))
        world.kill_broker(1)
        await world.settle()
        assert raced == [True]
        assert world.state("T", 0) == PartitionState(0, 1, (0,), 1)


async def test_other_listeners_of_a_broker_that_came_later_are_told_to_all() -> None:
    async with controlling(0) as world:
        world.register_broker(1)
        await world.settle()
        world.channel.take()
        moved = cluster.BrokerRegistration((EndPoint("PLAINTEXT", "elsewhere", 1),), 1)
        world.brokers[1].handle_now([SetData(paths.broker_id(1), cluster.encode_broker(moved))])
        await world.settle()
        assert world.channel.take() == ["0 UpdateMetadata brokers=0,1", "1 UpdateMetadata brokers=0,1"]


async def test_what_a_broker_answers_to_an_earlier_term_is_not_heard() -> None:
    async with controlling(0, 1) as world:
        world.channel.silent.add(1)
        world.channel.errors[1, T0] = ErrorCode.KAFKA_STORAGE_ERROR
        world.create_topic("T", {0: (1, 0)})
        await world.settle()
        world.delete(paths.CONTROLLER)
        await world.settle()
        late = world.channel.unanswered[0]
        late()
        await world.settle()
        assert world.controller.epoch == 2
        assert world.state("T", 0).leader == 1


def race(world: World, written: PartitionState) -> list[bool]:
    """Before the controller's next write of T-0's state, its leader writes it. Gives where it is noted that this happened."""
    handle, raced = world.client.handle, list[bool]()

    async def handle_second(requests):  # type: ignore[no-untyped-def]
        if not raced and any(isinstance(request, Multi) and isinstance(request.operations[1], SetData) for request in requests):
            raced.append(True)
            world.set(paths.topic_partition_state("T", 0), encode_partition_state(written))
        return await handle(requests)

    world.client.handle = handle_second  # type: ignore[method-assign]
    return raced


async def lose_the_isr(world: World, config: dict[str, str] | None = None) -> None:
    """Broker 0 falls out of sync behind broker 1, which then dies."""
    world.create_topic("T", {0: (1, 0)}, config)
    await world.settle()
    world.kill_broker(0)
    await world.settle()
    world.register_broker(0)
    await world.settle()
    assert world.state("T", 0).isr == (1,)
    world.kill_broker(1)
    await world.settle()


def context(world: World) -> ControllerContext:
    context = world.controller.context
    assert context is not None
    return context
