"""Random histories of requests to a metadata store, and everything that the store responds: to compare two stores."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

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

History = list[tuple[int, list[TreeRequest[Any]]]]

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


async def responses_of(tree: Any, history: History) -> list[Any]:
    """Responses and events, step by step, of all sessions. Closes the tree."""
    events: list[list[WatchedEvent]] = [[] for _ in range(SESSIONS)]
    sessions = [await tree.open_session(each.append) for each in events]
    owners = {session.session_id: number for number, session in enumerate(sessions, 1)}
    observed: list[Any] = []
    for number, requests in history:
        observed.append([_plain(response, owners) for response in await sessions[number].handle(requests)])
        for session in sessions:  # the response to a session's own write comes after the events of every change before it
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
