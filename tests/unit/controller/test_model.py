"""After any history, the controller's context equals the context that a new controller reads from the metadata store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.controller.context import ControllerContext, PartitionStatus, ReplicaStatus
from barnabas.controller.states.partition_states import VALID_PREVIOUS_STATES as PARTITION_TABLE
from barnabas.controller.states.replica_states import VALID_PREVIOUS_STATES as REPLICA_TABLE
from barnabas.metadata import paths
from barnabas.metadata.znodes.topics import NO_LEADER
from tests.unit.controller.cluster import World, controlling

BROKERS = (0, 1, 2)
TOPICS = ("A", "B", "C")

replica_lists = st.permutations(BROKERS).flatmap(lambda order: st.integers(1, 3).map(lambda count: tuple(order[:count])))
happenings = st.one_of(
    st.tuples(st.just("start"), st.sampled_from(BROKERS)),
    st.tuples(st.just("stop"), st.sampled_from(BROKERS)),
    st.tuples(st.just("bounce"), st.sampled_from(BROKERS)),
    st.tuples(st.just("create"), st.sampled_from(TOPICS), st.lists(replica_lists, min_size=1, max_size=3)),
    st.tuples(st.just("grow"), st.sampled_from(TOPICS), replica_lists),
    st.tuples(st.just("delete"), st.sampled_from(TOPICS)),
    st.tuples(st.just("settle")),
)


@given(st.lists(happenings, max_size=25))
@settings(max_examples=150)
def test_a_controller_knows_what_a_new_one_would_read(story: Sequence[tuple[object, ...]]) -> None:
    asyncio.run(live_through(story))


async def live_through(story: Sequence[tuple[object, ...]]) -> None:
    async with controlling(0) as world:
        for happening in story:
            happen(world, *happening)
            if happening[0] == "settle":
                await world.settle()
        await world.settle()
        known = context(world)
        assert known.epoch == 1, "the controller failed and had to begin again"
        everybody_who_can_lead_leads(world, known)
        states_agree_with_what_they_stand_for(known)
        before = summary(known)
        world.delete(paths.CONTROLLER)
        await world.settle()
        assert context(world).epoch == 2
        assert summary(context(world)) == before


def happen(world: World, what: object, *details: object) -> None:
    match what, details:
        case "start", (int(broker_id),) if broker_id not in world.brokers:
            world.register_broker(broker_id)
        case "stop", (int(broker_id),) if broker_id in world.brokers:
            world.kill_broker(broker_id)
        case "bounce", (int(broker_id),) if broker_id in world.brokers:
            world.kill_broker(broker_id)
            world.register_broker(broker_id)
        case "create", (str(topic), list(assignment)) if not world.exists(paths.topic(topic)):
            world.create_topic(topic, dict(enumerate(assignment)))
        case "grow", (str(topic), tuple(replicas)) if world.exists(paths.topic(topic)) and not world.exists(paths.delete_topic(topic)):
            world.add_partitions(topic, {world.partition_count(topic): replicas})
        case "delete", (str(topic),) if world.exists(paths.topic(topic)):
            world.mark_for_deletion(topic)


def everybody_who_can_lead_leads(world: World, known: ControllerContext) -> None:
    for topic in TOPICS:
        if not world.exists(paths.topic(topic)) or world.exists(paths.delete_topic(topic)):
            continue
        for number in range(world.partition_count(topic)):
            if not world.exists(paths.topic_partition_state(topic, number)):
                continue
            state = world.state(topic, number)
            alive = [replica for replica in state.isr if replica in world.brokers]
            assert (state.leader in alive) if alive else (state.leader == NO_LEADER)
            assert alive == list(state.isr) or not alive


def states_agree_with_what_they_stand_for(known: ControllerContext) -> None:
    for partition, status in known.partition_states.items():
        state = known.leadership.get(partition)
        if partition.topic in known.topics_with_deletion_started:
            continue
        if status is PartitionStatus.ONLINE:
            assert state is not None
            assert known.is_replica_online(state.leader, partition)
        elif status is PartitionStatus.NEW:
            assert state is None
    offline = [partition for partition, status in known.partition_states.items() if status is PartitionStatus.OFFLINE]
    assert known.offline_partition_count == len(offline)


def summary(known: ControllerContext) -> dict[str, object]:
    """All but the epochs, which a new term may raise; the way in which a topic on its way out is waiting; and replicas on brokers that are
    down, which count as online, in Kafka too, when their partition is made while they are."""
    leaving = known.topics_to_be_deleted
    return {
        "brokers": dict(known.live_brokers),
        "topics": set(known.all_topics),
        "ids": dict(known.topic_ids),
        "assignments": {topic: dict(partitions) for topic, partitions in known.assignments.items()},
        "leaders": {partition: (state.leader, state.isr) for partition, state in known.leadership.items()},
        "partitions": {each: status for each, status in known.partition_states.items() if each.topic not in leaving},
        "replicas": {
            each: status
            for each, status in known.replica_states.items()
            if each.partition.topic not in leaving and each.replica in known.live_brokers
        },
        "leaving": set(leaving),
    }


def test_every_state_can_be_left_and_reached_by_the_tables() -> None:
    for states, table in ((PartitionStatus, PARTITION_TABLE), (ReplicaStatus, REPLICA_TABLE)):
        assert set(table) == set(states)
        assert set().union(*table.values()) == set(states)


def context(world: World) -> ControllerContext:
    context = world.controller.context
    assert context is not None
    return context
