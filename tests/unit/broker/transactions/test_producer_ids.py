from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest

from barnabas.broker.transactions.producer_ids import ID_MAX, ProducerIdManager, ProducerIdsNotReady, ProducerIdsUnavailable
from barnabas.metadata import paths
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import StoreFailure
from barnabas.metadata.local import LocalTree
from barnabas.metadata.nodes import Image
from barnabas.metadata.znodes.cluster import ProducerIdBlock, decode_producer_id_block, encode_producer_id_block
from barnabas.protocol.errors import ErrorCode

T = TypeVar("T")


class FailingJournal:
    path = "metadata.db"

    def __init__(self) -> None:
        self.broken = False

    def commit(self, written: Sequence[tuple[str, Image]], deleted: Sequence[str]) -> None:
        if self.broken:
            raise StoreFailure("/", "disk full")

    def close(self) -> None: ...


def on_a_tree(scenario: Callable[[TreeClient], Awaitable[T]], tree: LocalTree | None = None) -> T:
    async def run() -> T:
        client = TreeClient(tree or LocalTree(now_ms=lambda: 0), lambda: None)
        await client.connect()
        try:
            return await scenario(client)
        finally:
            await client.close()

    return asyncio.run(run())


async def block(tree: TreeClient) -> ProducerIdBlock:
    node = await tree.get(paths.PRODUCER_ID_BLOCK)
    assert node is not None
    return decode_producer_id_block(node.data)


async def fetched(manager: ProducerIdManager) -> None:
    """Until the block that is being fetched in the background is there, or is not to be had."""
    assert manager._fetch is not None
    await asyncio.wait_for(asyncio.wait([manager._fetch]), 60)


async def ids(manager: ProducerIdManager, count: int) -> list[int]:
    return [await manager.generate() for _ in range(count)]


def test_the_first_broker_of_a_cluster_begins_with_zero() -> None:
    async def scenario(tree: TreeClient) -> None:
        manager = ProducerIdManager(3, tree)
        assert await ids(manager, 3) == [0, 1, 2]
        assert await block(tree) == ProducerIdBlock(3, 0, 999)

    on_a_tree(scenario)


def test_a_node_that_holds_nothing_yet_is_a_cluster_without_ids() -> None:
    async def scenario(tree: TreeClient) -> None:
        await tree.create(paths.PRODUCER_ID_BLOCK)
        assert await ProducerIdManager(3, tree).generate() == 0

    on_a_tree(scenario)


def test_a_broker_goes_on_after_the_last_block_of_anybody() -> None:
    async def scenario(tree: TreeClient) -> None:
        await tree.create(paths.PRODUCER_ID_BLOCK, encode_producer_id_block(ProducerIdBlock(9, 4000, 4999)))
        assert await ProducerIdManager(3, tree).generate() == 5000
        assert await block(tree) == ProducerIdBlock(3, 5000, 5999)

    on_a_tree(scenario)


def test_the_rest_of_a_block_is_lost_with_its_broker() -> None:
    async def scenario(tree: TreeClient) -> None:
        assert await ids(ProducerIdManager(3, tree), 2) == [0, 1]
        assert await ProducerIdManager(3, tree).generate() == 1000

    on_a_tree(scenario)


def test_blocks_follow_each_other_without_a_gap() -> None:
    async def scenario(tree: TreeClient) -> None:
        assert await ids(ProducerIdManager(3, tree), 2500) == list(range(2500))

    on_a_tree(scenario)


def test_the_next_block_is_taken_when_a_tenth_of_the_current_one_is_left() -> None:
    async def scenario(tree: TreeClient) -> None:
        manager = ProducerIdManager(3, tree)
        await ids(manager, 900)
        assert (await block(tree)).last == 999
        await ids(manager, 1)
        await fetched(manager)
        assert (await block(tree)).last == 1999
        assert await ids(manager, 100) == list(range(901, 1001))
        await manager.close()

    on_a_tree(scenario)


def test_two_brokers_never_give_out_the_same_id() -> None:
    async def scenario(tree: TreeClient) -> None:
        managers = [ProducerIdManager(broker_id, tree) for broker_id in (1, 2)]
        given = await asyncio.gather(*[ids(manager, 3000) for manager in managers])
        assert len(set(given[0]) | set(given[1])) == 6000

    on_a_tree(scenario)


def test_all_who_wait_for_a_block_share_it() -> None:
    async def scenario(tree: TreeClient) -> None:
        manager = ProducerIdManager(1, tree)
        assert sorted(await asyncio.gather(*[manager.generate() for _ in range(1500)])) == list(range(1500))
        assert (await block(tree)).last == 1999

    on_a_tree(scenario)


