"""A ZooKeeper for all tests of this folder, and one of its own for a test that kills it."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.network.event_loop import new_event_loop
from tests.zookeeper import ZooKeeper, running

DEADLINE_S = 60
_numbers = itertools.count()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    """Runs `async def` tests with a deadline."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(asyncio.wait_for(pyfuncitem.obj(**arguments), DEADLINE_S))
    return True


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Generator[ZooKeeper, None, None]:
    with running(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def mortal(tmp_path: Path) -> Generator[ZooKeeper, None, None]:
    with running(tmp_path / "zookeeper", tick_ms=2000) as server:
        yield server


@pytest.fixture
def options(zookeeper: ZooKeeper) -> ZooKeeperOptions:
    """A part of the tree that no other test sees."""
    return options_of(zookeeper)


def options_of(server: ZooKeeper) -> ZooKeeperOptions:
    return ZooKeeperOptions(parse(f"{server.address}/test-{next(_numbers)}"), session_timeout_ms=4000)
