"""ZooKeeper's client on the Unix socket of a served tree: the same responses as the tree itself, sessions that outlive a connection."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from barnabas import system
from barnabas.metadata.errors import StoreUnusable
from barnabas.metadata.local import LocalTree
from barnabas.metadata.serving.tree_server import TreeServer
from barnabas.metadata.serving.unix_server import UnixServer
from barnabas.metadata.tree import Create, CreateMode, EventType, Exists, GetData, SetData, WatchedEvent
from barnabas.metadata.zookeeper.address import of_socket
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from tests.tree_histories import HISTORIES, History, responses_of


@pytest.fixture
def socket_path() -> Iterator[str]:
    """In a directory with a short name: the path of a socket has few bytes."""
    with tempfile.TemporaryDirectory(prefix="tree-", dir="/tmp") as directory:
        yield f"{directory}/socket"


@asynccontextmanager
async def served(path: str, tree: LocalTree | None = None) -> AsyncIterator[TreeServer]:
    server = TreeServer(tree or LocalTree(now_ms=lambda: 1), Random(1))
    listening = UnixServer(server, path, lambda: int(asyncio.get_running_loop().time() * 1000))
    await listening.start()
    try:
        yield server
    finally:
        await listening.close()


def client(path: str) -> ZooKeeperTree:
    return ZooKeeperTree(ZooKeeperOptions(of_socket(path), session_timeout_ms=10_000, in_flight_max=1000))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES)
def test_the_embedded_tree_and_the_served_one_say_the_same(socket_path: str, history: History) -> None:
    async def through_the_socket() -> object:
        async with served(socket_path):
            return await responses_of(client(socket_path), history)

    assert asyncio.run(through_the_socket()) == asyncio.run(responses_of(LocalTree(now_ms=lambda: 1), history))


def test_only_this_user_can_connect(socket_path: str) -> None:
    async def mode() -> int:
        async with served(socket_path):
            return stat.S_IMODE(os.stat(socket_path).st_mode)

    Path(socket_path).write_text("what a killed parent has left")
    assert asyncio.run(mode()) == 0o600
    assert not os.path.exists(socket_path)


def test_a_path_that_no_socket_can_have_is_one_line(tmp_path: Path) -> None:
    async def start() -> None:
        async with served(f"{tmp_path}/{'d' * 100}"):
            raise AssertionError

    with pytest.raises(StoreUnusable, match="use a shorter directory"):
        asyncio.run(start())


def test_a_session_survives_its_connection_and_gets_the_events_it_missed(socket_path: str) -> None:
    async def story() -> None:
        tree = LocalTree(now_ms=lambda: 1)
        async with served(socket_path, tree):
            changed = asyncio.get_running_loop().create_future()
            store = client(socket_path)
            session = await store.open_session(changed.set_result)
            await session.handle([Create("/e", b"0", CreateMode.EPHEMERAL), GetData("/e", watch=True)])
            assert session._link is not None
            session._link.end()
            tree.open_session_now(lambda _: None).handle_now([SetData("/e", b"1")])
            assert await changed == WatchedEvent(EventType.NODE_DATA_CHANGED, "/e")
            (node,) = await session.handle([GetData("/e")])
            assert node.value.stat.ephemeral_owner == session.session_id
            await store.close()

    asyncio.run(story())


def test_the_end_of_a_process_ends_its_sessions_where_the_system_names_the_process(socket_path: str) -> None:
    async def story() -> None:
        async with served(socket_path) as server:
            expired = asyncio.get_running_loop().create_future()
            store = client(socket_path)
            session = await store.open_session(expired.set_result)
            await session.handle([Create("/e", b"0", CreateMode.EPHEMERAL)])
            server.process_ended(os.getpid() + 1)
            assert server.session_count == 1
            server.process_ended(os.getpid())
            if system.SO_PEERCRED:
                assert (await expired).type is EventType.SESSION_EXPIRED
                other = await store.open_session(lambda _: None)
                assert (await other.handle([Exists("/e")]))[0].result is None
            await store.close()

    asyncio.run(story())
