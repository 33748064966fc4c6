"""A broker whose metadata session expires during its start is not registered yet, and starts again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.environment import Environment
from barnabas.broker.server.server import START_ATTEMPTS, BrokerServer
from barnabas.metadata import paths
from barnabas.metadata.errors import SessionExpired
from barnabas.metadata.local import LocalSession, LocalTree
from barnabas.metadata.tree import Exists, TreeRequest, TreeResponse, TreeSession, Watcher
from barnabas.network.event_loop import run


class ShortLived:
    """A session that is over when it is asked so many times."""

    def __init__(self, session: LocalSession, asked_max: int) -> None:
        self._session = session
        self._left = asked_max

    @property
    def session_id(self) -> int:
        return self._session.session_id

    @property
    def is_alive(self) -> bool:
        return self._session.is_alive

    async def handle(self, requests: Sequence[TreeRequest[Any]]) -> list[TreeResponse[Any]]:
        self._left -= 1
        if self._left == 0:
            self._session.expire()
        return await self._session.handle(requests)

    async def close(self) -> None:
        await self._session.close()


class Fragile:
    """A tree whose first sessions are short-lived; it outlives the brokers that use it."""

    def __init__(self, asked_max: Sequence[int]) -> None:
        self.tree = LocalTree(lambda: 0)
        self.opened = 0
        self._asked_max = list(asked_max)

    async def open_session(self, watcher: Watcher) -> TreeSession:
        self.opened += 1
        session = await self.tree.open_session(watcher)
        return ShortLived(session, self._asked_max.pop(0)) if self._asked_max else session

    async def close(self) -> None: ...


async def started(data: Path, tree: Fragile) -> BrokerServer:
    async def opened(_: str) -> Fragile:
        return tree

    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "broker.id": "5", "log.dirs": str(data), "zookeeper.session.timeout.ms": "100"}
    server = BrokerServer(BrokerConfig.from_properties(settings), environment=Environment(tree=opened, is_shared=True))
    await asyncio.wait_for(server.start(), 60)
    return server


@pytest.mark.parametrize("asked_max", [1, 2, 4, 7, 10, 15])
def test_it_starts_whenever_its_session_ends(tmp_path: Path, asked_max: int) -> None:
    async def life() -> None:
        tree = Fragile([asked_max])
        server = await started(tmp_path, tree)
        assert tree.opened > 1
        found = (await (await tree.tree.open_session(lambda _: None)).handle([Exists(paths.broker_id(5))]))[0]
        assert found.result is not None
        await server.shutdown(1000)

    run(life())


def test_it_gives_up_where_no_session_lasts(tmp_path: Path) -> None:
    async def life() -> None:
        tree = Fragile([1] * 2 * START_ATTEMPTS)
        with pytest.raises(SessionExpired):
            await started(tmp_path, tree)
        assert tree.opened == START_ATTEMPTS

    run(life())
