"""DIGEST-MD5 with a real ZooKeeper that has users."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import replace

import pytest

from barnabas.metadata.errors import NoAuth, StoreUnusable
from barnabas.metadata.tree import Create, Exists, GetData, SetData, TreeRequest
from barnabas.metadata.zookeeper.access import of_creator, open_to_all
from barnabas.metadata.zookeeper.digest_md5 import SaslUser
from barnabas.metadata.zookeeper.session import SessionState, ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from tests.integration.zookeeper.conftest import options_of
from tests.integration.zookeeper.test_session import connected, until
from tests.zookeeper import ZooKeeper, running, sasl_flags

BROKER = SaslUser("broker", 'sé"cr,et')


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Generator[ZooKeeper, None, None]:
    directory = tmp_path_factory.mktemp("guarded")
    flags = sasl_flags(directory / "jaas.conf", {"broker": 'sé\\"cr,et', "guest": "guest"})
    with running(directory / "zookeeper", tick_ms=2000, jvm_flags=f"{flags} -Dfile.encoding=UTF-8") as server:
        yield server


@pytest.fixture
def brokers(guarded: ZooKeeper) -> ZooKeeperOptions:
    return replace(options_of(guarded), sasl=BROKER, access_of=of_creator, session_timeout_ms=10_000)


async def test_nodes_belong_to_the_user_and_secrets_are_read_by_no_other(brokers: ZooKeeperOptions) -> None:
    nobody, guest = replace(brokers, sasl=None, access_of=open_to_all), replace(brokers, sasl=SaslUser("guest", "guest"))
    async with connected(brokers) as owner, connected(brokers) as fellow, connected(nobody) as stranger, connected(guest) as other:
        await owner.session.handle([Create("/config"), Create("/config/users", b"x"), Create("/brokers", b"y"), Create("/consumers")])
        assert (await fellow.ask(GetData("/config/users"))).data == b"x"
        await fellow.ask(SetData("/brokers", b"z"))
        for client in (stranger, other):
            assert (await client.ask(GetData("/brokers"))).data == b"z"
            forbidden: list[TreeRequest[object]] = [GetData("/config/users"), SetData("/brokers", b"!"), Create("/brokers/a")]
            for request in forbidden:
                with pytest.raises(NoAuth):
                    await client.ask(request)
        await stranger.ask(Create("/consumers/old"))


@pytest.mark.parametrize("user", [SaslUser("broker", "wrong"), SaslUser("nobody", "x")])
async def test_a_wrong_password_is_refused_like_an_unknown_user(brokers: ZooKeeperOptions, user: SaslUser) -> None:
    with pytest.raises(StoreUnusable, match=r"refused the credentials of this broker: user or password.*zookeeper\.sasl\.username"):
        await ZooKeeperTree(replace(brokers, sasl=user)).open_session(lambda _: None)


async def test_a_server_without_users_is_refused(zookeeper: ZooKeeper) -> None:
    with pytest.raises(StoreUnusable, match="JAAS section Server"):
        await ZooKeeperTree(replace(options_of(zookeeper), sasl=BROKER)).open_session(lambda _: None)


async def test_a_session_authenticates_again_on_its_next_connection(brokers: ZooKeeperOptions) -> None:
    async with connected(brokers) as client:
        await client.session.handle([Create("/config"), Create("/config/users", b"x")])
        await client.ask(Exists("/later", watch=True))
        link = client.session._link
        assert link is not None
        link.end()
        await until(lambda: client.session.state is SessionState.CONNECTING)
        pending = asyncio.ensure_future(client.session.handle([GetData("/config/users"), Create("/later")]))
        assert [response.error for response in await pending] == [None, None]
        await until(lambda: client.events)
