"""The initial metadata of a broker is complete with the first topics, or when the metadata store has none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from barnabas.broker.topics.initial_metadata import InitialMetadata
from barnabas.broker.topics.metadata_cache import MetadataCache
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree
from tests.unit.broker.handlers.asking import alive, topic, update

DEADLINE_S = 60
TURNS = 20  # of the loop: more than it takes to ask a tree in memory


@asynccontextmanager
async def joining(*topics_in_tree: str) -> AsyncIterator[tuple[InitialMetadata, MetadataCache]]:
    """Broker 0."""
    tree = TreeClient(LocalTree(now_ms=lambda: 0), lambda: None)
    await tree.connect()
    await tree.ensure_all([paths.TOPICS, *map(paths.topic, topics_in_tree)])
    cache = MetadataCache(0)
    initial_metadata = InitialMetadata(0, cache, tree)
    initial_metadata.start()
    yield initial_metadata, cache
    initial_metadata.close()
    await tree.close()


async def turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


def test_it_is_complete_with_the_first_topics() -> None:
    async def scenario() -> None:
        async with joining("t") as (initial_metadata, cache):
            cache.update(update(topic("t")))
            assert initial_metadata.is_complete

    asyncio.run(scenario())


def test_brokers_alone_are_not_enough_where_there_are_topics() -> None:
    async def scenario() -> None:
        async with joining("t") as (initial_metadata, cache):
            cache.update(update())
            await turns()
            assert not initial_metadata.is_complete
            cache.update(update(topic("t")))
            assert initial_metadata.is_complete

    asyncio.run(scenario())


def test_in_an_empty_cluster_it_is_complete_with_the_first_update() -> None:
    async def scenario() -> None:
        async with joining() as (initial_metadata, cache):
            await turns()
            assert not initial_metadata.is_complete
            cache.update(update())
            await asyncio.wait_for(initial_metadata.wait(), DEADLINE_S)

    asyncio.run(scenario())


def test_news_that_leaves_this_broker_out_is_of_an_earlier_life() -> None:
    async def scenario() -> None:
        async with joining("t") as (initial_metadata, cache):
            cache.update(update(topic("t"), brokers=(alive(1),)))
            await turns()
            assert not initial_metadata.is_complete

    asyncio.run(scenario())
