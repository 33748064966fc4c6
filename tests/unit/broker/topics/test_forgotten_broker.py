from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from barnabas.broker.topics.forgotten_broker import BrokerIdNotRegistered, forget_broker
from barnabas.errors import InvalidRequest
from barnabas.metadata import paths
from barnabas.metadata.admin_tree import AdminTree
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree

Scenario = Callable[[TreeClient, AdminTree], Awaitable[None]]


def on_a_tree(scenario: Scenario) -> None:
    async def run() -> None:
        tree = TreeClient(LocalTree(now_ms=lambda: 0), lambda: None)
        await tree.connect()
        await tree.ensure_all(paths.PERSISTENT_PATHS)
        try:
            await scenario(tree, AdminTree(tree, Random(1)))
        finally:
            await tree.close()

    asyncio.run(run())


def test_the_configs_of_a_stopped_broker_are_removed_and_the_others_stay() -> None:
    async def scenario(tree: TreeClient, admin: AdminTree) -> None:
        for broker_id in (2, 3):
            await admin.change_broker_config(broker_id, {"log.cleaner.threads": "1"})
        await forget_broker(tree, Random(1), 3)
        assert await admin.fetch_all_configs("brokers") == {"2": {"log.cleaner.threads": "1"}}
        with pytest.raises(BrokerIdNotRegistered, match="Broker ID 3 is not currently registered"):
            await forget_broker(tree, Random(1), 3)

    on_a_tree(scenario)


@pytest.mark.parametrize("broker_id", [99, -1])
def test_a_broker_of_which_nothing_is_left_is_not_registered(broker_id: int) -> None:
    async def scenario(tree: TreeClient, admin: AdminTree) -> None:
        with pytest.raises(BrokerIdNotRegistered, match=f"Broker ID {broker_id} is not currently registered"):
            await forget_broker(tree, Random(1), broker_id)

    on_a_tree(scenario)


def test_a_broker_that_is_alive_is_not_forgotten() -> None:
    async def scenario(tree: TreeClient, admin: AdminTree) -> None:
        await tree.create_recursive(paths.broker_id(1), b"{}")
        await admin.change_broker_config(1, {"log.cleaner.threads": "1"})
        with pytest.raises(InvalidRequest, match="Broker 1 is alive: stop it first"):
            await forget_broker(tree, Random(1), 1)
        assert await admin.fetch_config("brokers", "1") == {"log.cleaner.threads": "1"}

    on_a_tree(scenario)


def test_a_broker_with_replicas_is_not_forgotten() -> None:
    async def scenario(tree: TreeClient, admin: AdminTree) -> None:
        await admin.change_broker_config(3, {"log.cleaner.threads": "1"})
        await admin.create_topic("orders", {0: (1, 3), 1: (1, 2)})
        with pytest.raises(InvalidRequest, match="Broker 3 still holds 1 replica, such as that of orders-0: move them to other brokers"):
            await forget_broker(tree, Random(1), 3)
        assert await admin.fetch_config("brokers", "3") == {"log.cleaner.threads": "1"}

    on_a_tree(scenario)
