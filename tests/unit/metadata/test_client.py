"""A broker's client of the tree: handlers that stay, recursive helpers, and a new session after an expired one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

import pytest

from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import NodeExists, NotEmpty, SessionExpired
from barnabas.metadata.local import LocalTree
from barnabas.metadata.tree import Check, Create, CreateMode, GetData
from tests.unit.metadata.sessions import Client

R = TypeVar("R")


def run(coroutine: Coroutine[object, object, R]) -> R:
    """On the embedded store nothing is ever waited for, so one step is the whole way."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]
    raise AssertionError("the embedded store suspended")


class Listener:
    """All three kinds of handlers, for one path."""

    def __init__(self, path: str, name: str = "listener") -> None:
        self.path = path
        self.name = name
        self.heard: list[str] = []

    def handle_creation(self) -> None:
        self.heard.append("created")

    def handle_deletion(self) -> None:
        self.heard.append("deleted")

    def handle_data_change(self) -> None:
        self.heard.append("changed")

    def handle_child_change(self) -> None:
        self.heard.append("children")

    async def before_initializing_session(self) -> None:
        self.heard.append("before")

    async def after_initializing_session(self) -> None:
        self.heard.append("after")


class World:
    def __init__(self) -> None:
        self.tree = LocalTree(lambda: 0)
        self.expired = 0
        self.client = TreeClient(self.tree, self.note_expiry)
        run(self.client.connect())
        self.other = Client(self.tree)

    def note_expiry(self) -> None:
        self.expired += 1

    def expire(self) -> None:
        session = self.client._session
        assert session is not None
        session.expire()  # type: ignore[attr-defined]


@pytest.fixture
def world() -> World:
    return World()


def test_a_handler_hears_of_a_node_that_comes_changes_and_goes_if_it_looks_again_each_time(world: World) -> None:
    listener = Listener("/a")
    world.client.register_change_handler(listener)
    run(world.client.exists("/a"))
    world.other.ask(Create("/a"))
    for step in (world.client.exists("/a"), world.client.set_data("/a", b"x"), world.client.get("/a"), world.client.delete("/a")):
        run(step)
    assert listener.heard == ["created", "changed", "deleted"]


def test_a_read_of_a_path_without_handler_leaves_no_watch(world: World) -> None:
    run(world.client.handle([GetData("/", watch=True)]))
    assert world.tree.watch_count == 0


def test_a_child_handler_hears_of_children_each_time_it_has_read_them(world: World) -> None:
    listener = Listener("/")
    world.client.register_child_change_handler(listener)
    for path in ("/a", "/b"):
        run(world.client.children("/"))
        world.other.ask(Create(path))
    assert listener.heard == ["children", "children"]


def test_an_unregistered_handler_hears_nothing_more(world: World) -> None:
    listener = Listener("/a")
    world.client.register_change_handler(listener)
    world.client.register_child_change_handler(listener)
    run(world.client.exists("/a"))
    world.client.unregister_change_handler("/a")
    world.client.unregister_child_change_handler("/a")
    world.other.ask(Create("/a"))
    assert listener.heard == []


def test_of_two_handlers_for_one_path_the_later_one_counts(world: World) -> None:
    first, second = Listener("/a"), Listener("/a")
    world.client.register_change_handler(first)
    world.client.register_change_handler(second)
    run(world.client.exists("/a"))
    world.other.ask(Create("/a"))
    assert (first.heard, second.heard) == ([], ["created"])


def test_an_expired_session_is_told_and_replaced_with_the_handlers_still_there(world: World) -> None:
    listener = Listener("/a")
    world.client.register_change_handler(listener)
    world.client.register_state_change_handler(listener)
    old = world.client.session_id
    world.expire()
    assert world.expired == 1
    with pytest.raises(SessionExpired):
        run(world.client.get("/"))
    run(world.client.reinitialize())
    run(world.client.exists("/a"))
    world.other.ask(Create("/a"))
    assert listener.heard == ["before", "after", "created"]
    assert world.client.session_id not in (0, old)


def test_a_session_that_lives_is_not_replaced(world: World) -> None:
    before = world.client.session_id
    run(world.client.reinitialize())
    assert world.client.session_id == before


def test_a_state_change_handler_that_fails_does_not_stop_the_others(world: World) -> None:
    class Broken(Listener):
        async def before_initializing_session(self) -> None:
            raise RuntimeError("broken")

    healthy = Listener("", "healthy")
    world.client.register_state_change_handler(Broken("", "broken"))
    world.client.register_state_change_handler(healthy)
    world.expire()
    run(world.client.reinitialize())
    assert healthy.heard == ["before", "after"]


def test_an_unregistered_state_change_handler_is_not_called(world: World) -> None:
    listener = Listener("")
    world.client.register_state_change_handler(listener)
    world.client.unregister_state_change_handler("listener")
    world.expire()
    run(world.client.reinitialize())
    assert listener.heard == []


def test_missing_nodes_are_none_and_not_errors(world: World) -> None:
    assert (run(world.client.get("/a")), run(world.client.exists("/a")), run(world.client.children("/a"))) == (None, None, None)
    assert run(world.client.delete("/a")) is False
    assert run(world.client.delete_recursive("/a")) is False


def test_parents_are_made_where_they_are_missing(world: World) -> None:
    run(world.client.create_recursive("/a/b/c", b"x"))
    node = run(world.client.get("/a/b/c"))
    assert node is not None and node.data == b"x"
    with pytest.raises(NodeExists):
        run(world.client.create_recursive("/a/b/c"))
    run(world.client.ensure("/a/b/c"))


def test_many_nodes_are_made_in_one_go_and_those_that_are_there_stay(world: World) -> None:
    run(world.client.create("/a", b"x"))
    run(world.client.ensure_all(["/a/b/c", "/a/d", "/a"]))
    node, children = run(world.client.get("/a")), run(world.client.children("/a"))
    assert node is not None and node.data == b"x"
    assert children is not None and children.names == ["b", "d"]
    assert run(world.client.exists("/a/b/c")) is not None


def test_set_or_create_does_what_is_needed(world: World) -> None:
    run(world.client.set_or_create("/a/b", b"1"))
    run(world.client.set_or_create("/a/b", b"2"))
    node = run(world.client.get("/a/b"))
    assert node is not None and (node.data, node.stat.version) == (b"2", 1)


def test_a_tree_is_deleted_with_all_that_is_in_it(world: World) -> None:
    for path in ("/a/b/c", "/a/d", "/e"):
        run(world.client.create_recursive(path))
    with pytest.raises(NotEmpty):
        run(world.client.delete("/a"))
    assert run(world.client.delete_recursive("/a")) is True
    assert world.tree.node_count == 2


def test_a_multi_gives_the_result_of_each_operation(world: World) -> None:
    created, checked = run(world.client.multi([Create("/n_", mode=CreateMode.PERSISTENT_SEQUENTIAL), Check("/")]))
    assert checked is None
    assert world.tree.node_count == 2 and created is not None


def test_a_closed_client_has_no_ephemerals_and_no_session(world: World) -> None:
    run(world.client.create("/e", mode=CreateMode.EPHEMERAL))
    run(world.client.close())
    assert (world.client.session_id, world.tree.node_count) == (0, 1)
    with pytest.raises(SessionExpired):
        run(world.client.get("/"))


def test_it_works_the_same_under_an_event_loop(world: World) -> None:
    assert asyncio.run(world.client.create("/a")).path == "/a"
