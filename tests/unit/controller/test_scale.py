"""A thousand topics of ten partitions: the work grows with the size of a change. With its square, no test would meet its deadline."""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.controller.steps import ITEMS_AT_ONCE, in_turns
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
        requests = world.channel.leader_and_isr(0)
        assert len(requests) == 10 * TOPICS
        assert not any(state.is_new for state in requests.values())
        assert len(world.channel.sent) == 3  # metadata of brokers, then all partitions in one request, then their metadata in one
        mark_all(world)
        await world.settle()
        assert not world.exists(paths.topic("topic-0"))
        assert not world.exists(paths.delete_topic(f"topic-{TOPICS - 1}"))
        world.tree.close_now()


def test_what_goes_through_thousands_lets_others_have_their_turn() -> None:
    seen: list[int] = []
    turns = [len(seen) for requests in in_turns(range(3 * ITEMS_AT_ONCE + 1), seen.append) if not requests]
    assert turns == [ITEMS_AT_ONCE, 2 * ITEMS_AT_ONCE, 3 * ITEMS_AT_ONCE]
    assert seen == list(range(3 * ITEMS_AT_ONCE + 1))


async def test_while_thousands_of_partitions_are_created_others_have_their_turn() -> None:
    async with controlling(0) as world:
        create_all(world)
        turns = 0
        settled = asyncio.ensure_future(world.settle())
        while not settled.done():
            await asyncio.sleep(0)
            turns += 1
        assert len(world.channel.leader_and_isr(0)) == 10 * TOPICS
        assert turns > 5 * 10 * TOPICS / ITEMS_AT_ONCE
