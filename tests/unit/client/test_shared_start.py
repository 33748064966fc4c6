"""First calls of a client that come side by side: one start serves them all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client import AsyncAdmin, AsyncConsumer, AsyncProducer
from barnabas.client.errors import ConfigException, IllegalState
from barnabas.client.shared_start import SharedStart
from tests.client_network import on_loop
from tests.unit.client.peer import Peer

FirstCall = Callable[[Any], Coroutine[Any, Any, object]]


def lists_topics(client: Any) -> Coroutine[Any, Any, object]:
    listing: Coroutine[Any, Any, object] = client.list_topics()
    return listing


def starts(client: Any) -> Coroutine[Any, Any, object]:
    start: Coroutine[Any, Any, object] = client.start()
    return start


CLIENTS = pytest.mark.parametrize(
    ("kind", "call"),
    [(AsyncConsumer, lists_topics), (AsyncProducer, starts), (AsyncAdmin, lists_topics)],
    ids=["consumer", "producer", "admin"],
)


def other_tasks() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


@CLIENTS
def test_first_calls_side_by_side_leave_no_task_behind(kind: Callable[..., Any], call: FirstCall) -> None:
    async def run() -> None:
        async with Peer() as peer:
            client = kind(bootstrap_servers=peer.address)
            await asyncio.gather(call(client), call(client), call(client))
            await client.close()
            assert [task for task in other_tasks() if "MetadataUpdater" in repr(task)] == []

    on_loop(run)


@CLIENTS
def test_first_calls_side_by_side_all_get_the_error_of_the_start_and_the_next_call_tries_again(
    kind: Callable[..., Any], call: FirstCall
) -> None:
    async def run() -> None:
        client = kind(bootstrap_servers="nosuch.invalid:9092")
        failed = await asyncio.gather(call(client), call(client), return_exceptions=True)
        assert [type(error) for error in failed] == [ConfigException, ConfigException]
        with pytest.raises(ConfigException, match="No resolvable bootstrap urls"):
            await call(client)
        await client.close()
        assert not other_tasks()

    on_loop(run)


@pytest.mark.parametrize("kind", [AsyncConsumer, AsyncProducer])
def test_a_client_that_is_closed_during_its_start_leaves_no_task_behind(kind: Callable[..., Any]) -> None:
    async def run() -> None:
        async with Peer() as peer:
            client = kind(bootstrap_servers=peer.address)
            waiting = asyncio.ensure_future(client.partitions_for("t"))
            await asyncio.sleep(0)  # it has begun
            await client.close()
            with pytest.raises(IllegalState, match="has already been closed"):
                await waiting
            assert [task for task in other_tasks() if "MetadataUpdater" in repr(task)] == []

    on_loop(run)


class Starting:
    """A start that ends when the test says so."""

    def __init__(self) -> None:
        self.count = 0
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __call__(self) -> None:
        self.count += 1
        await asyncio.shield(self.end)


def test_a_caller_that_is_cancelled_does_not_end_the_start_of_the_others() -> None:
    async def run() -> None:
        start = Starting()
        shared = SharedStart(start)
        first, second = (asyncio.ensure_future(shared.wait()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        start.end.set_result(None)
        await second
        await shared.wait()
        assert first.cancelled() and start.count == 1 and shared.is_done

    on_loop(run)


def test_what_is_closed_is_not_started_any_more() -> None:
    async def run() -> None:
        start = Starting()
        shared = SharedStart(start)
        await shared.close()
        with pytest.raises(IllegalState, match=r"^The client has already been closed$"):
            await shared.wait()
        assert start.count == 0

    on_loop(run)
