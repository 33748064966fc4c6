"""The registration of a broker: created, waited for while an old session still has it, never deleted for another session."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.cluster.registration import register
from barnabas.endpoint import EndPoint
from barnabas.errors import DuplicateBrokerRegistration
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalSession, LocalTree
from barnabas.metadata.tree import Create, CreateMode
from barnabas.metadata.znodes.cluster import BrokerRegistration, decode_broker, encode_broker

HERE = BrokerRegistration((EndPoint("PLAINTEXT", "here", 9092),), 1)
THERE = BrokerRegistration((EndPoint("PLAINTEXT", "there", 9092),), 1)


async def connected(tree: LocalTree) -> TreeClient:
    client = TreeClient(tree, lambda: None)
    await client.connect()
    await client.ensure_all([paths.BROKER_IDS])
    return client


def earlier_life(tree: LocalTree) -> LocalSession:
    session = tree.open_session_now(lambda _: None)
    session.handle_now([Create(paths.broker_id(1), encode_broker(THERE), CreateMode.EPHEMERAL)])
    return session


async def test_the_epoch_is_the_zxid_of_the_nodes_creation() -> None:
    tree = LocalTree(lambda: 0)
    client = await connected(tree)
    epoch = await register(client, 1, HERE, 1000)
    found = await client.get(paths.broker_id(1))
    assert found is not None
    assert (found.stat.czxid, decode_broker(1, found.data).endpoints) == (epoch, HERE.endpoints)


async def test_an_earlier_life_is_waited_for() -> None:
    tree = LocalTree(lambda: 0)
    client = await connected(tree)
    earlier = earlier_life(tree)
    asyncio.get_running_loop().call_later(0.05, earlier.expire)
    await register(client, 1, HERE, 10_000)
    found = await client.get(paths.broker_id(1))
    assert found is not None
    assert decode_broker(1, found.data).endpoints == HERE.endpoints


async def test_one_that_does_not_go_away_is_named_with_the_fix() -> None:
    tree = LocalTree(lambda: 0)
    client = await connected(tree)
    earlier_life(tree)
    with pytest.raises(DuplicateBrokerRegistration, match=r"another broker\.id"):
        await register(client, 1, HERE, 0)


async def test_a_node_that_is_ours_already_is_good() -> None:
    """The request that made it was answered, and the answer lost with its connection."""
    tree = LocalTree(lambda: 0)
    client = await connected(tree)
    made = await client.create(paths.broker_id(1), encode_broker(HERE), CreateMode.EPHEMERAL)
    assert await register(client, 1, HERE, 0) == made.stat.czxid