def test_whoever_gives_up_waiting_does_not_disturb_the_others() -> None:
    async def scenario(tree: TreeClient) -> None:
        manager = ProducerIdManager(1, tree)
        first, second = asyncio.ensure_future(manager.generate()), asyncio.ensure_future(manager.generate())
        await asyncio.sleep(0)
        first.cancel()
        assert await second == 0

    on_a_tree(scenario)


def test_a_tree_that_fails_is_something_to_try_again_and_then_works_again() -> None:
    journal = FailingJournal()

    async def scenario(tree: TreeClient) -> None:
        manager = ProducerIdManager(1, tree)
        journal.broken = True
        refused = await asyncio.gather(*[manager.generate() for _ in range(3)], return_exceptions=True)
        assert [type(error) for error in refused] == [ProducerIdsNotReady] * 3
        assert ProducerIdsNotReady.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        journal.broken = False
        assert await manager.generate() == 0

    on_a_tree(scenario, LocalTree(now_ms=lambda: 0, journal=journal))


def test_a_prefetch_that_failed_is_not_held_against_the_block_in_use_nor_the_next() -> None:
    journal = FailingJournal()

    async def scenario(tree: TreeClient) -> None:
        manager = ProducerIdManager(1, tree)
        await ids(manager, 900)
        journal.broken = True
        await ids(manager, 50)
        await fetched(manager)
        journal.broken = False
        assert await ids(manager, 100) == list(range(950, 1050))

    on_a_tree(scenario, LocalTree(now_ms=lambda: 0, journal=journal))


def test_the_last_block_there_can_be_is_given_out_and_then_none() -> None:
    async def scenario(tree: TreeClient) -> None:
        last_but_one = ID_MAX - 1000
        await tree.create(paths.PRODUCER_ID_BLOCK, encode_producer_id_block(ProducerIdBlock(9, last_but_one - 999, last_but_one)))
        manager = ProducerIdManager(1, tree)
        assert (await ids(manager, 1000))[-1] == ID_MAX
        with pytest.raises(ProducerIdsUnavailable, match="exhausted") as refused:
            await manager.generate()
        assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR

    on_a_tree(scenario)


def test_a_block_that_cannot_be_read_is_named() -> None:
    async def scenario(tree: TreeClient) -> None:
        await tree.create(paths.PRODUCER_ID_BLOCK, b"{}")
        with pytest.raises(ProducerIdsUnavailable, match="/latest_producer_id_block is damaged"):
            await ProducerIdManager(1, tree).generate()

    on_a_tree(scenario)


def test_a_manager_that_is_closed_while_it_fetches_tells_those_who_wait() -> None:
    async def scenario(tree: TreeClient) -> None:
        manager = ProducerIdManager(1, tree)
        waiting = asyncio.ensure_future(manager.generate())
        await asyncio.sleep(0)
        await manager.close()
        with pytest.raises(ProducerIdsNotReady):
            await waiting

    on_a_tree(scenario)


def test_who_cannot_wait_takes_an_id_or_is_told_when_there_are_some() -> None:
    async def scenario(tree: TreeClient) -> None:
        manager = ProducerIdManager(1, tree)
        assert manager.take() is None
        assert await told(manager) is None
        assert [manager.take() for _ in range(1000)] == list(range(1000))
        assert await told(manager) is None
        assert manager.take() == 1000
        assert await told(manager) is None
        assert manager.take() == 1001

    on_a_tree(scenario)


def test_ids_taken_at_once_and_ids_waited_for_are_never_the_same() -> None:
    async def scenario(tree: TreeClient) -> None:
        manager = ProducerIdManager(1, tree)
        waited_for = asyncio.gather(*[manager.generate() for _ in range(1500)])
        taken: list[int] = []
        while len(taken) < 1500:
            producer_id = manager.take()
            if producer_id is None:
                assert await told(manager) is None
            else:
                taken.append(producer_id)
        assert len({*taken, *await waited_for}) == 3000

    on_a_tree(scenario)


def test_who_cannot_wait_is_told_what_went_wrong() -> None:
    journal = FailingJournal()

    async def scenario(tree: TreeClient) -> None:
        manager = ProducerIdManager(1, tree)
        journal.broken = True
        assert isinstance(await told(manager), ProducerIdsNotReady)
        assert manager.take() is None
        journal.broken = False
        assert await told(manager) is None
        assert manager.take() == 0

    on_a_tree(scenario, LocalTree(now_ms=lambda: 0, journal=journal))


async def told(manager: ProducerIdManager) -> Exception | None:
    """What `fetch` calls back with."""
    done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    manager.fetch(done.set_result)
    return await asyncio.wait_for(done, 60)
