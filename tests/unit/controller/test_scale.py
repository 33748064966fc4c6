"""A thousand topics of ten partitions: the work grows with what changes. With its square, no test would end before its deadline."""

from __future__ import annotations

from pathlib import Path

from barnabas.metadata import paths
from barnabas.metadata.embedded import open_embedded
from barnabas.metadata.tree import Create
from barnabas.metadata.znodes.topics import ReplicaAssignment, TopicAssignment, encode_topic
from barnabas.uuid import Uuid
from tests.unit.controller.cluster import World, controlling, done

TOPICS = 1000


def create_all(world: World) -> None:
    """In one commit: what the disk takes for a thousand is not the controller's doing."""
    partitions = {number: ReplicaAssignment((0,)) for number in range(10)}
    done(
        world.admin.handle_now(
            [
                Create(paths.topic(f"topic-{number}"), encode_topic(TopicAssignment(partitions, Uuid.random(world.random))))
                for number in range(TOPICS)
            ]
        )
    )


def mark_all(world: World) -> None:
    done(world.admin.handle_now([Create(paths.delete_topic(f"topic-{number}")) for number in range(TOPICS)]))


async def test_a_thousand_topics_are_created_loaded_and_deleted(tmp_path: Path) -> None:
    path = str(tmp_path / "tree.db")
    async with controlling(0, tree=open_embedded(path, lambda: 0)) as world:
        create_all(world)
        await world.settle()
        assert len(world.channel.leader_and_isr(0)) == 10 * TOPICS
        world.tree.close_now()
    async with controlling(0, tree=open_embedded(path, lambda: 0)) as world:
        told = world.channel.leader_and_isr(0)
        assert len(told) == 10 * TOPICS
        assert not any(state.is_new for state in told.values())
        assert len(world.channel.sent) == 3  # metadata of brokers, then all partitions in one request, then their metadata in one
        mark_all(world)
        await world.settle()
        assert not world.exists(paths.topic("topic-0"))
        assert not world.exists(paths.delete_topic(f"topic-{TOPICS - 1}"))
        world.tree.close_now()
