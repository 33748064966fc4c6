"""The embedded tree and a real ZooKeeper are asked the same in random histories, and say the same: answers, errors, counters, events."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.metadata.local import LocalTree
from barnabas.metadata.tree import (
    Check,
    Children,
    Create,
    Created,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    NodeData,
    SetData,
    Stat,
    TreeRequest,
    TreeResponse,
    WatchedEvent,
)
from barnabas.metadata.zookeeper.address import parse
from barnabas.metadata.zookeeper.session import ZooKeeperOptions
from barnabas.metadata.zookeeper.tree import ZooKeeperTree
from tests.zookeeper import ZooKeeper

PATHS = st.sampled_from(["/a", "/b", "/a/c", "/a/d", "/a/c/e", "/b/f"])
VERSIONS = st.sampled_from([-1, -1, 0, 1, 2])
DATA = st.sampled_from([None, b"", b"x", b"yy"])
SESSIONS = 2
OPERATIONS = st.one_of(
    st.builds(Create, PATHS, DATA, st.sampled_from(CreateMode)),
    st.builds(SetData, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(Check, PATHS, VERSIONS),
)
# A check alone is no request of ZooKeeper's.
REQUESTS = st.one_of(
    OPERATIONS.filter(lambda each: not isinstance(each, Check)),
    st.builds(Multi, st.lists(OPERATIONS, min_size=1, max_size=5)),
    st.builds(Exists, PATHS, st.booleans()),
    st.builds(GetData, PATHS, st.booleans()),
    st.builds(GetChildren, PATHS, st.booleans()),
)
HISTORIES = st.lists(st.tuples(st.integers(0, SESSIONS - 1), st.lists(REQUESTS, min_size=1, max_size=4)), max_size=25)
_numbers = itertools.count()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES)
def test_the_embedded_tree_and_zookeeper_say_the_same(zookeeper: ZooKeeper, history: list[tuple[int, list[TreeRequest[Any]]]]) -> None:
    remote = ZooKeeperTree(ZooKeeperOptions(parse(f"{zookeeper.address}/same-{next(_numbers)}"), session_timeout_ms=10_000))
    assert asyncio.run(_told(remote, history)) == asyncio.run(_told(LocalTree(now_ms=lambda: 1), history))


async def _told(tree: Any, history: list[tuple[int, list[TreeRequest[Any]]]]) -> list[Any]:
    """Everything that was said, step by step: to whoever asked, and to all that watched."""
    events: list[list[WatchedEvent]] = [[] for _ in range(SESSIONS)]
    sessions = [await tree.open_session(each.append) for each in events]
    owners = {session.session_id: number for number, session in enumerate(sessions, 1)}
    observed: list[Any] = []
    for number, requests in history:
        observed.append([_plain(response, owners) for response in await sessions[number].handle(requests)])
        for session in sessions:  # what was committed before a session's own write is told to it before the answer
            await session.handle([SetData("/nowhere", b"")])
        observed.append([sorted((event.type.value, event.path) for event in each) for each in events])
        for each in events:
            each.clear()
    await tree.close()
    return observed


def _plain(response: TreeResponse[Any], owners: dict[int, int]) -> Any:
    """Without times and numbers that differ between two stores."""
    if response.error is not None:
        return type(response.error).__name__, response.error.operation
    if isinstance(response.request, Multi):
        return [each.path if isinstance(each, Created) else _stat(each, owners) for each in response.value]
    value = response.value
    if isinstance(value, Created):
        return value.path, _stat(value.stat, owners)
    if isinstance(value, NodeData):
        return value.data, _stat(value.stat, owners)
    if isinstance(value, Children):
        return value.names, _stat(value.stat, owners)
    return _stat(value, owners)


def _stat(stat: Stat | None, owners: dict[int, int]) -> Any:
    if stat is None:
        return None
    return stat.version, stat.cversion, owners.get(stat.ephemeral_owner, 0), stat.num_children, stat.czxid == stat.mzxid
