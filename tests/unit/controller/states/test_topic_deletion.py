"""Topic deletion, from the mark to the last znode, with brokers that respond, reject, do not respond, or are down."""

from __future__ import annotations

from barnabas.controller.context import ControllerContext
from barnabas.controller.events import TopicDeletion
from barnabas.metadata import paths
from barnabas.metadata.znodes.topics import NO_LEADER, PartitionState, ReplicaAssignment, TopicAssignment, decode_topic, encode_topic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.stop_replica_request import StopReplicaRequest
from barnabas.topic_partition import TopicPartition
from tests.unit.controller.cluster import World, controlling

T0 = TopicPartition("T", 0)


async def test_a_deleted_topic_leaves_nothing_behind() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,), 1: (0,)}, {"retention.ms": "1"})
        await world.settle()
        world.mark_for_deletion("T")
        await world.settle()
        for path in (paths.topic("T"), paths.config_entity("topics/T"), paths.delete_topic("T")):
            assert not world.exists(path)
        known = context(world)
        assert not known.all_topics | known.topic_ids.keys() | known.assignments.keys() | known.topics_with_deletion_started
        assert not known.partition_states.keys() | known.leadership.keys() | known.topics_to_be_deleted.keys()
        assert not known.replica_states


async def test_a_deleted_topic_is_not_watched_any_more() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        world.mark_for_deletion("T")
        await world.settle()
        assert paths.topic("T") not in world.client._change_handlers


async def test_the_brokers_hear_first_that_the_topic_goes_then_to_stop_then_to_delete() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        world.channel.take()
        world.mark_for_deletion("T")
        await world.settle()
        assert world.channel.take() == [
            "0 UpdateMetadata brokers=0,1 T-0@-2",
            "1 UpdateMetadata brokers=0,1 T-0@-2",
            "0 StopReplica T-0",
            "1 StopReplica T-0",
            "0 StopReplica T-0 delete",
            "1 StopReplica T-0 delete",
        ]


async def test_a_stopped_replica_of_a_deleted_topic_is_stopped_whatever_its_leader_epoch() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        world.mark_for_deletion("T")
        await world.settle()
        requests = [request for _, request in world.channel.sent if isinstance(request, StopReplicaRequest)]
        assert [request.topic_states[0].partition_states[0].leader_epoch for request in requests] == [-2, -2]


async def test_a_mark_for_a_topic_that_is_not_there_is_wiped_away() -> None:
    async with controlling(0) as world:
        world.mark_for_deletion("nothing")
        await world.settle()
        assert not world.exists(paths.delete_topic("nothing"))


async def test_a_topic_can_be_made_again_under_its_name() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        world.mark_for_deletion("T")
        await world.settle()
        topic_id = world.create_topic("T", {0: (0,), 1: (0,)})
        await world.settle()
        assert context(world).topic_ids == {"T": topic_id}
        assert world.state("T", 1) == PartitionState(0, 0, (0,), 1)
        assert world.channel.leader_and_isr(0)[T0].is_new


async def test_a_topic_waits_for_a_broker_that_is_down() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        world.kill_broker(1)
        await world.settle()
        world.mark_for_deletion("T")
        await world.settle()
        assert world.exists(paths.delete_topic("T"))
        assert world.state("T", 0) == PartitionState(NO_LEADER, 2, (0,), 1)
        assert context(world).topics_ineligible_for_deletion == {"T"}
        world.register_broker(1)
        await world.settle()
        assert not world.exists(paths.topic("T"))
        assert not world.exists(paths.delete_topic("T"))


async def test_a_broker_that_dies_before_it_answers_holds_the_topic_up_until_it_is_back() -> None:
    async with controlling(0, 1) as world:
        world.create_topic("T", {0: (0, 1)})
        await world.settle()
        world.channel.silent.add(1)
        world.mark_for_deletion("T")
        await world.settle()
        assert world.exists(paths.topic("T"))
        world.kill_broker(1)
        await world.settle()
        world.channel.silent.clear()
        world.channel.take()
        world.register_broker(1)
        await world.settle()
        assert not world.exists(paths.topic("T"))
        assert "0 StopReplica T-0 delete" not in world.channel.take()  # broker 0 had deleted its own already


async def test_a_replica_that_could_not_be_deleted_is_tried_again_when_its_broker_is_back() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        world.channel.errors[0, T0] = ErrorCode.KAFKA_STORAGE_ERROR
        world.mark_for_deletion("T")
        await world.settle()
        assert world.exists(paths.topic("T"))
        assert context(world).topics_ineligible_for_deletion == {"T"}
        world.channel.errors.clear()
        world.kill_broker(0)
        world.register_broker(0)
        await world.settle()
        assert not world.exists(paths.topic("T"))


async def test_the_next_term_goes_on_where_the_last_stopped() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        world.channel.silent.add(0)
        world.mark_for_deletion("T")
        await world.settle()
        world.channel.silent.clear()
        world.delete(paths.CONTROLLER)
        await world.settle()
        assert world.controller.epoch == 2
        assert not world.exists(paths.topic("T"))


async def test_partitions_added_to_a_topic_that_goes_are_taken_back() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        world.channel.silent.add(0)
        world.mark_for_deletion("T")
        await world.settle()
        world.add_partitions("T", {1: (0,)})
        await world.settle()
        assert decode_topic("T", world.data(paths.topic("T"))).partitions == {0: ReplicaAssignment((0,))}


async def test_a_topic_under_reassignment_is_not_deleted_yet() -> None:
    def prepare(world: World) -> None:
        world.create_topic("T", {0: (0, 1)})
        reassigned = TopicAssignment(
            {0: ReplicaAssignment((0, 1, 2), adding_replicas=(2,))}, decode_topic("T", world.data(paths.topic("T"))).topic_id
        )
        world.set(paths.topic("T"), encode_topic(reassigned))

    async with controlling(0, 1, before=prepare) as world:
        world.mark_for_deletion("T")
        await world.settle()
        assert context(world).topics_ineligible_for_deletion == {"T"}
        assert not any("StopReplica" in request for request in world.channel.take())


async def test_a_mark_seen_twice_starts_one_deletion() -> None:
    async with controlling(0) as world:
        world.create_topic("T", {0: (0,)})
        await world.settle()
        world.channel.silent.add(0)
        world.mark_for_deletion("T")
        await world.settle()
        world.channel.take()
        world.controller._events.put(TopicDeletion())
        await world.settle()
        assert world.channel.take() == []


def context(world: World) -> ControllerContext:
    context = world.controller.context
    assert context is not None
    return context
