"""Sessions with a real ZooKeeper: what they promise while servers come and go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from barnabas.metadata.errors import NoAuth, NodeExists, SessionExpired, StoreUnusable
from barnabas.metadata.tree import Create, CreateMode, Delete, EventType, Exists, GetChildren, GetData, SetData, TreeRequest, WatchedEvent
from barnabas.metadata.zookeeper.access import of_creator
from barnabas.metadata.zookeeper.address import Ensemble, Server, parse
from barnabas.metadata.zookeeper.session import SessionState, ZooKeeperOptions, ZooKeeperSession
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from tests.integration.zookeeper.conftest import options_of
from tests.zookeeper import ZooKeeper

DEADLINE_S = 30
EPHEMERAL = CreateMode.EPHEMERAL


class Client:
    def __init__(self, session: ZooKeeperSession, events: list[WatchedEvent]) -> None:
        self.session = session
        self.events = events

    async def ask(self, request: TreeRequest[Any]) -> Any:
        return (await self.session.handle([request]))[0].value


@asynccontextmanager
async def connected(options: ZooKeeperOptions) -> AsyncIterator[Client]:
    tree, events = ZooKeeperTree(options), list[WatchedEvent]()
    session = await tree.open_session(events.append)
    try:
        yield Client(session, events)
    finally:
        await tree.close()


async def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        await asyncio.sleep(0.01)


async def expire(session: ZooKeeperSession) -> None:
    """Another client takes the session over and closes it, which to the first is the same as a timeout."""
    other = ZooKeeperSession(session._options, lambda _: None)
    other._session_id, other._password = session._session_id, session._password
    await other.open()
    await other.close()


async def test_what_one_session_writes_another_reads(options: ZooKeeperOptions) -> None:
    async with connected(options) as one, connected(options) as two:
        await one.ask(Create("/a", b"x"))
        assert (await two.ask(GetData("/a"))).data == b"x"
        assert one.session.session_id != two.session.session_id


async def test_many_requests_are_answered_in_their_order(options: ZooKeeperOptions) -> None:
    async with connected(options) as client:
        made = await client.session.handle([Create(f"/{number}", b"%d" % number) for number in range(500)])
        assert [created.value.path for created in made] == [f"/{number}" for number in range(500)]
        responses = await client.session.handle([GetData(f"/{number}") for number in range(500)])
        assert [each.value.data for each in responses] == [b"%d" % number for number in range(500)]


async def test_a_chroot_is_made_and_hides_the_rest(zookeeper: ZooKeeper, options: ZooKeeperOptions) -> None:
    deep = replace(options, ensemble=parse(f"{zookeeper.address}{options.ensemble.chroot}/deep/er"))
    async with connected(deep) as inside, connected(options) as outside:
        await inside.ask(Create("/a"))
        assert (await inside.ask(GetChildren("/"))).names == ["a"]
        assert (await outside.ask(GetChildren("/deep/er"))).names == ["a"]


async def test_a_watch_tells_of_one_change(options: ZooKeeperOptions) -> None:
    async with connected(options) as one, connected(options) as two:
        await one.ask(Create("/a"))
        await two.session.handle([GetData("/a", watch=True), Exists("/b", watch=True), GetChildren("/", watch=True)])
        await one.session.handle([SetData("/a", b"1"), SetData("/a", b"2"), Create("/b")])
        await two.ask(Exists("/b"))  # whoever sees a change has heard of it
        assert two.events == [
            WatchedEvent(EventType.NODE_DATA_CHANGED, "/a"),
            WatchedEvent(EventType.NODE_CREATED, "/b"),
            WatchedEvent(EventType.NODE_CHILDREN_CHANGED, "/"),
        ]


async def test_ephemerals_go_with_their_session(options: ZooKeeperOptions) -> None:
    async with connected(options) as stays:
        async with connected(options) as goes:
            await goes.ask(Create("/a", b"", EPHEMERAL))
            assert (await stays.ask(Exists("/a", watch=True))).ephemeral_owner == goes.session.session_id
        await until(lambda: stays.events)
        assert stays.events == [WatchedEvent(EventType.NODE_DELETED, "/a")]
        assert goes.session.state is SessionState.CLOSED


async def test_an_expired_session_says_so_and_answers_nothing_else(options: ZooKeeperOptions) -> None:
    async with connected(options) as client:
        await client.ask(Create("/a", b"", EPHEMERAL))
        await expire(client.session)
        await until(lambda: not client.session.is_alive)
        assert client.events == [WatchedEvent(EventType.SESSION_EXPIRED, "")]
        with pytest.raises(SessionExpired):
            await client.ask(Exists("/a"))
        async with connected(options) as other:
            assert await other.ask(Exists("/a")) is None


async def test_requests_that_wait_when_the_session_expires_are_answered(options: ZooKeeperOptions) -> None:
    async with connected(options) as client:
        link = client.session._link
        assert link is not None
        client.session._servers = [Server("127.0.0.1", 1)]  # it cannot come back yet
        link.end()
        await until(lambda: client.session.state is SessionState.CONNECTING)
        pending = asyncio.ensure_future(client.session.handle([Exists("/a")]))
        await expire(client.session)
        client.session._servers = list(options.ensemble.servers)
        assert isinstance((await pending)[0].error, SessionExpired)


async def test_a_session_outlives_its_server_and_hears_what_it_missed(mortal: ZooKeeper) -> None:
    options = replace(options_of(mortal), session_timeout_ms=40_000)  # however long a busy machine needs to start a server
    async with connected(options) as client:
        await client.session.handle([Create("/a"), Create("/mine", b"", EPHEMERAL)])
        await client.session.handle([GetData("/a", watch=True), Exists("/b", watch=True), GetChildren("/", watch=True)])
        mortal.kill()
        await until(lambda: client.session.state is SessionState.CONNECTING)
        pending = asyncio.ensure_future(client.session.handle([Exists("/mine")]))
        client.session._servers = [Server("127.0.0.1", 1)]  # it cannot come back yet
        mortal.start()
        async with connected(options) as other:
            await other.session.handle([SetData("/a", b"meanwhile"), Create("/b")])
        assert not pending.done()
        client.session._servers = list(options.ensemble.servers)
        stat = (await pending)[0].value
        assert stat is not None and stat.ephemeral_owner == client.session.session_id
        await until(lambda: len(client.events) == 3)
        assert set(client.events) == {
            WatchedEvent(EventType.NODE_DATA_CHANGED, "/a"),
            WatchedEvent(EventType.NODE_CREATED, "/b"),
            WatchedEvent(EventType.NODE_CHILDREN_CHANGED, "/"),
        }


async def test_what_was_not_answered_is_asked_again(mortal: ZooKeeper) -> None:
    async with connected(options_of(mortal)) as client:
        mortal.pause()
        pending = asyncio.ensure_future(client.session.handle([Create("/a"), Create("/b")]))
        await until(lambda: client.session.state is SessionState.CONNECTING)  # two thirds of the timeout, and no word from it
        mortal.resume()
        for answer in await pending:
            assert answer.error is None or isinstance(answer.error, NodeExists)  # it may have been made the first time
        assert (await client.ask(GetChildren("/"))).names == ["a", "b"]


async def test_a_server_that_is_gone_is_passed_over(zookeeper: ZooKeeper, options: ZooKeeperOptions) -> None:
    ensemble = Ensemble((Server("127.0.0.1", 1), *options.ensemble.servers), "")
    for _ in range(4):
        async with connected(replace(options, ensemble=ensemble)) as client:
            assert client.session.state is SessionState.CONNECTED


async def test_where_nobody_answers_the_fix_is_named(options: ZooKeeperOptions) -> None:
    nobody = replace(options, ensemble=parse("127.0.0.1:1"), connection_timeout_ms=300)
    with pytest.raises(StoreUnusable, match=r"No ZooKeeper server of 127\.0\.0\.1:1 answered within 300 ms.*zookeeper\.connect"):
        await ZooKeeperTree(nobody).open_session(lambda _: None)


async def test_somebody_else_is_not_taken_for_zookeeper(options: ZooKeeperOptions) -> None:
    async def chat(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(chat, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        other = replace(options, ensemble=parse(f"127.0.0.1:{port}"), connection_timeout_ms=500)
        with pytest.raises(StoreUnusable, match="it is no ZooKeeper server"):
            await ZooKeeperTree(other).open_session(lambda _: None)


async def test_with_access_lists_only_who_made_a_node_may_change_it(options: ZooKeeperOptions) -> None:
    secured = replace(options, credentials=[("digest", b"broker:secret")], access_of=of_creator)
    async with connected(options) as stranger, connected(secured) as owner, connected(secured) as fellow:
        await owner.session.handle([Create("/config"), Create("/config/users", b"x"), Create("/brokers", b"y")])
        assert (await fellow.ask(GetData("/config/users"))).data == b"x"
        assert (await stranger.ask(GetData("/brokers"))).data == b"y"
        for request in (GetData("/config/users"), SetData("/brokers", b"z"), Create("/brokers/a"), Delete("/config/users")):
            with pytest.raises(NoAuth):
                await stranger.ask(request)


async def test_a_chroot_that_is_there_may_be_used_by_those_who_could_not_make_it(zookeeper: ZooKeeper, options: ZooKeeperOptions) -> None:
    below = replace(options, ensemble=parse(f"{zookeeper.address}/closed/chroot"))
    async with connected(replace(below, credentials=[("digest", b"broker:secret")], access_of=of_creator)) as owner:
        await owner.ask(Create("/made", b"x"))
        async with connected(below) as stranger:
            assert (await stranger.ask(GetData("/made"))).data == b"x"


async def test_credentials_that_are_refused_are_told(options: ZooKeeperOptions) -> None:
    with pytest.raises(StoreUnusable, match="refused the credentials"):
        await ZooKeeperTree(replace(options, credentials=[("nonsense", b"x")])).open_session(lambda _: None)
